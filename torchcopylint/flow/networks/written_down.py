"""Where a layer or a chain of layers is written down: the event that made what a register or a field holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.tapes import uses

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine


def made(m: Machine, register: int, steps: int) -> tuple[Machine, t.Event] | None:
    """The event that made what a register holds, with the machine of its unit, through at most so many names and fields
    of `self` that are set once."""
    event = m.unit.definitions[register] if register >= 0 and steps else None
    if isinstance(event, t.Load):
        bound = uses.bindings_before(m, event)
        if not bound and event.name not in m.unit.bound and m.unit.number != 0:
            m = m.world.machines[0]
            bound = [bind.value for bind in m.index.binds.get(event.name, ())]
        return made(m, bound[0], steps - 1) if len(bound) == 1 else None
    if isinstance(event, t.Attribute) and m.unit.owner >= 0 and uses.is_self(m, event.base):
        return in_field(m, event.name, steps)
    return (m, event) if event is not None else None


def in_field(m: Machine, name: str, steps: int) -> tuple[Machine, t.Event] | None:
    """The same for what only a constructor puts into a field of `self`."""
    return None if m.unit.name == "__init__" else of_class(m, m.unit.owner, name, steps)


def of_class(m: Machine, number: int, name: str, steps: int) -> tuple[Machine, t.Event] | None:
    """The same for what only the constructor of a class of the file puts into a field of its instances."""
    if m.world.setters(name):
        return None
    for current in m.world.lineage(number):
        initial = m.world.method(current, "__init__")
        where = m.world.machines.get(initial) if initial is not None and m.world.is_of_file(initial) else None
        if where is None and m.unit.number == initial:
            where = m
        stores = where.index.stores.get(name, ()) if where is not None else ()
        if where is not None and stores:
            return made(where, stores[0].value, steps - 1) if len(stores) == 1 else None
    return None
