"""How the gradients of a file are zeroed: dropped, or filled with zeros where they stand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchcopylint.flow.files.world import World


def dropped_for(world: World, owner: int) -> bool:
    """Whether the gradients that a class deals in may be dropped. If it fills them with zeros itself, only it counts:
    what other classes and functions of the file do is done to theirs."""
    own = [unit for unit in world.program.units if unit.owner >= 0 and unit.owner in world.lineage(owner)]
    fills_itself = any(filled_in(world, unit) >= 0 for unit in own)
    return drops_gradients(world, own if fills_itself else None)


def drops_gradients(world: World, units: Sequence[t.Unit] | None = None) -> bool:
    """Whether some code of the file, or of some units, sets `.grad`, or calls `zero_grad()` as it is by default."""
    for unit in world.program.units if units is None else units:
        index = world.index(unit)
        if any(event.name == "grad" and not event.augmented for event in index.of(t.StoreAttribute)):
            return True
        calls = [event for event in index.of(t.Invoke) if event.name == "zero_grad" and not fills(unit, event)]
        if any(not _hands_on(unit, event) for event in calls) or (calls and filled(world) < 0):
            return True
        if any(event.name == "grad" for event in index.of(t.DeleteItem)):
            return True
    return False


def _hands_on(unit: t.Unit, event: t.Invoke) -> bool:
    """Whether a wrapper's `zero_grad(set_to_none)` passes on what it is told: its caller says what becomes of them."""
    told = unit.definitions[event.arguments[0].register] if len(event.arguments) == 1 else None
    named = isinstance(told, t.Load) and any(one.name == told.name for one in unit.parameters)
    return named and unit.name == "zero_grad"


def filled(world: World) -> int:
    """Where some code of the file fills gradients with zeros in place: `opt.zero_grad(set_to_none=False)`,
    `p.grad.zero_()`."""
    return next((site for unit in world.program.units if (site := filled_in(world, unit)) >= 0), -1)


def filled_in(world: World, unit: t.Unit) -> int:
    """Where a unit fills gradients with zeros in place; -1 if it does not."""
    for event in world.index(unit).of(t.Invoke):
        if (event.name == "zero_grad" and fills(unit, event)) or (event.name == "zero_" and _is_grad(unit, event)):
            return event.site
    return -1


def _is_grad(unit: t.Unit, event: t.Invoke) -> bool:
    made = unit.definitions[event.base]
    if isinstance(made, t.Attribute) and made.name == "data":
        made = unit.definitions[made.base]
    return isinstance(made, t.Attribute) and made.name == "grad"


def fills(unit: t.Unit, event: t.Invoke) -> bool:
    """Whether a call of `zero_grad` says that gradients are filled with zeros where they stand."""
    given = [one.register for one in event.arguments if one.keyword in ("", "set_to_none")]
    told = unit.definitions[given[0]] if given and given[0] >= 0 else None
    return isinstance(told, t.Const) and told.value is False
