"""In which grad mode the functions of a file are called, and whether backward runs over what comes of them."""

from __future__ import annotations

from collections.abc import Sequence

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import Relation
from torchcopylint.flow.files.world import World
from torchcopylint.flow.graphs import cut_by_callers
from torchcopylint.flow.model import Fact
from torchcopylint.flow.program import serving
from torchcopylint.flow.running.machine import Machine

MAX_CALLERS = 2
"""By so many calls a function may be away from the one that runs backward over what comes of it."""


def feeds_backward(world: World, number: int, depth: int = MAX_CALLERS) -> bool:
    """Whether a function that runs backward calls this one, while autograd records, or one that calls it does, and does
    not cut off what it gets."""
    for caller, mode in world.call_modes.get(number, ()):
        made = world.machines.get(caller) if mode.recording > 0 else None
        if (
            made is not None
            and not cut_by_callers.does(made, number)
            and (
                made.backward.trains
                or (depth > 1 and made.results.returned and feeds_backward(world, caller, depth - 1))
            )
        ):
            return True
    return False


def without_grad(world: World, m: Machine, found: Sequence[Relation]) -> Fact:
    """Whether every call turns recording off: as the file says, or, if it does not and something that was found rests
    on it, the project."""
    called = _called_in_file(world, m.unit.number)
    if called is not Fact.UNKNOWN or not _ask_project(world, m, found):
        return called
    return Fact.YES if world.outside.all_off(_class_name(world, m.unit), m.unit.name) else called


def is_recorded_elsewhere(world: World, m: Machine, found: Sequence[Relation]) -> bool:
    """Whether another file surely calls a function with recording on, and something that was found rests on that."""
    return _ask_project(world, m, found) and world.outside.is_recorded(_class_name(world, m.unit), m.unit.name)


def _ask_project(world: World, m: Machine, found: Sequence[Relation]) -> bool:
    """Whether something that was found in a function rests on how others call it, whom one can ask for by its name."""
    if m.backward.trains or not any(getattr(fact, "assumed", False) for fact in found):
        return False
    owner = world.program.classes[m.unit.owner] if m.unit.owner >= 0 else None
    within = world.program.units[owner.body].parent if owner is not None else m.unit.parent
    return m.unit.kind == "function" and within == 0 and world.is_of_file(m.unit.number)


def _class_name(world: World, unit: t.Unit) -> str:
    return world.program.classes[unit.owner].name if unit.owner >= 0 else ""


def _called_in_file(world: World, number: int) -> Fact:
    """Whether every call in the file turns recording off. Where a caller's own mode is assumed, its callers are asked
    in turn, unless it runs backward itself, or is a constructor: then it records."""
    pending, seen = [number], {number}
    off = on = False
    unknown = number not in world.call_modes
    while pending:
        current = pending.pop()
        for caller, mode in world.call_modes.get(current, ()):
            if mode.recording is Fact.YES and caller in world.machines and _records(world.machines[caller]):
                on = True
            elif mode.assumed and caller in world.call_modes:
                pending += [caller] if caller not in seen else []
                seen.add(caller)
            elif mode.recording is Fact.NO and serving.is_trained_elsewhere(world, current, caller):
                unknown = True
            elif mode.recording is Fact.NO:
                off = True
            elif mode.recording is Fact.YES and not mode.assumed:
                on = True
            else:
                unknown = True
    return Fact.NO if on else Fact.YES if off and not unknown else Fact.UNKNOWN


def _records(m: Machine) -> bool:
    """Whether nobody calls a unit with recording off: backward needs it, and who builds a model leaves it on."""
    return m.backward.trains or (m.unit.name == "__init__" and m.unit.owner >= 0)
