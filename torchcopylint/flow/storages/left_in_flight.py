"""Copies to the host that a method starts and leaves under way in a field, where another method looks at them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import ReadInFlight
from torchcopylint.flow.model import CONTAINERS, Mark
from torchcopylint.flow.storages.transfers import WAITS

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine
    from torchcopylint.flow.tapes.index import UnitIndex

_LOOKING = frozenset({"item", "tolist", "numpy"})
_NUMBERS = frozenset({"float", "int", "bool"})
_TAKING = frozenset({"get", "items", "pop", "popitem", "popleft", "values", "copy"})
_GOING_THROUGH = frozenset({"enumerate", "list", "reversed", "sorted", "tuple", "zip"})
_WAITING = tuple(part for part in WAITS if part != "join")
_EVENTS = frozenset({"record", "query", "Event"})
MAX_EXPRESSION = 30
"""So far back it is followed where something that is looked at was taken from."""


def found(m: Machine) -> Iterator[ReadInFlight]:
    """The first look of another method of the class at each such copy, if nobody in the file waits for anything."""
    if not m.holding.flights or m.unit.owner < 0 or not m.unit.parameters:
        return
    for field, copy in sorted(_left(m)):
        look = min(_looks(m, field), key=lambda one: one[0], default=None)
        if look is not None and not _waits_somewhere(m):
            yield ReadInFlight(copy, m.holding.flights[copy], look[1], look[0], elsewhere=True)


def _left(m: Machine) -> set[tuple[str, int]]:
    """The fields of `self` that hold a copy, or a container with one, for which the unit has not waited."""
    me = m.number("argument", m.unit.first)
    found: set[tuple[str, int]] = set()
    for slot in m.state.slot_names(me):
        cell = m.state.cell(slot) if slot[1].startswith(".") else None
        marks: set[Mark] = set(cell.marks) if cell is not None else set()
        for ref in cell.refs if cell is not None else ():
            inner = m.state.slot_names(ref) if m.state.object(ref).kind in CONTAINERS else ()
            marks.update(mark for one in inner if (held := m.state.cell(one)) is not None for mark in held.marks)
        under_way = [
            mark.write
            for mark in marks
            if mark.write in m.holding.flights
            and not m.state.get(f"@landed{mark.write}")
            and not m.state.get(f"@anywhere{mark.write}")
        ]
        found.update((slot[1][1:], copy) for copy in under_way)
    return found


def _looks(m: Machine, field: str) -> Iterator[tuple[int, str]]:
    """Where other methods of the class look at what a field holds, or an element of that, and what they call it."""
    for unit in m.world.program.units:
        if unit.owner != m.unit.owner or unit.number == m.unit.number or not unit.parameters:
            continue
        index = m.world.index(unit)
        events: list[t.Invoke | t.Call] = [*index.of(t.Invoke), *index.of(t.Call)]
        for event in events:
            looked = _looked_at(unit, event)
            if looked >= 0 and _is_of_field(unit, index, looked, field):
                made = unit.definitions[looked]
                name = made.name.partition("#")[0] if isinstance(made, t.Load) else f"{unit.first}.{field}"
                yield event.site, name


def _looked_at(unit: t.Unit, event: t.Invoke | t.Call) -> int:
    if isinstance(event, t.Invoke):
        return event.base if event.name in _LOOKING else t.NO_REGISTER
    function = unit.definitions[event.function] if event.function >= 0 else None
    number = isinstance(function, t.Load) and function.name in _NUMBERS and len(event.arguments) == 1
    return event.arguments[0].register if number else t.NO_REGISTER


def _is_of_field(unit: t.Unit, index: UnitIndex, register: int, field: str) -> bool:
    """Whether a value is what a field of `self` holds, or was taken out of it."""
    pending, seen = [register], {t.NO_REGISTER}
    while pending and len(seen) < MAX_EXPRESSION:
        register = pending.pop()
        event = unit.definitions[register] if register not in seen else None
        seen.add(register)
        if isinstance(event, t.Attribute):
            base = unit.definitions[event.base]
            if event.name == field and isinstance(base, t.Load) and base.name == unit.first:
                return True
        elif isinstance(event, t.Load):
            pending += [bind.value for bind in index.binds.get(event.name, ())]
        elif isinstance(event, t.Iterate):
            pending.append(event.iterable)
        elif isinstance(event, t.Unpack):
            pending.append(event.value)
        elif isinstance(event, t.Item) or (isinstance(event, t.Invoke) and event.name in _TAKING):
            pending.append(event.base)
        elif isinstance(event, t.Call):
            function = unit.definitions[event.function] if event.function >= 0 else None
            if isinstance(function, t.Load) and function.name in _GOING_THROUGH:
                pending += [argument.register for argument in event.arguments]
    return False


def _waits_somewhere(m: Machine) -> bool:
    """Whether anything in the file waits for something, by its name, or has an event that may be waited for.

    What the heirs of the class do, they do on objects of their own.
    """
    for unit in m.world.program.units:
        if unit.owner != m.unit.owner and unit.owner >= 0 and m.unit.owner in m.world.lineage(unit.owner):
            continue
        index = m.world.index(unit)
        names = [*(event.name for event in index.of(t.Invoke)), *(event.name for event in index.of(t.Attribute))]
        if any(name in _EVENTS or any(part in name for part in _WAITING) for name in names):
            return True
    return False
