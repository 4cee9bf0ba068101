"""Losses that a loop takes out of a container, one a turn: `for loss in losses: loss.backward()`.

Each turn has a loss of its own. Where two of them hang on one graph, the second pass needs what the first has freed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.graphs import runs
from torchcopylint.flow.model import ANY_ELEMENT, CONTAINERS, EARLIER, LAZY_FORMS, TENSORS, Fact, Object
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values.kinds import MODULE_BASES

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

MAX_ELEMENTS = 16
"""So many losses are compared with one another."""


def shared_by_elements(m: Machine, loop: t.Loop, site: int, through: frozenset[int]) -> t.Bind | None:
    """What was bound, at one of the sites `through`, that two elements of what a loop goes through hang on, if backward
    at `site` runs over one of them on each turn, and every turn gets there."""
    inside = list(t.events(loop.body))
    leaves = any(isinstance(event, t.Break | t.Return | t.Continue | t.Raise) for event in inside)
    if leaves or not any(event.site == site and isinstance(event, t.Invoke) for event in loop.body):
        return None
    common = _common(m, _elements(m, site, loop))
    within = {event.site for event in inside}
    found = None
    for bind in reversed(m.index.of(t.Bind)) if common else ():
        hidden = bind.name.startswith(("%", ".")) or "#" in bind.name
        if bind.site not in within and not hidden:
            held = runs.held_in(m, m.value(bind.value).refs, runs.MAX_DEPTH)
            if any(obj.graph & common for obj in held):
                if bind.site in through:
                    return bind
                # What is written out in the loop's head stands there by no name of its own.
                found = found or (bind if bind.site < site else None)
    return found


def _elements(m: Machine, site: int, loop: t.Loop) -> Iterator[frozenset[int]]:
    """The graphs of what backward at a site runs over, turn by turn; nothing if that is not surely known."""
    register = m.index.calls.get(site, t.NO_REGISTER)
    call = m.unit.definitions[register] if register >= 0 else None
    load = m.unit.definitions[call.base] if isinstance(call, t.Invoke) and call.base >= 0 else None
    bound = uses.bindings_before(m, load) if isinstance(load, t.Load) else []
    source = _source(m, bound[0], loop) if len(bound) == 1 else ()
    if len(source) != 1 or m.state.object(source[0]).kind not in CONTAINERS:
        return
    for ref in _told_apart(m, source[0]):
        obj = m.state.object(ref)
        if obj.kind in TENSORS and obj.leaf is Fact.NO and obj.requires_grad > 0:
            graph = frozenset(number for number in obj.graph if m.needed.is_freed(number))
            yield graph
            yield from _from_outside(m, obj, graph)


def _from_outside(m: Machine, obj: Object, graph: frozenset[int]) -> Iterator[frozenset[int]]:
    """What all elements hang on that the turns of another loop have made: what was saved before that began, but for
    what a network of which nothing is known has saved, which may be frozen."""
    around = uses.loops_around(m, obj.site)
    if around:
        outside = (n for n in graph if around[-1] not in uses.loops_around(m, _saved_at(m, n)))
        yield frozenset(n for n in outside if n in m.needed.saves or not _is_anybodys(m, n))


def _is_anybodys(m: Machine, number: int) -> bool:
    """Whether a network of which nothing is known has saved something."""
    return any(m.state.object(ref).type in ("", *MODULE_BASES) for ref in m.needed.by_modules[number].refs)


def _saved_at(m: Machine, number: int) -> int:
    return m.needed.saves[number].site if number in m.needed.saves else (number & ~EARLIER) // 8


def _told_apart(m: Machine, container: int) -> list[int]:
    """The elements of a container that surely stand in it beside one another."""
    found: list[int] = []
    for slot in m.state.slot_names(container):
        held = m.state.refs_of(slot)
        if slot[1] != ANY_ELEMENT:
            found += held if len(held) == 1 else ()
        elif not _grows_on_arms(m, container):
            # What one place of a loop has made on its turns is short for all of that.
            several = len({ref | 1 for ref in held}) > 1 and any(ref & 1 for ref in held)
            found += [] if several else held[:1] if any(ref & 1 for ref in held) else held
    return found[:MAX_ELEMENTS]


def _grows_on_arms(m: Machine, container: int) -> bool:
    """Whether something is put into a list on some paths only."""
    puts = [event for event in m.index.of(t.Invoke) if container in m.value(event.base).refs]
    return any(event.site in m.index.on_arms for event in puts)


def _source(m: Machine, register: int, loop: t.Loop) -> tuple[int, ...]:
    """The container that a loop takes the value of a register out of: of several that it goes through at once, the one
    at that position."""
    positions: list[int] = []
    made = m.unit.definitions[register] if register >= 0 else None
    while isinstance(made, t.Unpack):
        positions.append(made.position)
        made = m.unit.definitions[made.value]
    if not isinstance(made, t.Iterate) or made not in loop.body:
        return ()
    refs = m.value(made.iterable).refs
    while len(refs) == 1 and m.state.object(refs[0]).type in LAZY_FORMS:
        form, place = m.state.object(refs[0]).type, 0
        if form != _VALUES:
            if not positions:
                return ()
            place = positions.pop() - (form != _ZIP)
        refs = m.state.refs_of((refs[0], f".{place}")) if place >= 0 else ()
    return refs if not positions else ()


_ZIP, _VALUES = LAZY_FORMS[0], LAZY_FORMS[-1]


def _common(m: Machine, graphs: Iterator[frozenset[int]]) -> frozenset[int]:
    """What is saved for backward of one of some graphs, and of another as well."""
    found: set[int] = set()
    seen: list[frozenset[int]] = []
    for graph in graphs:
        for other in seen:
            found |= runs.common(m, graph, other)
        seen.append(graph)
    return frozenset(found)
