"""Operations that read a part of a tensor while they write another part of it which overlaps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import Link, OverlappingWrite
from torchcopylint.flow.model import EITHER, TENSORS, How, Object, Part, Region, Share, Value
from torchcopylint.flow.storages import reading
from torchcopylint.flow.tapes import layout
from torchcopylint.flow.values import linear, memory, naming

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine
    from torchcopylint.flow.values.sites import Site

BOUNDED = frozenset({"int", "slice", "name"})
PARTS = frozenset({How.INDEX, How.ROW})
COPIES = frozenset({"[...] =", "copy_"})
FILLS = frozenset({"fill_", "masked_fill_", "index_fill_"})
"""These take their one value before they write anything."""
_PLACED = frozenset(
    ["index_add_", "index_copy_", "index_put_", "index_reduce_", "put_", "scatter_", "scatter_add_", "scatter_reduce_"]
)
"""These write at places that an index tells, and torch refuses them what they write as a source or an index, all of it
or a part (executed under torch 2.13)."""

PICKING = frozenset({"gather", "index_select", "take", "take_along_dim", "masked_select"})
"""These pick elements, and torch refuses them an operand as `out=` (executed under torch 2.13)."""


def note(m: Machine, target: Value, region: Region, sources: Sequence[Value], at: Site) -> None:
    """`target` (of it, `region`) is written from `sources`, element by element: do they overlap without being equal?"""
    if len(target.refs) > 1 and not region:
        _note_turned(m, target, sources, at)
    if len(target.refs) != 1 or at.op in FILLS:
        return
    written = target.refs[0]
    if at.op in _PLACED and note_index(m, target, sources, at):
        return
    mine = {share.storage: share for share in m.state.object(written).shares if share.sure and not share.storage & 1}
    for source in sources:
        if any(_is_slice_of_tensor(m, share) for ref in source.refs for share in m.state.object(ref).shares):
            memory.evidence_tensor(m, source)
        read = m.state.object(source.refs[0]) if len(source.refs) == 1 else Object()
        # Another part of what is written is a tensor, too, whatever it may have been taken for.
        if read.kind not in TENSORS and EITHER not in read.flags:
            continue
        for share in m.state.object(source.refs[0]).shares:
            own = mine.get(share.storage)
            if own is not None and share.sure:
                links = _partly_shared(m, (written, own, region), (source.refs[0], share), at.op in COPIES)
                if links is not None:
                    obj = m.state.object(source.refs[0])
                    bound = source.root is not None and source.refs[0] in m.state.refs_of(source.root)
                    m.fact(OverlappingWrite(at.site, at.name, obj.text, at.op, links if bound else (), obj.sure))
                break


def _note_turned(m: Machine, target: Value, sources: Sequence[Value], at: Site) -> None:
    """`x |= x.t()`, where `x` is one of several tensors, as in a loop that binds it anew: whichever it is, its own
    dimensions are read in another order."""
    for source in sources:
        read = [m.state.object(ref) for ref in source.refs]
        if not all(obj.text.startswith(f"{at.name}.") for obj in read):
            continue
        of = {
            link.of for ref in source.refs for link in m.state.object(ref).shares if link.sure and link.how is How.VIEW
        }
        if of >= {*target.refs} and all(_is_turned(m, ref) for ref in source.refs):
            m.fact(OverlappingWrite(at.site, at.name, read[0].text, at.op, (), min(obj.sure for obj in read)))
            return


def _is_slice_of_tensor(m: Machine, share: Share) -> bool:
    """Whether something is a part of what has turned out to be a tensor since it was taken."""
    return share.when == memory.IF_TENSOR and m.state.object(share.of).kind in TENSORS


def _partly_shared(
    m: Machine, target: tuple[int, Share, Region], source: tuple[int, Share], copies: bool
) -> tuple[Link, ...] | None:
    """The links from what both are parts of down to the source, if the source overlaps the target partly."""
    above = reading.chain_of(m, *target[:2])
    ups = [number for number, _ in above]
    below_read: list[Link] = []
    common = -1
    for number, link in reading.chain_of(m, *source):
        if number in ups:
            common = number
            break
        below_read.append(link)
    below_written = [link for _, link in above[: ups.index(common)]] if common >= 0 else []
    base = next((s.region for s in m.state.object(common & ~1).shares if s.storage == target[1].storage), None)
    if not copies and _is_spread(target, source, base, below_written, below_read):
        return tuple(reversed(below_read))
    reordered = _is_turned(m, source[0]) and [link.how for link in below_read[:1]] == [How.VIEW]
    followed = (*below_written, *below_read[1 if reordered else 0 :])
    if base is None or any(link.how not in PARTS for link in followed):
        return None
    written = (*target[1].region[len(base) :], *target[2])
    read = source[1].region[len(base) :]
    written, read = _counted_back(m, written, read)
    if reordered:
        # The same part in another order; what another part holds is another matter.
        apart = written != read or any(part.kind == "?" for part in written)
    else:
        apart = not partly_overlap(written, read, broadcast=not copies)
    return None if apart else tuple(reversed(below_read))


def _is_spread(
    target: tuple[int, Share, Region],
    source: tuple[int, Share],
    base: Region | None,
    below_written: Sequence[Link],
    below_read: Sequence[Link],
) -> bool:
    """Whether all of something is written, and a part of it, with dimensions of its own, is read again and again on the
    way: `x -= x[:, 0].unsqueeze(1)`. Having fewer elements, it is spread over the rest, in whatever shape."""
    hows = [link.how for link in below_read]
    if base is None or below_written or target[2] or not hows or hows[-1] not in PARTS or {*hows} - {*PARTS, How.VIEW}:
        return False
    parts = _flat(source[1].region[len(base) :])
    return any(part.kind in BOUNDED and part != Part("slice", 0) for part in parts)


def _is_turned(m: Machine, ref: int) -> bool:
    """Whether the dimensions of a source are in another order. `t()` of what has one of them leaves that as it is, and
    nobody asks for it: `a += a.t()`."""
    obj = m.state.object(ref)
    made = m.unit.definitions[m.index.calls[obj.site]] if obj.site in m.index.calls else None
    return layout.is_permuted(obj) or (isinstance(made, t.Invoke) and made.name == "t" and not made.arguments)


def note_index(m: Machine, base: Value, index: Sequence[Value], at: Site) -> bool:
    """`mask[mask] = ...`: a tensor that is its own index, or its own source (`x[order] = x`), is read while it is
    written, which torch refuses."""
    if len(base.refs) != 1 or base.refs[0] & 1 or m.state.object(base.refs[0]).kind not in TENSORS:
        return False
    obj = m.state.object(base.refs[0])
    itself = any(part.refs == base.refs for part in index)
    if itself:
        m.fact(OverlappingWrite(at.site, at.name, obj.text, at.op, (), obj.sure))
    return itself


def partly_overlap(written: Region, read: Region, *, broadcast: bool) -> bool:
    """Whether two parts of one tensor overlap for sure, and are not the same part.

    A part of what is written, spread over it, harms arithmetic (`broadcast`); where it is copied, it is copied onto
    itself as it is. Nor does a part that lies ahead of what is written, in rows that have gaps between them: torch
    goes through a row in its order, so what it reads has not been written yet (measured, on the processor).
    """
    whole = written
    written, read = _aligned(written, read)
    shifted = False
    for place, (one, two) in enumerate(zip(written, read, strict=False)):
        if one == two and one.kind != "?":
            continue
        if one.kind == two.kind == "slice" and _meet(one, two):
            shifted = shifted or not (_is_behind(one, two) and (place > 0 or written is not whole))
        elif not (one.kind == "all" and two.kind in BOUNDED):
            # An index is the same as another one or apart from it; of the rest, nobody knows whether they meet.
            return False
        else:
            shifted = shifted or broadcast
    rest = [*_flat(written[len(read) :]), *_flat(read[len(written) :])]
    if any(part.kind not in (*BOUNDED, "all") for part in rest) or (len(written) > len(read) and rest):
        return False
    return shifted or (broadcast and any(part.kind in BOUNDED for part in rest))


def _counted_back(m: Machine, written: Region, read: Region) -> tuple[Region, Region]:
    """`x[n:] = x[: size - n]`: what is read is as long as what is written, so that `size` is all there is. Or all that
    counts: `x[n:size] = x[: size - n]`. Arithmetic takes one element as well; such bounds are not written for that."""
    matched = [(_open(one, two), _open(two, one)) for one, two in zip(written, read, strict=False)]
    pairs = [(_from_end(m, one, two), _from_end(m, two, one)) for one, two in matched]
    rest = len(pairs)
    return (*(one for one, _ in pairs), *written[rest:]), (*(two for _, two in pairs), *read[rest:])


def _open(late: Part, early: Part) -> Part:
    """A slice up to what the other one stops short of, by what this one begins with, as a slice to the end."""
    short = f"({late.upper} - {late.value})"
    both = late.kind == early.kind == "slice" and early.value in (None, 0)
    start = isinstance(late.value, str) or (isinstance(late.value, int) and late.value > 0)
    return late._replace(upper=None) if both and start and early.upper == short else late


def _from_end(m: Machine, early: Part, late: Part) -> Part:
    """A slice up to something less the bound that another one begins with, as a slice that ends so far from the end."""
    start, cut = late.value, early.upper
    if early.kind != "slice" or late.kind != "slice" or late.upper is not None or early.value not in (None, 0):
        return early
    if isinstance(start, int) and start > 0 and isinstance(cut, str) and cut.endswith(f" - {start})"):
        return early._replace(upper=-start)
    if not isinstance(start, str) or not isinstance(cut, str):
        return early
    if cut.isidentifier():
        bound = [event.value for event in m.index.of(t.Bind) if event.name == cut]
        made = m.unit.definitions[bound[0]] if len(bound) == 1 and bound[0] >= 0 else None
        less = made.operands[1:] if isinstance(made, t.Operate) and made.symbol == "-" else ()
        if [naming.text_of(m, register) for register in less] != [start]:
            return early
    elif not cut.endswith(f" - {start})"):
        return early
    return early._replace(upper=f"-{start}")


def _flat(region: Region) -> Iterator[Part]:
    for part in region:
        if part.kind == "?" and isinstance(part.value, tuple):
            yield from part.value
        else:
            yield part


def _aligned(written: Region, read: Region) -> tuple[Region, Region]:
    """`[..., 1:]` and `[..., :-1]` are compared from the end, where both have as many parts behind the dots."""
    if written and read and written[0].kind == read[0].kind == "?":
        behind = written[0].value, read[0].value
        if all(isinstance(parts, tuple) for parts in behind) and len(behind[0]) == len(behind[1]):  # type: ignore[arg-type]
            return behind  # type: ignore[return-value]
    return written, read


def _shifted(late: Part, early: Part) -> bool:
    """`x[1:]` and `x[:-1]`: everything but an end, and everything but the other end."""
    cut = early.upper
    ends = cut < 0 if isinstance(cut, int) else isinstance(cut, str) and cut.startswith("-")
    starts = late.value > 0 if isinstance(late.value, int) else isinstance(late.value, str)
    return early.value in (None, 0) and late.upper is None and ends and starts


def _meet(one: Part, two: Part) -> bool:
    """Whether two slices, which are not the same, surely overlap."""
    return _shifted(one, two) or _shifted(two, one) or _counted(one, two) or linear.shift(one, two) is not None


def _is_behind(one: Part, two: Part) -> bool:
    """Whether a slice begins before another one."""
    distance = linear.shift(one, two)
    if distance is not None:
        return distance > 0
    lower, other = one.value or 0, two.value or 0
    if isinstance(other, int):
        return isinstance(lower, int) and lower < other
    return isinstance(other, str) and lower == 0


def _counted(one: Part, two: Part) -> bool:
    """Slices whose bounds are all numbers from the start."""
    bounds = []
    for part in (one, two):
        lower, upper = part.value or 0, part.upper
        if not isinstance(lower, int) or not (upper is None or isinstance(upper, int)):
            return False
        if lower < 0 or (upper is not None and upper < 0):
            return False
        bounds.append((lower, upper))
    (a, b), (c, d) = bounds
    return (b is None or c < b) and (d is None or a < d)
