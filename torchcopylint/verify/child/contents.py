"""The content of tensors and arrays, remembered from one look to the next.

Everything that was seen is kept alive, so that no address and no `id` is ever used twice in a run. Contents are
compared without asking a tensor for a NumPy array: that would make its storage refuse to be resized, and be seen by
the script.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from .reach import is_array

MOST_BYTES = 1 << 26
"""Bytes of one tensor or array that are watched; of larger ones only the state, not the content."""


@dataclass(slots=True)
class Seen:
    """One object as it was at the last look. `low` and `high` bound the bytes it occupies, `high` exclusive."""

    value: Any
    low: int
    high: int
    region: tuple[Any, ...]
    alias: Any
    copy: Any
    version: int
    requires_grad: bool
    leaf: bool


@dataclass(frozen=True, slots=True)
class Change:
    """How one object's content changed between two looks, with its first differing element before and after."""

    identity: int
    low: int
    high: int
    old_version: int
    version: int
    moved: bool
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Flip:
    """`requires_grad` of one object went from `before` to `after`."""

    identity: int
    before: bool
    after: bool


class Contents:
    """Remembers objects and says what changed. Call `look` outside of any mode of torch, without grad."""

    def __init__(self) -> None:
        self.seen: dict[int, Seen] = {}
        self._kept: list[Any] = []

    def look(self, value: Any) -> tuple[Change | None, Flip | None]:
        """Compare an object with how it was when it was last looked at; nothing for one that is new."""
        known = self.seen.get(id(value))
        if known is None:
            entry = _entry(value)
            if entry is not None:
                self.seen[id(value)] = entry
            else:
                self._kept.append(value)
            return None, None
        if isinstance(value, torch.Tensor):
            return self._look_at_tensor(value, known)
        return self._look_at_array(value, known), None

    def _look_at_tensor(self, value: torch.Tensor, known: Seen) -> tuple[Change | None, Flip | None]:
        flip = None
        requires_grad = value.requires_grad
        if requires_grad != known.requires_grad:
            flip = Flip(id(value), known.requires_grad, requires_grad)
            known.requires_grad = requires_grad
        region = _region(value)
        version = _version(value)
        moved = region != known.region
        if not moved and _same(known.alias, known.copy):
            known.version = version
            return None, flip
        fresh = _entry(value)
        if fresh is None:
            return None, flip
        change = None
        if not moved or not _same(fresh.copy, known.copy):
            before, after = _first_difference(known.copy, fresh.copy)
            change = Change(id(value), fresh.low, fresh.high, known.version, version, moved, before, after)
        self._kept.append(known.alias)
        self.seen[id(value)] = fresh
        return change, flip

    def _look_at_array(self, value: Any, known: Seen) -> Change | None:
        if bytes(value) == known.copy if isinstance(value, bytearray) else value.tobytes() == known.copy.tobytes():
            return None
        fresh = _entry(value)
        if fresh is None:
            return None
        self.seen[id(value)] = fresh
        before, after = _first_difference(known.copy, fresh.copy)
        return Change(id(value), fresh.low, fresh.high, 0, 0, False, before, after)


def _entry(value: Any) -> Seen | None:
    if isinstance(value, bytearray):
        low = _address_of_bytes(value)
        return Seen(value, low, low + len(value), (), None, bytes(value), 0, False, True)
    if is_array(value):
        if value.dtype.hasobject or value.nbytes > MOST_BYTES:
            return None
        low, high = _extent_of_array(value)
        return Seen(value, low, high, (), None, value.copy(), 0, False, True)
    try:
        if value.numel() * value.element_size() > MOST_BYTES or value.layout is not torch.strided:
            return None
        alias = value.detach()
        low, high = extent(value)
        return Seen(
            value, low, high, _region(value), alias, alias.clone(), _version(value), value.requires_grad, value.is_leaf
        )
    except (RuntimeError, NotImplementedError):
        return None


def _region(value: torch.Tensor) -> tuple[Any, ...]:
    return (value.data_ptr(), tuple(value.shape), value.stride(), value.dtype)


def _version(value: torch.Tensor) -> int:
    try:
        return int(value._version)
    except RuntimeError:  # inference tensors count no versions
        return -1


def extent(value: torch.Tensor) -> tuple[int, int]:
    """From where to where in memory a tensor lies, the end exclusive; nowhere for one without elements or strides."""
    if value.numel() == 0 or value.layout is not torch.strided:
        return 0, 0
    low = value.data_ptr()
    span = sum((size - 1) * stride for size, stride in zip(value.shape, value.stride(), strict=True)) + 1
    return low, low + span * value.element_size()


def _extent_of_array(value: Any) -> tuple[int, int]:
    import numpy

    bounds = getattr(numpy.lib, "array_utils", numpy).byte_bounds
    low, high = bounds(value)
    return int(low), int(high)


def _address_of_bytes(value: bytearray) -> int:
    try:
        import numpy
    except ImportError:
        return 0
    return int(numpy.frombuffer(value, dtype=numpy.uint8).__array_interface__["data"][0]) if value else 0


def _same(left: Any, right: Any) -> bool:
    if left.shape != right.shape or left.dtype != right.dtype:
        return False
    if torch.equal(left, right):
        return True
    if not left.dtype.is_floating_point and not left.dtype.is_complex:
        return False
    # NaN differs from itself, and is no change.
    return bool(((left == right) | ((left != left) & (right != right))).all())


def _first_difference(before: Any, after: Any) -> tuple[str, str]:
    """The first element that differs, as text; shapes where those differ."""
    if isinstance(before, bytes):
        where = next((i for i, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), 0)
        return str(before[where : where + 1]), str(after[where : where + 1])
    if tuple(before.shape) != tuple(after.shape):
        return f"shape {tuple(before.shape)}", f"shape {tuple(after.shape)}"
    old, new = before.reshape(-1), after.reshape(-1)
    differing = (old != new).nonzero()
    where = int(differing[0][0]) if len(differing) and len(differing[0]) else 0
    return _text(old[where].item()), _text(new[where].item())


def _text(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
