"""Generators that the file asks for one thing after the other, each of which takes the place of the one before.

`segments = collect(env, n)`, and then, turn by turn, `segment = next(segments)`: what is handed out may be one buffer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine
    from torchcopylint.flow.tapes.index import UnitIndex

_PUTTING = frozenset({"append", "extend", "insert", "add", "put", "push", "appendleft", "setdefault", "update"})


def is_asked(m: Machine) -> bool:
    """Whether whoever calls the generator that is run keeps it under a name, and asks it in a loop, at one place, for
    what that loop binds to a name and puts nowhere."""
    unit = m.unit
    if unit.owner >= 0 or not unit.is_generator:
        return False
    calls = [
        (index, use)
        for index in (m.world.index(other) for other in m.world.program.units if other is not unit)
        for load in index.named
        if load.name == unit.name
        for use in [index.consumers.get(load.out)]
    ]
    return bool(calls) and all(_asks_in_turn(index, use) for index, use in calls)


def _asks_in_turn(index: UnitIndex, call: t.Event | None) -> bool:
    kept = index.consumers.get(call.out) if isinstance(call, t.Call) else None
    if not isinstance(kept, t.Bind):
        return False
    uses = [index.consumers.get(load.out) for load in index.of(t.Load) if load.name == kept.name]
    asking = uses[0] if len(uses) == 1 else None
    asks = isinstance(asking, t.Invoke) and asking.name == "__next__"
    if isinstance(asking, t.Call):
        asked = index.unit.definitions[asking.function] if asking.function >= 0 else None
        asks = isinstance(asked, t.Load) and asked.name == "next"
    if not asks or not isinstance(asking, t.Call | t.Invoke) or not index.loops.get(asking.site):
        return False
    taken = index.consumers.get(asking.out)
    return isinstance(taken, t.Bind) and not any(
        _puts(index.consumers.get(load.out), load.out) for load in index.of(t.Load) if load.name == taken.name
    )


def _puts(use: t.Event | None, register: int) -> bool:
    """Whether something is put where it stays: into a container or field, under another name, or out of the unit."""
    if isinstance(use, t.Invoke):
        return use.name in _PUTTING and use.base != register
    if isinstance(use, t.StoreItem | t.StoreAttribute):
        return use.value == register
    return isinstance(use, t.Make | t.Bind | t.Return | t.Yield)
