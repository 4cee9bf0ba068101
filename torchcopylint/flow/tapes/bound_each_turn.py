"""A name that each turn of a loop binds to what stood before it, and edits as if that were a copy.

for i in range(0, size, 8):
    covered = image
    covered[..., i : i + 8] = 0
    scores.append(model(covered))
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import EditedEachTurn, ReadAfter
from torchcopylint.flow.model import BUFFERS, Sure
from torchcopylint.flow.tapes import uses

if TYPE_CHECKING:
    from torchcopylint.flow.facts import Write
    from torchcopylint.flow.running.machine import Machine

_FORMS = frozenset({"method", "augmented", "item"})
_GIVEN = frozenset({"argument", "operand", "store", "yield"})


def found(m: Machine) -> Iterator[EditedEachTurn]:
    """The first edit by each such name, if the turn then uses it and nobody looks at what it was bound to again.

    Who fills something by a shorter name binds that once, or goes on with what has been filled.
    """
    for bind in [one for binds in m.index.binds.values() for one in binds if uses.loops_around(m, one.site)]:
        load = m.unit.definitions[bind.value] if bind.value >= 0 else None
        if not isinstance(load, t.Load) or load.name == bind.name or not _is_only_bound_from(m, bind, load):
            continue
        loops = uses.loops_around(m, bind.site)
        edits = [w for site, w in sorted(m.writes.items()) if w.root == bind.name and site > bind.site]
        write = next((w for w in edits if uses.loops_around(m, w.site)[: len(loops)] == loops), None)
        if write is None or not _adds_up(m, write, loops[-1]) or write.kind not in BUFFERS or write.sure is Sure.NOT:
            continue
        read = next((site for site in _uses_of(m, write) if uses.loops_around(m, site)[: len(loops)] == loops), -1)
        if read >= 0:
            yield EditedEachTurn(write.site, bind.name, load.name, bind.site, read)


def _is_only_bound_from(m: Machine, bind: t.Bind, load: t.Load) -> bool:
    """Whether a loop binds a name once, on all turns, and the unit uses what it is bound to nowhere else from there on;
    that stands outside the loop."""
    loop = uses.loops_around(m, bind.site)[-1]
    arms = [arm for branch in m.index.of(t.Branch) if loop in uses.loops_around(m, branch.site) for arm in branch.arms]
    if any(event.site == bind.site for arm in arms for event in t.events(arm)):
        return False
    again = [one for one in uses.of_name(m, bind.name) if not one.loads and loop in one.loops]
    others = [one for one in uses.of_name(m, load.name) if one.site != load.site]
    return len(again) == 1 and not any(loop in one.loops or (one.loads and one.site > load.site) for one in others)


def _adds_up(m: Machine, write: Write, loop: int) -> bool:
    """Whether what one turn writes is still there when the next one has written: it adds to what is there, or sets
    another part."""
    if write.form not in _FORMS:
        return False
    if write.reads_old and write.op != "[...] =":
        return True
    stores = [store for store in m.index.of(t.StoreItem) if store.site == write.site]
    parts = [part for store in stores for part in store.subscript]
    bounds = [[part.lower, part.upper] if isinstance(part, t.Slice) else [part] for part in parts]
    events = [event for registers in bounds for register in registers for event in uses.expression(m, register, "")]
    names = {event.name for event in events if isinstance(event, t.Load)}
    return any(not use.loads and loop in use.loops for name in names for use in uses.of_name(m, name))


def _uses_of(m: Machine, write: Write) -> list[int]:
    """Where the name that was written through is used behind the write."""
    reads = [fact for facts in m.facts.values() for fact in facts if isinstance(fact, ReadAfter)]
    mine = [fact for fact in reads if fact.write == write.site and fact.own and fact.consumer in _GIVEN]
    return sorted(fact.site for fact in mine if fact.site > write.site and fact.name == write.root)
