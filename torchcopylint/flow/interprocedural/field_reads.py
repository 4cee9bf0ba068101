"""What a method that is called looks at of the fields of its object: the caller has them read there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from torchcopylint.flow.facts import FieldRead
from torchcopylint.flow.storages import reading, slots

if TYPE_CHECKING:
    from torchcopylint.flow.model import Value
    from torchcopylint.flow.running.machine import Machine


def by_call(m: Machine, number: int, bound: Mapping[str, Value], site: int, name: str) -> None:
    """A method of the file, by the number of its unit, is called: what has been written of the fields that it looks at
    is read."""
    callee = m.world.machines.get(number)
    if callee is None or callee.unit.owner < 0 or not callee.unit.parameters:
        return
    me = bound.get(callee.unit.first)
    marked = [slot for ref in me.refs for slot in m.state.slot_names(ref) if _is_marked(m, slot)] if me else []
    if not marked:
        return
    looked_at = {fact.field for facts in callee.facts.values() for fact in facts if isinstance(fact, FieldRead)}
    for slot in marked:
        if slot[1][1:] in looked_at:
            reading.read(m, slots.slot_value(m, slot), site, "argument", name)


def _is_marked(m: Machine, slot: tuple[int, str]) -> bool:
    cell = m.state.cell(slot) if slot[1].startswith(".") else None
    return cell is not None and bool(cell.marks)
