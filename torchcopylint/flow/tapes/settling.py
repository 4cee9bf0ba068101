"""Whether a loop has settled: whether the next turn would go as this one went.

A turn looks at what stands in the state when it begins. What this turn has brought there may be nothing that the next
one can come upon: a name that it binds before it looks at it, an object that nothing holds but such names, or what
earlier turns have left behind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import Cell

if TYPE_CHECKING:
    from torchcopylint.flow.values.state import Delta, State


def has_settled(state: State, changed: Delta, carried: frozenset[str]) -> bool:
    """Whether nothing that a turn has brought to the head of its loop leads to anything new.

    `changed` has what stood there before, where that has changed. `carried` are the names that a turn may look at
    before it binds them.
    """
    slots: list[tuple[int, Cell]] = []
    found: set[int] = set()
    for key, before in changed.items():
        number = key[0] if key.__class__ is tuple else key
        if isinstance(number, int) and number & 1:
            # Of an object of earlier turns.
            if before is not None and _is_held(state, number, carried):
                return False
            continue
        after = state.get(key)
        if isinstance(key, int):
            if before is not None:
                return False
        elif after.__class__ is not Cell:
            return False
        elif isinstance(key, str):
            if key in carried:
                if before is not None or not _is_found(after):
                    return False
                found.update(after.refs)
        elif before is None:
            slots.append((key[0], after))
        elif not isinstance(before, Cell) or not _holds_older_ones(before, after):
            return False
    return _only_found(slots, found, changed)


def _only_found(slots: list[tuple[int, Cell]], found: set[int], changed: Delta) -> bool:
    """Whether nothing was put into new slots of what stays: of objects from before the turn, and of those that it has
    `found`. What it has put into its own objects goes with them."""
    while slots:
        lasting = [cell for ref, cell in slots if ref not in changed or ref in found]
        if not all(map(_is_found, lasting)):
            return False
        slots = [(ref, cell) for ref, cell in slots if ref in changed and ref not in found] if lasting else []
        found = {ref for cell in lasting for ref in cell.refs}
    return True


def _is_found(cell: Cell) -> bool:
    """Whether something stands there because somebody has looked: a name of outside, a field that nobody has set.

    At the next look it is the same.
    """
    return cell.site < 0


def _holds_older_ones(before: Cell, after: Cell) -> bool:
    """Whether all that is new in a slot are the older ones of the objects that it has held."""
    known = {*before.refs, *(ref | 1 for ref in before.refs)}
    return known >= set(after.refs) >= set(before.refs) and after._replace(refs=before.refs) == before


def _is_held(state: State, ref: int, carried: frozenset[str]) -> bool:
    """Whether a slot holds an object, or a name that a turn may look at before it binds it."""
    holders = (key for key in state.holders.get(ref, ()) if not isinstance(key, str) or key in carried)
    return any(ref in state.refs_of(key) for key in holders)


def carried(loop: t.Loop) -> frozenset[str]:
    """The names that a turn of a loop may look at before it has bound them."""
    found: set[str] = set()
    _bound_by((*loop.test, *loop.body), set(), found)
    return frozenset(found)


def _bound_by(tape: t.Tape, bound: set[str], looked_at: set[str]) -> set[str]:
    """The names that are bound behind a tape for sure, if those of `bound` are before it; what it looks at before that
    is added to `looked_at`."""
    for event in tape:
        if event.__class__ is t.Bind:
            bound.add(event.name)
        elif event.__class__ is t.Load or event.__class__ is t.Delete or event.__class__ is t.Reveal:
            name = event.name.partition(".")[0].partition("[")[0] if event.__class__ is t.Reveal else event.name
            looked_at |= {name} - bound
            if event.__class__ is t.Delete:
                bound.discard(name)
        elif event.__class__ is t.Branch:
            arms = [_bound_by(arm, set(bound), looked_at) for arm in event.arms]
            bound = set.intersection(*arms) if arms else bound
        elif event.__class__ is t.Loop:
            bound = _bound_by(event.test, bound, looked_at)
            for part in (event.body, event.orelse):
                _bound_by(part, set(bound), looked_at)
        elif event.__class__ is t.Try:
            for part in t.inner_tapes(event):
                _bound_by(part, set(bound), looked_at)
    return bound
