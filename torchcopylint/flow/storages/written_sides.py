"""Whether memory that a tensor shares with what it was made of is seen to be written, by whoever has one of the two."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from torchcopylint.flow.model import FIELD, GLOBAL
from torchcopylint.flow.tapes import uses

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torchcopylint.flow.facts import Write
    from torchcopylint.flow.files.world import World
    from torchcopylint.flow.running.machine import Machine

Place: TypeAlias = "tuple[int, str]"
"""A field: the class (-1: of which nothing is known, -2: none, it is a name of the module), and its name."""
MAX_CALLERS = 3
"""So many functions may hand on what one of them writes."""
_ANY, _MODULE = -1, -2


def write_of(m: Machine, result: set[int], site: int) -> int:
    """Where the memory that the result of the call at a site has from elsewhere is written, or -1.

    That is in the same unit after the call; anywhere, if it is a field's or a global's, or the result becomes one; or
    where something calls the unit, if it is an argument's.
    """
    shares = [share for ref in result for share in m.state.object(ref & ~1).shares if share.of | 1 not in result]
    storages = {share.storage | 1 for share in shares}
    found = _write_after(m, storages, site)
    if found < 0:
        found = _write_of_places(m, storages, [*_holding(m, result)])
    return found if found >= 0 else _write_by_callers(m, storages, {m.unit.number}, 0)


def places(world: World) -> dict[str, list[tuple[int, int]]]:
    """The fields and globals whose memory is written, by name: the class, and where."""
    found: dict[str, list[tuple[int, int]]] = {}
    for m in [*(world.machines[number] for number in sorted(world.machines)), *world.inherited]:
        for write in m.writes.values():
            # What a constructor fills in is there before anybody else has it.
            if write.form != "assign" and (m.unit.name != "__init__" or m.unit.owner < 0):
                for owner, name in _places_of(m, write):
                    found.setdefault(name, []).append((owner, write.site))
    return found


def _places_of(m: Machine, write: Write) -> set[Place]:
    texts = [write.root, *(_text(m, s) for s in write.storages if _owner(m, s) in (FIELD, GLOBAL))]
    return {place for text in texts if (place := _place(m, text)) is not None}


def _place(m: Machine, text: str) -> Place | None:
    """The field or global that a text like `self.rows[0]` means."""
    head, dot, field = text.partition("[")[0].rpartition(".")
    if not dot:
        return (_MODULE, field) if field and (m.unit.number == 0 or _is_global(m, field)) else None
    return (m.unit.owner if head == m.unit.first and m.unit.owner >= 0 else _ANY, field)


def _is_global(m: Machine, name: str) -> bool:
    return not any(not use.loads for use in uses.of_name(m, name)) and all(p.name != name for p in m.unit.parameters)


def _text(m: Machine, storage: int) -> str:
    return m.state.object(storage).text


def _owner(m: Machine, storage: int) -> str:
    return m.state.object(storage).owner


def _write_after(m: Machine, storages: set[int], site: int) -> int:
    """Where a unit writes one of some storages once it has come by a site, or -1."""
    around = set(uses.loops_around(m, site))
    for write in m.writes.values():
        hit = storages & {storage | 1 for storage in write.storages}
        if not hit or write.form == "assign":
            continue
        # What each turn makes anew is written on its own turn.
        made_inside = [set(uses.loops_around(m, m.state.object(storage & ~1).site)) for storage in hit]
        again = around & set(uses.loops_around(m, write.site))
        if write.site > site or any(again - inside for inside in made_inside):
            return write.site
    return -1


def _holding(m: Machine, result: set[int]) -> Iterable[Place]:
    """The fields that hold the result when the unit ends."""
    receiver = m.number("argument", m.unit.first) if m.unit.owner >= 0 else -1
    for key in [key for key in m.state.entries if isinstance(key, tuple) and str(key[1]).startswith(".")]:
        if {ref | 1 for ref in m.state.refs_of(key)} & result:
            yield (m.unit.owner if key[0] == receiver else _ANY, str(key[1])[1:])


def _write_of_places(m: Machine, storages: set[int], held: list[Place]) -> int:
    texts = [_text(m, storage & ~1) for storage in storages if _owner(m, storage & ~1) in (FIELD, GLOBAL)]
    for owner, name in [*held, *(place for text in texts if (place := _place(m, text)) is not None)]:
        for other, site in m.world.written_places.get(name, ()):
            if _may_be_same(m, owner, other):
                return site
    return -1


def _may_be_same(m: Machine, one: int, other: int) -> bool:
    if _MODULE in (one, other) or _ANY in (one, other):
        return one == other or _MODULE not in (one, other)
    return one in m.world.lineage(other) or other in m.world.lineage(one)


def _write_by_callers(m: Machine, storages: set[int], seen: set[int], depth: int) -> int:
    """Where those that call a unit write what they pass it, once it has returned, or -1."""
    for parameter in m.unit.parameters:
        if m.number("argument", parameter.name) | 1 not in storages:
            continue
        for number, call, passed in m.world.passed_for(m.unit.number, parameter.name):
            caller = m.world.machines.get(number)
            if caller is None:
                continue
            sat_on = {storage | 1 for storage in passed}
            found = _write_after(caller, sat_on, call)
            found = found if found >= 0 else _write_of_places(caller, sat_on, [])
            if found < 0 and depth < MAX_CALLERS and number not in seen:
                found = _write_by_callers(caller, sat_on, seen | {number}, depth + 1)
            if found >= 0:
                return found
    return -1
