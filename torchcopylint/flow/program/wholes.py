"""Iterators over all parameters of a module, and what stands twice in what an optimizer is given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import ParameterTwice
from torchcopylint.flow.model import (
    ANY_ELEMENT,
    CONTAINERS,
    LOCAL,
    TENSORS,
    WHOLE,
    Fact,
    Kind,
    Object,
    Part,
    Region,
    Sure,
    Value,
)
from torchcopylint.flow.program import hollow, ties
from torchcopylint.flow.regions import overlap
from torchcopylint.flow.tapes import uses
from torchcopylint.knowledge import table

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

Parts = tuple[tuple[int, Region], ...]
"""Which parts of which storages: by the number of the site's older object, so that loops do not matter."""
MAX_ENTRIES = 32
"""So many entries of what an optimizer is given are compared with one another."""


class Whole(NamedTuple):
    """`X.parameters()`, every one of them: the text of the call, and what it goes through."""

    text: str
    parts: Parts


def parts_of(obj: Object) -> Parts:
    """The parts of storages that an object surely sits on."""
    return tuple((share.storage | 1, share.region) for share in obj.shares if share.sure and not share.when)


def meet(m: Machine, a: Parts, b: Parts) -> bool:
    """Whether two lists of parts surely have something in common that may be trained."""
    common = {one for one, here in a for two, there in b if one == two and overlap(here, there) is Fact.YES}
    return any(not trains_nothing(m, m.state.object(storage & ~1)) for storage in common)


def trains_nothing(m: Machine, obj: Object) -> bool:
    """Whether a module surely has no parameters: an activation that two networks share."""
    if obj.kind is not Kind.MODULE or not obj.type:
        return False
    row = table.module_class(obj.type)
    if row is not None:
        return not (row.parameters or row.nested or row.container)
    local = m.world.local_class(obj.type)
    return local is not None and hollow.has_no_parameters(m.world, local)


# -- what came too late


def note_whole(m: Machine, iterator: Value, text: str, one: Value) -> None:
    """An iterator over every parameter of a module was made."""
    m.owners.wholes[iterator.refs[0] | 1] = (Whole(text, parts_of(m.state.object(one.refs[0]))),)


def note_taken(m: Machine, sources: Sequence[Value], made: Value) -> None:
    """A list was made of all that some containers hold, in turn; where they are parameters, of those themselves."""
    held = [_entries(m, source.refs[0]) if len(source.refs) == 1 else [] for source in sources]
    if made.refs and any(source.refs and source.refs[0] | 1 in m.owners.wholes for source in sources):
        m.owners.wholes[made.refs[0] | 1] = tuple(whole for wholes in held for whole in wholes)


def note_put_together(m: Machine, parts: Sequence[tuple[Value, bool]], made: Value) -> None:
    """A list was written out: of parameters, and of all that some containers hold (`True`): `[*a.parameters(), b]`."""
    found: list[Whole] = []
    for value, spread in parts:
        ref = value.refs[0] if len(value.refs) == 1 else None
        if ref is not None and (spread or m.state.object(ref).kind in TENSORS):
            found += _entries(m, ref)
    m.owners.wholes.pop(made.refs[0] | 1, None)
    if found:
        m.owners.wholes[made.refs[0] | 1] = tuple(found)


def note_grown(m: Machine, target: Value, source: Value, site: int) -> None:
    """A list that nobody else holds grows by all that another container holds, on all paths and once."""
    if len(target.refs) != 1 or len(source.refs) != 1 or site in m.index.on_arms or uses.loops_around(m, site):
        return
    ref = target.refs[0]
    obj = m.state.object(ref)
    more = m.owners.wholes.get(source.refs[0] | 1)
    if more is not None and not ref & 1 and obj.kind is Kind.LIST and obj.owner in ("", LOCAL):
        m.owners.wholes[ref | 1] = (*_entries(m, ref), *more)


def check_twice(m: Machine, given: Value, site: int) -> None:
    """An optimizer is given something: do two of the iterators, or of the groups, hand out the same parameters?"""
    groups = _groups(m, given)
    entries = [(number, whole) for number, group in enumerate(groups) for whole in group][:MAX_ENTRIES]
    for index, (group, whole) in enumerate(entries):
        for other_group, other in entries[:index]:
            if meet(m, whole.parts, other.parts) or _are_tied(m, whole.parts, other.parts):
                across = group != other_group
                m.fact(ParameterTwice(site, whole.text, other.text, across, Sure.PROVEN))
                return


