"""Fields that are set to what methods of the same object make: `self.model = self.build()`.

A class below may make something else there, so what the base makes says nothing of what the field holds in it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t

if TYPE_CHECKING:
    from torchcopylint.flow.interprocedural.classes import Classes


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


def _is_own(unit: t.Unit, register: int) -> bool:
    base = unit.definitions[register] if register >= 0 else None
    return isinstance(base, t.Load) and base.name == unit.first
