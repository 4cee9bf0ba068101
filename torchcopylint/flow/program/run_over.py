"""What a class runs backward over of what its own methods return: `loss = self.compute(batch)`, `loss.backward()`.

A base class that trains says so to the files that derive from it: there, backward runs over what such a method returns
as soon as it has ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchcopylint.flow.interprocedural.classes import Classes
    from torchcopylint.flow.tapes.index import UnitIndex

MAX_STEPS = 12
"""By so many registers, what backward runs over is followed back."""
_BACKWARD = frozenset({"backward", "manual_backward"})
_SAME = frozenset({"mean", "sum", "scale"})


def methods_of(world: Classes, info: t.ClassInfo) -> frozenset[tuple[str, bool]]:
    """The methods of its own object that a class calls, and runs backward over the results of; with each, whether that
    is the first of several results."""
    units = [world.program.units[number] for number in info.methods.values()]
    return frozenset(found for unit in units for found in _in(unit, world.index(unit)))


def _in(unit: t.Unit, index: UnitIndex) -> Iterator[tuple[str, bool]]:
    for event in index.of(t.Invoke):
        if event.name in _BACKWARD:
            over = [event.base, *(one.register for one in event.arguments if not one.keyword)][:2]
            yield from _called(unit, index, over)


def _called(unit: t.Unit, index: UnitIndex, registers: list[int]) -> Iterator[tuple[str, bool]]:
    """The own methods that some registers are computed by."""
    pending, seen = [(register, False) for register in registers], set(registers)
    while pending and len(seen) < MAX_STEPS:
        register, first = pending.pop()
        event = unit.definitions[register] if register >= 0 else None
        further: tuple[int, ...] = ()
        if isinstance(event, t.Load):
            bound = index.binds.get(event.name, ())
            further = tuple(one.value for one in bound) if len(bound) == 1 else ()
        elif isinstance(event, t.Operate) and event.symbol in ("/", "*"):
            further = event.operands[:1]
        elif isinstance(event, t.Unpack) and event.position == 0:
            first, further = True, (event.value,)
        elif isinstance(event, t.Invoke):
            owner = unit.definitions[event.base] if event.base >= 0 else None
            if isinstance(owner, t.Load) and owner.name == unit.first:
                yield event.name, first
            elif event.name in _SAME:
                further = (event.arguments[0].register,) if event.name == "scale" and event.arguments else (event.base,)
        pending += [(one, first) for one in further if one not in seen]
        seen.update(further)
