"""Fields that are set to what methods of the same object make: `self.model = self.build()`.

A class below may make something else there, so what the base makes says nothing of what the field holds in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t

if TYPE_CHECKING:
    from torchcopylint.flow.interprocedural.classes import Classes

_PUTTING = frozenset({"append", "appendleft", "add", "extend", "insert", "setdefault", "update"})


def of(world: Classes, number: int) -> tuple[tuple[str, str], ...]:
    """The fields of `self` that a class of this file sets so, each with a method that makes what it holds."""
    found: set[tuple[str, str]] = set()
    for unit in (world.unit(method) for method in world.program.classes[number].methods.values()):
        for event in world.index(unit).of(t.StoreAttribute):
            made = unit.definitions[event.value] if event.value >= 0 and _is_own(unit, event.base) else None
            if isinstance(made, t.Unpack):
                made = unit.definitions[made.value] if made.value >= 0 else None
            if isinstance(made, t.Invoke) and _is_own(unit, made.base):
                found.add((event.name, made.name))
    return tuple(sorted(found))


def filled_anew(world: Classes, heir: int, base: int, name: str) -> bool:
    """Whether what a base puts into the container in a field may be made by a method that an heir has of its own.

    Asked of the methods of the base that set the field or put something into it: which of their calls makes an element
    is not followed.
    """
    units = [world.unit(method) for method in world.program.classes[base].methods.values()]
    return any(_goes_through_own(world, heir, base, unit, set()) for unit in units if _fills(world, unit, name))


def _fills(world: Classes, unit: t.Unit, name: str) -> bool:
    index = world.index(unit)
    if any(event.name == name and _is_own(unit, event.base) for event in index.of(t.StoreAttribute)):
        return True
    bases = [event.base for event in index.of(t.StoreItem)]
    bases += [event.base for event in index.of(t.Invoke) if event.name in _PUTTING]
    loads = (unit.definitions[base] for base in bases if base >= 0)
    return any(isinstance(load, t.Attribute) and load.name == name and _is_own(unit, load.base) for load in loads)


def _goes_through_own(world: Classes, heir: int, base: int, unit: t.Unit, seen: set[int]) -> bool:
    """Whether a method calls, on its own object, what an heir overrides, or another method that does."""
    seen.add(unit.number)
    for event in world.index(unit).of(t.Invoke):
        called = world.method(base, event.name) if _is_own(unit, event.base) else None
        if called is None:
            continue
        if world.method(heir, event.name) != called:
            return True
        if (
            world.is_own(called)
            and called not in seen
            and _goes_through_own(world, heir, base, world.unit(called), seen)
        ):
            return True
    return False


def _is_own(unit: t.Unit, register: int) -> bool:
    base = unit.definitions[register] if register >= 0 else None
    return isinstance(base, t.Load) and base.name == unit.first
