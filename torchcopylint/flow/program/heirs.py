"""Inherited methods as they run in a class that overrides what they call.

A base says `state = self.advance(state)`, an heir writes the state in place there: the fault is in neither alone. So
each inherited method that goes through an overridden one is run once more, on an object of the heir's class.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from torchcopylint.flow import tape as t

if TYPE_CHECKING:
    from torchcopylint.flow.interprocedural.classes import Classes

MAX_PASSES = 40
"""So many inherited methods of one file are run again."""


class Inherited(NamedTuple):
    """The method of the unit `number` is run on an object of the class `heir`, which overrides what it calls."""

    number: int
    heir: int


def inherited(world: Classes) -> list[Inherited]:
    """The methods that are worth another run, callees first: each that calls, on its own object, what a class below it
    overrides, or another of these."""
    found: list[Inherited] = []
    for heir in world.program.classes:
        lineage = world.lineage(heir.number)
        if len(lineage) < 2 or not heir.methods:
            continue
        above = {
            unit.name: (unit.number, _own_calls(world, unit))
            for unit in world.program.units
            if unit.owner in lineage
            and unit.owner != heir.number
            and unit.kind == "function"
            and unit.name != "__init__"
            and world.method(heir.number, unit.name) == unit.number
        }
        other = {name for name in heir.methods if name not in above}
        while again := [name for name, (_, calls) in above.items() if name not in other and calls & other]:
            other.update(again)
            found += [Inherited(above[name][0], heir.number) for name in again]
    return found[:MAX_PASSES]


def _own_calls(world: Classes, unit: t.Unit) -> set[str]:
    """The methods that a method calls on its own object."""
    me = unit.first
    bases = ((event, unit.definitions[event.base]) for event in world.index(unit).of(t.Invoke))
    return {event.name for event, base in bases if isinstance(base, t.Load) and base.name == me}
