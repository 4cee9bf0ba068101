"""What Lightning runs backward over: what `training_step` returns, or what stands under `"loss"` in the dictionary. And
what the trainer of transformers does: what `compute_loss` returns, alone or first (`transformers/trainer.py`). And what
a base class of another file does (`run_over`).

Unless a class says `automatic_optimization = False`, the loop does so as soon as the method has ended
(`lightning/pytorch/loops/optimization/automatic.py`), and then lets the optimizer step.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.program import evaluating

if TYPE_CHECKING:
    from torchcopylint.flow.files.world import World

LOSS = "loss"
STEP = "training_step"
COMPUTED = "compute_loss"
_METHODS = frozenset({STEP, COMPUTED})
_TRAINERS = frozenset({"transformers", "trl"})
_AUTOMATIC = "automatic_optimization"
_BACKWARD = frozenset({"backward", "manual_backward"})


def are_run_over(world: World, unit: t.Unit) -> bool:
    """Whether the loop runs backward over what a unit returns, and, as far as the file goes, nobody else calls it."""
    if unit.owner < 0 or unit.name == "__init__":
        return False
    by_library = unit.name in _METHODS and _is_run_by_a_loop(unit.name, world.base_names(unit.owner))
    if not by_library and by_base(world, unit) is None:
        return False
    for one in world.own_units:
        for event in one.definitions:
            if isinstance(event, t.Invoke) and event.name == unit.name:
                return False
            # Who runs backward there says that the loop does not, here or where nobody looks.
            if isinstance(event, t.Invoke) and event.name in _BACKWARD and one.owner == unit.owner:
                return False
    heirs = [info.number for info in world.program.classes if unit.owner in world.lineage(info.number)]
    family = {number for heir in heirs for number in world.lineage(heir)}
    return not any(_says_otherwise(world, number) for number in family)


def by_base(world: World, unit: t.Unit) -> bool | None:
    """Whether it is the first of its results that a base class of another file runs backward over; `None` if there is
    no such class."""
    for number in world.lineage(unit.owner)[1:]:
        origin = world.class_elsewhere(number)
        facts = world.outside.facts_of_class(*origin) if origin is not None else None
        for name, first in facts.run_over if facts is not None else ():
            if name == unit.name:
                return first
    return None


def _is_run_by_a_loop(name: str, bases: Iterable[str]) -> bool:
    """Whether a method of a class with these bases (by their full names) is what the loop of its library runs."""
    if name == COMPUTED:
        return any(b.partition(".")[0] in _TRAINERS and b.endswith("Trainer") for b in bases)
    return name == STEP and evaluating.is_lightning(bases)


def _says_otherwise(world: World, number: int) -> bool:
    """Whether a class has a say in who runs backward."""
    if world.method(number, _AUTOMATIC) is not None:
        return True
    if not world.is_own_class(number):
        return world.outside.field(number, _AUTOMATIC) is not None
    info = world.program.classes[number]
    return _AUTOMATIC in world.program.units[info.body].bound or any(
        event.name == _AUTOMATIC
        for method in info.methods.values()
        for event in world.index(world.program.units[method]).of(t.StoreAttribute)
    )
