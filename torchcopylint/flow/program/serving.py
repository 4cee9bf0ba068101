"""Methods that the `forward` of their class calls: what they return, backward runs over as it does over its result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import Fact
from torchcopylint.flow.values import kinds

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


def is_trained_elsewhere(world: World, number: int, caller: int) -> bool:
    """Whether a method of a network goes through its `forward` without recording, as in `generate`, where that makes a
    loss for somebody in another file."""
    unit, asking = world.program.units[number], world.program.units[caller]
    own = unit.name == "forward" and unit.owner >= 0 and asking.owner >= 0 and asking.name != "forward"
    if not own or not {unit.owner, asking.owner} <= {*world.lineage(unit.owner), *world.lineage(asking.owner)}:
        return False
    made = [event.name for event in world.index(unit).of(t.Invoke)]
    return any(map(kinds.named_loss, world.index(unit).binds)) or any(one.endswith("cross_entropy") for one in made)


def is_differentiated(world: World, unit: t.Unit) -> bool:
    """Whether a function takes derivatives with a graph of their own, and returns something: backward is to run over
    what it makes of them."""
    index = world.index(unit)
    calls: list[t.Call | t.Invoke] = [*index.of(t.Call), *index.of(t.Invoke)]
    given = [one for event in calls for one in event.arguments]
    asked = [unit.definitions[one.register] for one in given if one.keyword == "create_graph"]
    returns = any(event.value >= 0 for event in index.of(t.Return))
    return returns and any(isinstance(one, t.Const) and one.value is True for one in asked)
