"""Methods that the `forward` of their class calls: what they return, backward runs over as it does over its result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow.model import Fact

if TYPE_CHECKING:
    from torchcopylint.flow.files.world import World

TRAINED = frozenset({"forward", "__call__", "training_step"})
MAX_DEPTH = 3


def serves_forward(world: World, number: int) -> bool:
    """Whether `forward` calls a method of its class where autograd may record, itself or by one that it calls."""
    units = world.program.units
    owner, pending = units[number].owner, [(number, 0)]
    seen = {number}
    while owner >= 0 and pending:
        current, depth = pending.pop()
        for caller, mode in world.call_modes.get(current, ()):
            if mode.recording is Fact.NO or caller in seen or units[caller].owner != owner:
                continue
            if units[caller].name in TRAINED:
                return True
            seen.add(caller)
            if depth < MAX_DEPTH:
                pending.append((caller, depth + 1))
    return False
