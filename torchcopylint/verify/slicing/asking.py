"""What an exception of torch says of the inputs that an operation wants: the next inputs are made like that."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace

from torchcopylint.verify.slicing.sizes import Setting

_SIDES = (28, 32, 64, 84, 96, 128, 224, 256)
"""Usual sides of images."""
_SPATIAL = Setting(0, 0, 0).spatial
_DIVIDED = 64
"""So many channels can be divided among the heads that code mostly has."""
_MOST = 2048
"""No input has a dimension that is larger."""


def asked(setting: Setting, message: str, line: str) -> Setting | None:
    """The setting that a message asks for, if it says something of inputs that this one does not do.

    `line` is the statement that raised, as it is written.
    """
    if ".grad" in line and "'NoneType'" in message and _OF_NOTHING.search(message):
        return replace(setting, graded=True) if not setting.graded else None
    if "does not require grad and does not have a grad_fn" in message and ".backward(" in line:
        # What has the graph may be a function that stands in, and what that is given.
        graph = replace(setting, graded=True) if not setting.graded else replace(setting, grad=True)
        return graph if graph != setting else None
    if _NO_MODULE.search(message):
        return replace(setting, layers=True) if not setting.layers else None
    parts = _TAKEN_APART.search(message) if _IN_PARTS.search(line) else None
    if parts is not None:
        return _in_parts(setting, int(parts["wanted"]))
    for pattern, answer in _ANSWERS:
        found = pattern.search(message)
        if found is not None:
            made = answer(setting, found)
            return made if made is not None and made != setting and _is_small(made) else None
    return None


_OF_NOTHING = re.compile(r"object has no attribute|^unsupported operand type")
_NO_MODULE = re.compile(r" is not a Module subclass")
_TAKEN_APART = re.compile(r"not enough values to unpack \(expected (?P<wanted>\d+), got \d+\)")
_IN_PARTS = re.compile(r"\bt?(?:chunk|split)\(|\btensor_split\(")


def _in_parts(setting: Setting, count: int) -> Setting | None:
    """What is cut into so many parts is as long as that, and as what other parts asked for."""
    made = replace(setting, size=math.lcm(setting.size, count), last=0)
    return made if made != setting and made.size <= _MOST_IN_PARTS else None


_MOST_IN_PARTS = 64
"""No more is made of what is cut into parts: all sizes are multiplied."""


def _is_small(setting: Setting) -> bool:
    return max(setting.size, setting.last, setting.second, setting.spatial) <= _MOST


def _with_channels(setting: Setting, found: re.Match[str]) -> Setting:
    count = found["shape"].count(",") + 1
    return replace(setting, dimensions=count, second=int(found["wanted"]), channels=0, batch=0)


def _with_second(setting: Setting, found: re.Match[str]) -> Setting:
    wanted = int(found["wanted"])
    return replace(setting, second=wanted, channels=0) if setting.dimensions > 2 else replace(setting, last=wanted)


def _with_dimensions(setting: Setting, found: re.Match[str]) -> Setting:
    return replace(setting, dimensions=int(found["wanted"]), batch=0)


def _with_shape(setting: Setting, found: re.Match[str]) -> Setting:
    """What is written in place has fewer dimensions than what it is to take in."""
    sizes = [int(size) for size in found["shape"].split(",") if size.strip()]
    made = replace(setting, dimensions=len(sizes), batch=0)
    return made if made != setting else _matched(setting, sizes[-1:], int(found["wanted"]))


def _with_size(setting: Setting, found: re.Match[str]) -> Setting:
    """Two sizes have to be one: that of inputs is the other one, which the code says itself."""
    return _matched(setting, [int(found["one"])], int(found["other"]))


def _matched(setting: Setting, given: list[int], other: int) -> Setting:
    sizes = {*given, other}
    if len(sizes) != 2:
        return setting
    for own in (setting.last, setting.second, setting.size):
        if own > 1 and own in sizes:
            wanted = (sizes - {own}).pop()
            if wanted == own * own:
                # It is computed from this one, and would be another square: one fits.
                return replace(setting, size=1, spatial=1, last=0, second=0)
            if own == setting.last:
                return replace(setting, last=wanted)
            return replace(setting, second=wanted) if own == setting.second else replace(setting, size=wanted)
    return setting


def _with_last(setting: Setting, found: re.Match[str]) -> Setting:
    return replace(setting, last=int(found["wanted"]))


def _with_batch(setting: Setting, found: re.Match[str]) -> Setting:
    return replace(setting, batch=int(found["wanted"]))


def _with_doubles(setting: Setting, found: re.Match[str]) -> Setting:
    return replace(setting, dtype="float64")


def _multiplied(setting: Setting, found: re.Match[str]) -> Setting | None:
    """A matrix does not fit: its last dimension is another one, or an image that was made flat is larger."""
    given, wanted = int(found["given"]), int(found["wanted"])
    if setting.dimensions < 4 and setting.last != wanted:
        return replace(setting, last=wanted)
    if setting.dimensions < 4 and wanted == setting.size == int(found["out"]) != given:
        # What is given is as the file makes it, and the matrix is one that stands in: it is made for that.
        return replace(setting, size=given, last=0)
    before = setting.size if setting.dimensions >= 4 else setting.spatial
    side = before * (wanted / max(given, 1)) ** 0.5
    near = min(_SIDES, key=lambda number: abs(number - side))
    side = near if near != before else round(side)
    return replace(setting, size=side) if setting.dimensions >= 4 else replace(setting, last=0, spatial=side)


def _viewed(setting: Setting, found: re.Match[str]) -> Setting | None:
    """What is seen as rows of a length is not that long: its last dimension is, or an image of that many points."""
    sizes = [int(size) for size in found["shape"].split(",")]
    if 0 in sizes:
        return _of_heads(setting, found)
    wanted = math.prod(size for size in sizes if size > 0)
    if -1 not in sizes and setting.dimensions >= 4 and setting.size > 1:
        return _of_next_side(setting, smaller=int(found["given"]) > wanted)
    if -1 not in sizes:
        # Numbers that have to fit one another in ways that nothing says: one each fits.
        return replace(setting, size=1, spatial=1) if setting.size > 1 else None
    if setting.dimensions < 4:
        return replace(setting, last=wanted, channels=0)
    per_sample = int(found["given"]) / (setting.batch or (2 if setting.channels else setting.size))
    before = setting.size if setting.second == 0 else setting.spatial
    side = round(before * (wanted / max(per_sample, 1)) ** 0.5)
    return replace(setting, size=side, spatial=side, channels=setting.channels or 1)


def _single(setting: Setting, found: re.Match[str]) -> Setting:
    """Numbers of samples that come from different shapes: one fits one."""
    return replace(setting, size=1, spatial=1, batch=0)


def _fewer(setting: Setting, found: re.Match[str]) -> Setting | None:
    """A list of modules or parameters is asked for more than it has: what it is counted by has as many."""
    count = int(found["count"])
    return replace(setting, size=count, batch=0) if 1 < count < setting.size else None


def _of_heads(setting: Setting, found: re.Match[str]) -> Setting | None:
    """A part of a size is nothing, as where channels are divided among more heads: it is one that many divide."""
    return replace(setting, size=_DIVIDED, last=0, second=0) if setting.size < _DIVIDED else None


def _of_next_side(setting: Setting, *, smaller: bool) -> Setting:
    """Images with the next usual side, for layers that leave one point of a side that nothing tells."""
    before = setting.size if setting.second == 0 else setting.spatial
    sides = [side for side in _SIDES if (side < before if smaller else side > before)]
    side = (max(sides) if smaller else min(sides)) if sides else 1
    return replace(setting, size=side, spatial=side)


def _indexed(setting: Setting, found: re.Match[str]) -> Setting | None:
    wanted = int(found["index"]) + 1
    # What is indexed may be a part, such as all but the first.
    left_out = setting.size - int(found["size"])
    return replace(setting, size=wanted + 1 + left_out) if wanted < 64 and 0 <= left_out <= 2 else None


def _larger(setting: Setting, found: re.Match[str]) -> Setting | None:
    before = max(setting.size, setting.spatial) if setting.spatial != _SPATIAL else setting.size
    side = next((side for side in (32, 64, 128, 256) if side > before), 0)
    return replace(setting, size=side, spatial=side) if side else None


_ANSWERS: tuple[tuple[re.Pattern[str], Callable[[Setting, re.Match[str]], Setting | None]], ...] = tuple(
    (re.compile(text), answer)
    for text, answer in (
        (r"expected input\[(?P<shape>[\d, ]+)\] to have (?P<wanted>\d+) channels", _with_channels),
        (r"Expected \d[Dd] \(unbatched\) or (?P<wanted>\d)[Dd] \(batched\) input", _with_dimensions),
        (r"[Ee]xpected (?:2D or )?(?P<wanted>\d)D input", _with_dimensions),
        (r"running_mean should contain \d+ elements not (?P<wanted>\d+)", _with_second),
        (r"expected input with shape \[\*, (?:\d+, )*(?P<wanted>\d+)\]", _with_last),
        (r"input\.size\(-1\) must be equal to input_size\. Expected (?P<wanted>\d+)", _with_last),
        (r"shapes cannot be multiplied \(\d+x(?P<given>\d+) and (?P<wanted>\d+)x(?P<out>\d+)\)", _multiplied),
        (r"size mismatch, .*\((?P<given>\d+)\).*\((?P<wanted>\d+)x(?P<out>\d+)\)", _multiplied),
        (r"shape '\[(?P<shape>-?\d+(?:, -?\d+)+)\]' is invalid for input of size (?P<given>\d+)", _viewed),
        (r"index (?P<index>\d+) is out of bounds for (?:dimension|axis) \d+ with size (?P<size>\d+)", _indexed),
        (
            r"output with shape \[(?P<shape>[\d, ]*)\] doesn't match the broadcast shape \[(?:\d+, )*(?P<wanted>\d+)\]",
            _with_shape,
        ),
        (r"size of tensor a \((?P<one>\d+)\) must match the size of tensor b \((?P<other>\d+)\)", _with_size),
        (r"^index (?P<count>\d+) is out of range$", _fewer),
        (r"Expected input batch_size \(\d+\) to match target batch_size", _single),
        (r"could not be broadcast to indexing result of shape|could not broadcast input array", _single),
        (r"Input batch size \d+ doesn't match hidden0 batch size (?P<wanted>\d+)", _with_batch),
        (r"(?:same dtype, but got|expected scalar type|expected m1 and m2).*[Dd]ouble", _with_doubles),
        (r"Kernel size can't be greater than actual input size", _larger),
        (r"Output size is too small", _larger),
        (r"Padding size should be less than the corresponding input dimension", _larger),
        (r"^0\.0 cannot be raised to a negative power|division by zero|by zero$", _of_heads),
        (r"weight of size \[\d+, (?P<wanted>\d+)", _with_second),
    )
)
