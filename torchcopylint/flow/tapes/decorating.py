"""Decorators of a file that have to do with grad mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t

if TYPE_CHECKING:
    from torchcopylint.flow.files.world import World

MODES = frozenset({"no_grad", "inference_mode", "enable_grad", "set_grad_enabled"})
"""Parts of the names of what changes the grad mode."""


def sets_mode(world: World, decorator: str) -> bool:
    """Whether a decorator of this file has to do with grad mode."""
    inside = [unit for unit in world.program.units if unit.qualname.partition(".")[0] == decorator]
    events = (event for unit in inside for event in unit.definitions)
    return any(isinstance(event, t.Attribute | t.Invoke) and event.name in MODES for event in events)
