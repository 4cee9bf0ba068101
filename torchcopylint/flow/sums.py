"""Sums that go on where they stand: `total = total + loss`, `self.total = self.total + loss`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import gathered, naming, runs
from torchcopylint.flow import tape as t

if TYPE_CHECKING:
    from torchcopylint.flow.machine import Machine
    from torchcopylint.flow.model import Value

_JOINING = frozenset(
    f"torch.{name}" for name in ("cat", "concat", "concatenate", "hstack", "vstack", "row_stack", "dstack")
)


def note(m: Machine, event: t.Bind | t.StoreAttribute, value: Value) -> None:
    """A name or field is set: `total = total + loss` and `outputs = torch.cat([outputs, y])` are sums that go on."""
    made = m.unit.definitions[event.value] if event.value >= 0 else None
    form = "collected" if isinstance(made, t.Call | t.Invoke) else "sum"
    terms = _joined(m, made) if isinstance(made, t.Call | t.Invoke) else ()
    if isinstance(made, t.Operate) and made.symbol == "+":
        terms = made.operands
    if len(terms) != 2:
        return
    for own, other in (terms, terms[::-1]):
        if naming.is_same_place(m, event, m.unit.definitions[own]):
            name, added = naming.text_of(m, own), naming.spelling(m, other)
            if form == "sum":
                gathered.note(m, event.site, m.value(other), name, added)
            if runs.accumulate(m, event.site, m.value(own), m.value(other), name, added, form):
                runs.mark_sum(m, event.site, value)


def _joined(m: Machine, made: t.Call | t.Invoke) -> tuple[int, ...]:
    """What a call joins one behind the other, if it is spelt out there: `torch.cat([a, b])`."""
    if not made.arguments or m.dotted_of(made) not in _JOINING:
        return ()
    display = m.unit.definitions[made.arguments[0].register]
    return tuple(t.operands(display)) if isinstance(display, t.Make) else ()
