"""Whether a tensor that was put on the memory of something else lasts: it is returned, kept somewhere, or written."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import Collected, Constructed
from torchcopylint.flow.model import ARGUMENT, CONTAINERS, FIELD, LOCAL, TENSORS, Kind
from torchcopylint.flow.storages import written_sides
from torchcopylint.flow.storages.conversions import LEGACY
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.tapes.uses import is_self

if TYPE_CHECKING:
    from torchcopylint.flow.facts import Relation
    from torchcopylint.flow.running.machine import Machine

_KEEPING = re.compile(
    r"^_?(?:push|add|append|put|store|insert|remember|save|extend|enqueue|cache|record|register|update|set)(?:_|$)"
)
"""Methods that keep what they are given, by their names: `memory.push(state)`."""


def settled(m: Machine, fact: Relation) -> Relation:
    """A fact about a constructor from before `torch.tensor`: temporary if it is given an array, and nothing holds the
    result at the end. And one about a collection: whether others have it."""
    if isinstance(fact, Collected) and not fact.outside:
        # Who gets the list may look at what it holds.
        returned = {m.state.object(ref).text for value in m.results.returned for ref in value.refs}
        return fact._replace(outside=bool(fact.container) and fact.container in returned)
    if not isinstance(fact, Constructed) or fact.temporary or fact.kind not in (Kind.ARRAY, *TENSORS):
        return fact
    keeps = not is_legacy(fact.function) or (_lasts(m, fact.site) and not _is_let_go_of(m, fact.site))
    if not keeps:
        return fact._replace(temporary=True)
    if not is_legacy(fact.function):
        return fact
    return fact._replace(written=written_sides.write_of(m, _taken_from(m, fact.site), fact.site))


def is_legacy(function: str) -> bool:
    """Whether a dotted name is that of such a constructor."""
    return function in LEGACY or function == "torch.Tensor.new"


def _lasts(m: Machine, site: int) -> bool:
    result = _taken_from(m, site)
    returned = {ref | 1 for value in m.results.returned for ref in value.refs if _is_of_something_kept(m, ref)}
    for ref in list(returned):
        obj = m.state.object(ref & ~1)
        if obj.kind in CONTAINERS:
            returned |= {held | 1 for slot in m.state.slot_names(ref & ~1) for held in m.state.refs_of(slot)}
    if result & returned or _is_handed_on(m, m.index.calls.get(site, -1)):
        return True
    slots = [key for key in m.state.entries if isinstance(key, tuple)]
    held = {ref | 1 for key in slots if _outlives(m, key[0], site, returned) for ref in m.state.refs_of(key)}
    storages = {share.storage | 1 for ref in result for share in m.state.object(ref & ~1).shares}
    return bool(result & held) or any(storages & {s | 1 for s in write.storages} for write in m.writes.values())


def _is_let_go_of(m: Machine, site: int) -> bool:
    """Whether what the call at a site was given came out of a field of `self` that holds something else by the end, so
    that the result alone has the memory: `rows = torch.Tensor(self.rows); self.rows = np.zeros(size); return rows`."""
    result = _taken_from(m, site)
    storages = {
        share.storage for ref in result for share in m.state.object(ref & ~1).shares if share.of | 1 not in result
    }
    if not storages or any(m.state.object(storage).owner != FIELD for storage in storages):
        return False
    fields = {
        key[1]
        for storage in storages
        for key, cell in m.state.holders_of(storage)
        if isinstance(key, tuple) and not {ref | 1 for ref in cell.refs} & result
    }
    return all(field.startswith(".") and _is_made_anew(m, field[1:], site) for field in fields)


def _is_made_anew(m: Machine, field: str, site: int) -> bool:
    """Whether a method of `self` that sets a field is called behind a site, on all paths: `self.reset()`."""
    for event in m.index.of(t.Invoke):
        unit = m.world.method(m.unit.owner, event.name) if m.unit.owner >= 0 and event.site > site else None
        other = m.world.machines.get(unit) if unit is not None else None
        if other is None or not is_self(m, event.base) or uses.on_some_paths(m, event.site):
            continue
        for store in other.index.of(t.StoreAttribute):
            set_there = store.name == field and is_self(other, store.base) and not store.augmented
            if set_there and not uses.on_some_paths(other, store.site):
                return True
    return False


def _outlives(m: Machine, container: int, site: int, returned: set[int]) -> bool:
    """Whether what a container holds is looked at after the turn on which the call at a site has put it there.

    A list that the unit has made and lets go of holds what one expression has put into it, or what a loop collects from
    turn to turn; what the loop goes through is another thing on each.
    """
    obj = m.state.object(container)
    if obj.kind not in CONTAINERS or obj.owner not in ("", LOCAL) or container | 1 in returned:
        return True
    if any(isinstance(key, tuple) for key in m.state.holders.get(container, ())):
        return True
    between = set(uses.loops_around(m, site)) - set(uses.loops_around(m, obj.site))
    call = m.unit.definitions[m.index.calls[site]] if site in m.index.calls else None
    given = call.arguments[0].register if isinstance(call, t.Call | t.Invoke) and call.arguments else -1
    load = m.unit.definitions[given] if given >= 0 else None
    bound = uses.bindings_before(m, load) if isinstance(load, t.Load) else [given]
    return bool(between) and not all(uses.from_iteration(m, register) for register in bound)


def _is_of_something_kept(m: Machine, ref: int) -> bool:
    """Whether something that is returned has memory of more than the arguments.

    A conversion of an argument goes back to the caller, who has the argument; a buffer that lives on gets overwritten.
    """
    storages = [share.storage for share in m.state.object(ref).shares]
    held = [m.state.object(storage).owner for storage in storages] or [m.state.object(ref).owner]
    return any(owner not in ("", LOCAL, ARGUMENT) for owner in held) or m.state.object(ref).kind in CONTAINERS


def _taken_from(m: Machine, site: int) -> set[int]:
    """The result of the call at a site, and what was taken from it, but for parts of which nobody knows whether they
    are copies: `torch.FloatTensor(self.rows)[indices]`."""
    found = {ref | 1 for ref, obj in m.state.objects() if obj.site == site}
    size = 0
    while len(found) > size:
        size = len(found)
        found |= {
            ref | 1
            for ref, obj in m.state.objects()
            if any(share.of | 1 in found and (share.sure or share.when) for share in obj.shares)
        }
    return found


def _is_handed_on(m: Machine, register: int) -> bool:
    """Whether a value, or the name that it is bound to, is an argument of a method that keeps what it is given."""
    event = m.consumer_of(register)
    while isinstance(event, t.Invoke) and event.base == register:
        register = event.out
        event = m.consumer_of(register)
    if isinstance(event, t.Bind):
        loads = [use.register for use in uses.of_name(m, event.name) if use.loads]
        return any(_keeps(m, m.consumer_of(load)) for load in loads)
    return _keeps(m, event)


def _keeps(m: Machine, event: t.Event | None) -> bool:
    if not isinstance(event, t.Invoke) or not _KEEPING.match(event.name):
        return False
    # Of a list that is seen here it is known what it holds, and whether anybody has it afterwards.
    kinds = {m.state.object(ref).kind for ref in m.value(event.base).refs}
    return not kinds or not kinds <= set(CONTAINERS)
