"""Two fields to which a constructor gives one tensor: `self.now = x; self.start = x`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import FieldsTwins
from torchcopylint.flow.model import BUFFERS, Kind
from torchcopylint.flow.storages import keeping
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine


def found(m: Machine) -> Iterator[FieldsTwins]:
    """The pairs of fields that hold one tensor or array when the constructor ends, and for good.

    A parameter is shared on purpose, and so is what gets two names in one assignment.
    """
    if m.unit.name != "__init__" or m.unit.owner < 0 or not m.unit.parameters:
        return
    first: dict[int, tuple[str, int]] = {}
    for slot in m.state.slot_names(m.number("argument", m.unit.first)):
        cell = m.state.cell(slot)
        if cell is None or len(cell.refs) != 1 or cell.site < 0 or cell.plain:
            continue
        obj = m.state.object(cell.refs[0])
        if obj.kind not in BUFFERS or obj.kind is Kind.PARAMETER:
            continue
        name, (before, site) = slot[1][1:], first.setdefault(cell.refs[0], (slot[1][1:], cell.site))
        if before == name or _is_one_assignment(m, before, name):
            continue
        if not any(keeping.is_reset(m, field) for field in (before, name)):
            one, other = (before, name) if site < cell.site else (name, before)
            yield FieldsTwins(max(site, cell.site), one, other, _meet(m, {one, other}), obj.sure)


def _is_one_assignment(m: Machine, one: str, other: str) -> bool:
    """Whether one statement sets both: `self.a = self.b = x`. Then the second name is no oversight."""
    stores = [event for event in m.index.of(t.StoreAttribute) if event.name in (one, other)]
    values = {event.name: event.value for event in stores if naming.text_of(m, event.base) == m.unit.first}
    return len(values) == 2 and values[one] == values[other]


def _meet(m: Machine, fields: set[str]) -> bool:
    """Whether some method of the class takes both fields for operands of one operation: `(self.now - self.start)`."""
    for unit in m.world.program.units:
        for event in unit.definitions if unit.owner == m.unit.owner and unit.number != m.unit.number else ():
            if isinstance(event, t.Operate):
                operands = list(event.operands)
            elif isinstance(event, t.Invoke | t.Call):
                operands = [argument.register for argument in event.arguments]
                operands += [event.base] if isinstance(event, t.Invoke) else []
            else:
                continue
            made = [unit.definitions[register] for register in operands if register >= 0]
            if fields <= {one.name for one in made if isinstance(one, t.Attribute)}:
                return True
    return False
