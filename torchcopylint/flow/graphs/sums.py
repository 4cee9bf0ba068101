"""Sums that go on where they stand: `total = total + loss`, `self.total = self.total + loss`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.graphs import addends, gathered, runs
from torchcopylint.flow.model import Fact
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from torchcopylint.flow.model import Value
    from torchcopylint.flow.running.machine import Machine

_JOINING = frozenset(
    f"torch.{name}" for name in ("cat", "concat", "concatenate", "hstack", "vstack", "row_stack", "dstack")
)


def note(m: Machine, event: t.Bind | t.StoreAttribute | t.StoreItem, value: Value) -> None:
    """A name, field or item is set: `total = total + loss`, `mean = 0.9 * mean + 0.1 * loss` and
    `outputs = torch.cat([outputs, y])` are sums that go on."""
    if m.state.mode.recording is Fact.NO:
        # What is computed there has no graph, whatever it is computed from.
        return
    made = m.unit.definitions[event.value] if event.value >= 0 else None
    if made.__class__ is t.Call or made.__class__ is t.Invoke:
        _note_joined(m, event, _joined(m, made), value)
        return
    found = addends.of(m, event) if made.__class__ is t.Operate else None
    if found is None:
        return
    site, held, name = found.place.site, m.value(found.own), naming.text_of(m, found.own)
    lasting = runs.stands_in_field(m, found.own)
    for other in found.others:
        gathered.note(m, site, found.own, m.value(other), naming.spelling(m, addends.carried(m, other)))
        if site in m.gathering.own:
            break
    for other in found.others:
        added = naming.spelling(m, addends.carried(m, other))
        if runs.accumulate(m, site, held, addends.of_loss(m, other), name, added, "sum", lasting=lasting):
            runs.mark_sum(m, site, value)
            break


def _note_joined(
    m: Machine, event: t.Bind | t.StoreAttribute | t.StoreItem, terms: tuple[int, ...], value: Value
) -> None:
    for own, other in (terms, terms[::-1]) if len(terms) == 2 else ():
        if naming.is_same_place(m, event, m.unit.definitions[own]):
            name, added = naming.text_of(m, own), naming.spelling(m, other)
            if runs.accumulate(m, event.site, m.value(own), m.value(other), name, added, "collected"):
                runs.mark_sum(m, event.site, value)


def _joined(m: Machine, made: t.Call | t.Invoke) -> tuple[int, ...]:
    """What a call joins one behind the other, if it is spelt out there: `torch.cat([a, b])`."""
    if not made.arguments or m.dotted_of(made) not in _JOINING:
        return ()
    display = m.unit.definitions[made.arguments[0].register]
    return tuple(t.operands(display)) if isinstance(display, t.Make) else ()
