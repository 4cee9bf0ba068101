"""What a function writes of the names that it takes from outside of it: `def run_epoch(loader): ... optimizer.step()`.

A summary names such a thing like a parameter that every call passes, under a name that no parameter can have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import memory
from torchcopylint.flow import tape as t
from torchcopylint.flow.model import GLOBAL, UNKNOWN, Kind, Value

if TYPE_CHECKING:
    from torchcopylint.flow.machine import Machine
    from torchcopylint.flow.world import World

_MARK = "outer "


def paths(m: Machine) -> dict[int, tuple[str, tuple[str, ...]]]:
    """For each storage of an outer name that a unit writes: what a summary calls it, and no way from there."""
    found: dict[int, tuple[str, tuple[str, ...]]] = {}
    for write in m.writes.values():
        for storage in write.storages:
            obj = m.state.object(storage)
            if obj.owner == GLOBAL and m.number("outer", obj.text) == storage:
                found[storage] = (f"{_MARK}{obj.text}", ())
    return found


def keepers(m: Machine) -> dict[int, tuple[str, tuple[str, ...]]]:
    """The outer names of a unit that stand for lists and dictionaries, in the same form as `paths`."""
    found: dict[int, tuple[str, tuple[str, ...]]] = {}
    for name in {event.name for event in m.index.of(t.Load)} - m.unit.bound:
        refs = m.state.refs_of(name)
        obj = m.state.object(refs[0]) if len(refs) == 1 and refs[0] == m.number("outer", name) else None
        if obj is not None and obj.owner == GLOBAL and obj.kind in (Kind.LIST, Kind.DICT):
            found[refs[0]] = (f"{_MARK}{name}", ())
    return dict(sorted(found.items()))


def is_outer(parameter: str) -> bool:
    """Whether what a summary calls a parameter is an outer name."""
    return parameter.startswith(_MARK)


def value_of(m: Machine, unit: int, parameter: str) -> Value:
    """What a call of a unit finds under an outer name, as the caller knows it; unknown if it means another."""
    name = parameter.removeprefix(_MARK)
    if not m.world.is_own(unit):
        return UNKNOWN
    owner = _owner(m.world, unit, name)
    if owner != m.unit.number and (name in m.unit.bound or _owner(m.world, m.unit.number, name) != owner):
        return UNKNOWN
    cell = m.state.cell(name)
    if cell is None and owner != m.unit.number:
        memory.bind(m, name, m.world.outer(m, name), -1)
        cell = m.state.cell(name)
    return Value(cell.refs, cell.kind, cell.const, cell.marks, name) if cell is not None else UNKNOWN


def _owner(world: World, unit: int, name: str) -> int:
    """The unit around a unit that binds a name, as Python looks names up."""
    number = world.unit(unit).parent
    while number > 0 and (world.unit(number).kind == "class" or name not in world.unit(number).bound):
        number = world.unit(number).parent
    return number
