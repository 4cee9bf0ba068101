"""What a method that is called looks at of the fields of its object: the caller has them read there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import FieldRead
from torchcopylint.flow.storages import reading, slots

if TYPE_CHECKING:
    from torchcopylint.flow.model import Mark, Value
    from torchcopylint.flow.running.machine import Machine


def by_call(m: Machine, number: int, bound: Mapping[str, Value], site: int, name: str) -> None:
    """A function or method of the file, by the number of its unit, is called: what has been written of the fields of
    its object, or of a parameter, that it looks at is read."""
    callee = m.world.machines.get(number)
    if callee is None or not callee.unit.parameters:
        return
    for parameter, value in bound.items():
        marked = [slot for ref in value.refs for slot in m.state.slot_names(ref) if _is_marked(m, slot)]
        if not marked:
            continue
        own = callee.unit.owner >= 0 and parameter == callee.unit.first
        looked_at = _of_its_object(callee) if own else _of_parameter(callee, parameter, value, m)
        for slot in marked:
            if slot[1][1:] in looked_at:
                held = slots.slot_value(m, slot)
                if own:
                    held = held._replace(
                        marks=frozenset(mark for mark in held.marks if not _by_method(m, mark, callee))
                    )
                reading.read(m, held, site, "argument", name)


def _of_its_object(callee: Machine) -> set[str]:
    """The fields that a method looks at."""
    return {fact.field for facts in callee.facts.values() for fact in facts if isinstance(fact, FieldRead)}


def _of_parameter(callee: Machine, parameter: str, value: Value, m: Machine) -> set[str]:
    """The fields of a parameter that a function takes out, itself or by a property."""
    found: set[str] = set()
    for event in callee.index.of(t.Attribute):
        base = callee.unit.definitions[event.base]
        if not isinstance(base, t.Load) or base.name != parameter:
            continue
        found.add(event.name)
        for ref in value.refs:
            local = m.world.local_class(m.state.object(ref).type)
            number = m.world.method(local, event.name) if local is not None else None
            handing = m.world.machines.get(number) if number is not None else None
            found |= _of_its_object(handing) if handing is not None else set()
    return found


def _by_method(m: Machine, mark: Mark, callee: Machine) -> bool:
    """Whether another method of the object has written: what its methods do to each other is a matter of the class."""
    write = m.writes.get(mark.write)
    written = m.called.part_writes.get(write.site) if write is not None else None
    return written is not None and m.world.unit(written[0]).owner == callee.unit.owner


def _is_marked(m: Machine, slot: tuple[int, str]) -> bool:
    cell = m.state.cell(slot) if slot[1].startswith(".") else None
    return cell is not None and bool(cell.marks)
