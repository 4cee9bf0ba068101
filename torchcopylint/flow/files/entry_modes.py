"""The grad mode that a unit begins in: as its decorators say, or who calls it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import Fact
from torchcopylint.flow.program import evaluating
from torchcopylint.flow.tapes import decorating
from torchcopylint.flow.values.modes import GRAD_MODES, MODES_BY_NAME
from torchcopylint.flow.values.state import Mode
from torchcopylint.knowledge import table

if TYPE_CHECKING:
    from torchcopylint.flow.files.world import World


def entry_mode(world: World, unit: t.Unit, *, leaves_off: bool) -> Mode:
    """The mode that a unit begins in. `leaves_off` is whether one that was run before has left recording off."""
    for name in world.decorators(unit.number):
        resolved = table.canonical(world.resolve_name(name.partition("(")[0]))
        if resolved in GRAD_MODES:
            return GRAD_MODES[resolved]
        if resolved == "torch.set_grad_enabled":
            return Mode(Fact.NO if "False" in name else Fact.UNKNOWN)
        if decorating.sets_mode(world, name.partition("(")[0]):
            return Mode(Fact.UNKNOWN)
        _, dot, last = name.partition("(")[0].rpartition(".")
        if dot and last in MODES_BY_NAME:
            return MODES_BY_NAME[last]
        if any(mode in last for mode in decorating.MODES):
            # Somebody's own, from elsewhere: `@smart_inference_mode()`.
            return Mode(Fact.UNKNOWN)
    if unit.owner >= 0 and unit.kind == "function" and world.is_function_class(unit.owner):
        # Autograd calls static methods only. Who calls another one does so directly, in whatever mode that is.
        static = "staticmethod" in world.decorators(unit.number)
        return Mode(Fact.NO if static else Fact.UNKNOWN)
    if unit.kind in ("module", "class"):
        return Mode(Fact.YES)
    if unit.owner >= 0 and evaluating.is_called_by_loops(unit, world.base_names(unit.owner), world.program.units):
        return Mode(Fact.NO)
    # Somebody has switched recording off and left it so, such as a constructor: the others find it so, or not.
    return Mode(Fact.UNKNOWN if leaves_off else Fact.YES, Fact.NO, True)
