"""Sums that begin with the first of several things and take up the others in place: `total = rows[0]`, `total += row`.

The first of them is the sum, then, for whoever looks at them behind the loop.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import EntryWritten
from torchcopylint.flow.model import Kind, Sure
from torchcopylint.flow.tapes import uses

if TYPE_CHECKING:
    from torchcopylint.flow.facts import Write
    from torchcopylint.flow.running.machine import Machine

_KINDS = frozenset({Kind.TENSOR, Kind.ARRAY})
_FORMS = frozenset({"augmented", "method"})
_MEASURES = frozenset({"builtins.len", "builtins.type", "builtins.range"})


def found(m: Machine) -> Iterator[EntryWritten]:
    """The first write of each such sum, if the list is looked at behind the loop."""
    for name, binds in m.index.binds.items():
        source = _first_of(m, binds[0].value)
        again = [m.unit.definitions[bind.value] if bind.value >= 0 else None for bind in binds[1:]] if source else []
        if not source or not all(isinstance(event, t.Augment) for event in again):
            continue
        write = next((w for _, w in sorted(m.writes.items()) if _takes_up(m, w, name, binds[0].site, source)), None)
        read = _read_behind(m, source, write.site) if write is not None else None
        if write is not None and read is not None:
            sure = min(write.sure, Sure.LIKELY)
            site, consumer = read
            yield EntryWritten(write.site, name, write.op, f"{source}[0]", name, binds[0].site, site, sure, consumer)


def _first_of(m: Machine, register: int) -> str:
    """The name of the list that a value is the first of."""
    made = m.unit.definitions[register] if register >= 0 else None
    base = m.unit.definitions[made.base] if isinstance(made, t.Item) and len(made.subscript) == 1 else None
    part = made.subscript[0] if isinstance(made, t.Item) and isinstance(base, t.Load) else None
    index = m.unit.definitions[part] if isinstance(part, int) and part >= 0 else None
    first = isinstance(index, t.Const) and index.value == 0 and index.value is not False
    return base.name if first and isinstance(base, t.Load) else ""


def _takes_up(m: Machine, write: Write, name: str, bound: int, source: str) -> bool:
    """Whether a write adds to a sum in a loop over what stands in the list behind the first."""
    if write.root != name or write.derived or write.form not in _FORMS or not write.reads_old or write.site < bound:
        return False
    loops = uses.loops_around(m, write.site)
    outer = uses.loops_around(m, bound)
    if write.kind not in _KINDS or write.sure < Sure.LIKELY or len(loops) != len(outer) + 1:
        return False
    turns = [event for event in m.index.of(t.Iterate) if uses.loops_around(m, event.site) == loops]
    return any(_goes_through_rest(m, event.iterable, source) for event in turns)


def _goes_through_rest(m: Machine, register: int, source: str) -> bool:
    """Whether a loop goes through `rows[1:]`."""
    made = m.unit.definitions[register] if register >= 0 else None
    base = m.unit.definitions[made.base] if isinstance(made, t.Item) else None
    if not isinstance(made, t.Item) or not isinstance(base, t.Load) or base.name != source:
        return False
    part = made.subscript[0]
    lower = m.unit.definitions[part.lower] if isinstance(part, t.Slice) and part.lower >= 0 else None
    return isinstance(lower, t.Const) and lower.value == 1


def _read_behind(m: Machine, source: str, written: int) -> tuple[int, str] | None:
    """Where a list is looked at behind a loop, for what stands in it; and what looks."""
    inside = set(uses.loops_around(m, written))
    for use in uses.of_name(m, source):
        if not use.loads or use.site <= written or not inside.isdisjoint(set(use.loops) - _outer(m, source)):
            continue
        user = m.consumer_of(use.register)
        if isinstance(user, t.Call | t.Invoke) and m.dotted_of(user) in _MEASURES:
            continue
        if not isinstance(user, t.Attribute | t.Item | t.Discard):
            return use.site, "return" if isinstance(user, t.Return) else "look"
    return None


def _outer(m: Machine, source: str) -> set[int]:
    """The loops that a list is bound in, where it is: what follows in these is behind the loop over it."""
    bound = [set(use.loops) for use in uses.of_name(m, source) if not use.loads]
    return set.intersection(*bound) if bound else set()