def _are_tied(m: Machine, one: Parts, other: Parts) -> bool:
    """Whether two lists of parts have a parameter in common that the class of their owner has tied."""
    for storage, region in one:
        owner = m.state.object(storage & ~1)
        local = m.world.local_class(owner.type)
        made = m.index.calls.get(owner.site, t.NO_REGISTER)
        call = m.unit.definitions[made] if made >= 0 else None
        theirs = [also for held, also in other if held == storage and local is not None]
        for tie in ties.of(m.world, local) if local is not None and theirs else ():
            if not ties.holds(m.world, local or 0, tie, m.unit, call):
                continue
            if any(_meet_by(here, there, tie) for also in theirs for here, there in ((region, also), (also, region))):
                return True
    return False


def _meet_by(here: Region, there: Region, tie: ties.Tie) -> bool:
    """Whether a part of the one field of a tie and a part of the other have a parameter in common."""
    if tie.name:
        return _covers(here, tie.field, tie.name) and _covers(there, tie.other, tie.other_name)
    fields = (Part("field", tie.field), Part("field", tie.other))
    return (*here[:1], *there[:1]) == fields and overlap(here[1:], there[1:]) is Fact.YES


def _covers(region: Region, field: str, name: str) -> bool:
    """Whether a part of a module is all of what a field holds, or that parameter of it."""
    first, *rest = (*region, None)
    if first is None or first != Part("field", field):
        return False
    return rest[0] is None or rest[0].kind in WHOLE or rest[0] == Part("field", name)


def _groups(m: Machine, given: Value) -> list[list[Whole]]:
    """What an optimizer is given, group by group."""
    if len(given.refs) != 1 or m.state.object(given.refs[0]).kind not in CONTAINERS:
        return []
    ref = given.refs[0]
    groups = []
    for slot in m.state.slot_names(ref):
        held = m.state.refs_of(slot)
        if len(held) == 1 and m.state.object(held[0]).kind is Kind.DICT and slot[1] != "[*]":
            inner = m.state.refs_of((held[0], "['params']"))
            groups.append(_entries(m, inner[0]) if len(inner) == 1 else [])
    groups += [_entries(m, held) for held in _appended(m, ref)]
    return groups or [_entries(m, ref)]


def _appended(m: Machine, groups: int) -> Iterator[int]:
    """What the groups that were appended to a list, one by one and whichever way it went, have been given."""
    if m.state.object(groups).owner not in ("", LOCAL) or _grows_on_arms(m, groups):
        return
    for held in m.state.refs_of((groups, ANY_ELEMENT)):
        inner = m.state.refs_of((held, "['params']"))
        if not held & 1 and m.state.object(held).kind is Kind.DICT and len(inner) == 1:
            yield inner[0]


def _grows_on_arms(m: Machine, groups: int) -> bool:
    """Whether something is put into a list on some paths only, or in a loop."""
    puts = [event for event in m.index.of(t.Invoke) if event.name in _GROWING and groups in m.value(event.base).refs]
    return any(event.site in m.index.on_arms or uses.loops_around(m, event.site) for event in puts)


_GROWING = frozenset({"append", "extend", "insert"})


def _entries(m: Machine, ref: int) -> list[Whole]:
    wholes = m.owners.wholes.get(ref | 1)
    if wholes is not None:
        return list(wholes)
    obj = m.state.object(ref)
    if obj.kind in TENSORS:
        return _single(obj)
    if obj.kind not in (Kind.LIST, Kind.TUPLE):
        return []
    found = []
    for slot in m.state.slot_names(ref):
        held = m.state.refs_of(slot)
        if len(held) == 1 and slot[1] != "[*]" and m.state.object(held[0]).kind in TENSORS:
            found += _single(m.state.object(held[0]))
    return found


def _single(obj: Object) -> list[Whole]:
    """One parameter, unless it is any of several: two elements of a list that nobody has told apart may differ."""
    parts = parts_of(obj)
    some = any(step.kind in WHOLE for _, region in parts for step in region)
    return [] if some else [Whole(obj.text, parts)]
