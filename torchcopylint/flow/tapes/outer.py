"""What a function writes or returns of the names that it takes from outside: `def run(): ... optimizer.step()`.

A summary names such a thing like a parameter that every call passes, under a name that no parameter can have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import GLOBAL, UNKNOWN, Kind, Object, Sure, Value
from torchcopylint.flow.values import memory

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

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


def seen(m: Machine) -> dict[int, str]:
    """The objects that a unit finds under outer names, one under each, with what a summary calls that name."""
    if m.unit.number == 0:
        return {}
    names = sorted({event.name for event in m.index.of(t.Load)} - m.unit.bound)
    held = [(name, m.state.refs_of(name)) for name in names]
    return {refs[0]: named(name) for name, refs in held if refs == (m.number("outer", name),)}


def named(name: str) -> str:
    """What a summary calls an outer name."""
    return f"{_MARK}{name}"


def told(parameter: str) -> str:
    """The name that a summary means, as the user wrote it."""
    return parameter.removeprefix(_MARK)


def is_outer(parameter: str) -> bool:
    """Whether what a summary calls a parameter is an outer name."""
    return parameter.startswith(_MARK)


def list_of(m: Machine, unit: int, parameter: str) -> Value:
    """The list that a call of a unit finds under an outer name, also where that is a closure's own."""
    key = key_of(m, unit, parameter)
    if key is None or not key.startswith("%"):
        return value_of(m, unit, parameter)
    cell = m.state.cell(key)
    if cell is None:
        made = memory.fresh(m, -1, Object(Kind.LIST, Sure.LIKELY, text=told(parameter)), key)
        memory.bind(m, key, made, -1)
        return made
    return Value(cell.refs, cell.kind, cell.const, cell.marks, key)


def value_of(m: Machine, unit: int, parameter: str) -> Value:
    """What a call of a unit finds under an outer name, as the caller knows it; unknown if it means another."""
    name = parameter.removeprefix(_MARK)
    if not m.world.is_own(unit):
        return UNKNOWN
    owner = m.world.binder(unit, name)
    if owner != m.unit.number and (name in m.unit.bound or m.world.binder(m.unit.number, name) != owner):
        return UNKNOWN
    cell = m.state.cell(name)
    if cell is None and owner != m.unit.number:
        memory.bind(m, name, m.world.outer(m, name), -1)
        cell = m.state.cell(name)
    return Value(cell.refs, cell.kind, cell.const, cell.marks, name) if cell is not None else UNKNOWN


def key_of(m: Machine, unit: int, parameter: str) -> str | None:
    """The name under which a caller keeps what a call of a unit finds under an outer name.

    That is the name itself, where it means the same; and one that nobody can write, where it belongs to a function that
    has returned the unit, a closure.
    """
    name = told(parameter)
    if not m.world.is_own(unit):
        return None
    owner = m.world.binder(unit, name)
    if owner == m.unit.number or (name not in m.unit.bound and m.world.binder(m.unit.number, name) == owner):
        return name
    around = m.unit.number
    while around > 0:
        if around == owner:
            return None
        around = m.world.unit(around).parent
    return f"%{owner} {name}" if owner > 0 else None
