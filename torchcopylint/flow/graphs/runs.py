"""What backward has run over.

A graph is a set of numbers (see `grads`). The negative ones are *runs*: backward ran over a part of this graph, at
which site, and whether it freed what was saved there. They travel with the graph from operand to result, and are gone
wherever the graph is cut. So a value that still has one when backward reaches it is run over twice, and what gathers
such values over the turns of a loop keeps graphs that nobody can use again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, NamedTuple

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import Accumulated
from torchcopylint.flow.graphs import ends
from torchcopylint.flow.model import (
    CONTAINERS,
    EARLIER,
    FIELD,
    PART,
    TENSORS,
    Fact,
    Key,
    Kind,
    Object,
    Sure,
    Value,
    join_graphs,
)
from torchcopylint.flow.tapes import exclusion
from torchcopylint.flow.values import kinds

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

BRANCHES, _CALLS = 1 << 48, 1 << 47
OF_CALL = 7
"""What is left of the number of a network's graph, by eight: the rest is the site where it was called."""
MAX_OUTPUTS = 64
_FREED, _RAN, _ADDED, _HELD = 1, 2, 3, 4
MAX_DEPTH = 2
"""How deep what a container holds is looked at."""


class Again(NamedTuple):
    """Backward runs over a value, and over what the runs at the sites `freed` have freed.

    `through` are the sites where the names were bound that held such a graph when it was freed. `networks` are those of
    which nobody knows what they are, if it is they alone that have saved what is freed: they may be frozen.
    """

    name: str
    freed: tuple[int, ...]
    through: frozenset[int]
    sure: Sure
    networks: frozenset[int]


@dataclass(slots=True)
class Runs:
    """What one unit's backward passes did: where they ran, what they ran over directly, twice, or for a sum."""

    sites: set[int] = field(default_factory=set)
    directly: set[int] = field(default_factory=set)
    over: dict[int, frozenset[int]] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    """How what each of them ran over is called there."""
    parts: set[int] = field(default_factory=set)
    """Parts of what somebody returned of whom nothing is known, just as they came."""
    groups: dict[int, int] = field(default_factory=dict)
    """Which parts of what a function of the file returned hang on something that it has computed for all of them."""
    branches: dict[int, int] = field(default_factory=dict)
    """Numbers in graphs that tell the outputs of one network apart, and the number that they all have."""
    again: dict[int, Again] = field(default_factory=dict)
    several: dict[int, Again] = field(default_factory=dict)
    """Where backward runs over one of several values that a loop has made, and frees what that has saved."""
    added: dict[int, tuple[Accumulated, tuple[int, ...]]] = field(default_factory=dict)
    reached: set[int] = field(default_factory=set)
    fields: dict[int, tuple[Accumulated, tuple[int, ...]]] = field(default_factory=dict)
    retained: dict[int, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    used_again: set[int] = field(default_factory=set)
    put_within: dict[int, tuple[Accumulated, tuple[int, ...]]] = field(default_factory=dict)
    """What a loop collects, with its graph, before backward has run over it: see `passes`."""
    put_outside: dict[int, tuple[Accumulated, tuple[int, ...]]] = field(default_factory=dict)
    """What a closure puts into a container of the function around it: see `spent_closures`."""
    freed_of: dict[int, set[int]] = field(default_factory=dict)
    """Where backward has freed something of the graph of an object, or of those that a loop has made at its site."""
    kept: set[int] = field(default_factory=set)
    """Where backward kept the graph for another pass: what goes on holding it may be meant to."""
    of_arms: dict[int, tuple[tuple[int, frozenset[int]], ...]] = field(default_factory=dict)
    """Where backward runs over one of several things: where each of them was made, and the graph that it has."""
    came_to: dict[int, frozenset[int]] = field(default_factory=dict)
    """What was saved for backward on the graphs that backward has run over, by the sites of the passes."""
    through: dict[int, frozenset[int]] = field(default_factory=dict)


def _number(site: int, what: int) -> int:
    return -(5 * site + what)


def _decoded(graph: Iterable[int]) -> Iterator[tuple[int, int]]:
    for number in sorted(graph):
        if number < 0:
            yield divmod(-number, 5)


def ran_at(graph: Iterable[int]) -> tuple[int, ...]:
    """The sites at which backward ran over a part of a graph."""
    return tuple(sorted({site for site, what in _decoded(graph) if what in (_FREED, _RAN)}))


def freed_at(graph: Iterable[int]) -> tuple[int, ...]:
    """The sites at which backward ran over a part of a graph and freed what was saved there."""
    return tuple(where for where, what in _decoded(graph) if what == _FREED)


def without(graph: frozenset[int]) -> frozenset[int]:
    """A graph without its runs: for results of which nobody knows whether they still hang on it."""
    return frozenset(number for number in graph if number >= 0) if any(number < 0 for number in graph) else graph


def unknown_graph(site: int) -> int:
    """A number for a graph of which nothing is known, except that what is bound at `site` ends it."""
    return 8 * site + 6


def branch(m: Machine, number: int, group: int) -> int:
    """A number for the graph of some of the outputs of a network, which has nothing in common with that of the others.

    The graphs of all of them have the `number`, that of the network.
    """
    made = BRANCHES + number * MAX_OUTPUTS + group % MAX_OUTPUTS
    m.runs.branches[made] = number
    return made


def of_part(m: Machine, obj: Object, position: int | None) -> frozenset[int]:
    """The graph of one of the outputs of a network; of which one, -1 from the end, if somebody has said.

    Whether a network of which nothing is known has computed something for all of its outputs, nobody knows.
    """
    if position is None:
        return obj.graph
    return obj.graph | {
        branch(m, number, position % MAX_OUTPUTS) for number in obj.graph if number in m.needed.by_modules
    }


def hang_together(m: Machine, value: Value, group: int, site: int) -> bool:
    """What a call at `site` has returned, and the others of its `group`, hang on one graph, of which backward frees
    something. Returns whether it is a tensor with a graph, or a distribution of such."""
    objects = [(ref, m.state.object(ref)) for ref in value.refs]
    kinds = (*TENSORS, Kind.OTHER)
    if m.state.mode.recording <= 0 or any(obj.kind not in kinds or obj.requires_grad <= 0 for _, obj in objects):
        return False
    number = _CALLS + site * MAX_OUTPUTS + group % MAX_OUTPUTS
    m.needed.by_modules[number] = Value()
    for ref, obj in objects:
        m.state.set_object(ref, obj._replace(graph=obj.graph | {number}))
    return True


def calling(number: int) -> int:
    """The site of the call that has made the graph of a number: of a network, or of a function that returns what hangs
    on one. -1 where it was no call."""
    if _CALLS <= number < BRANCHES:
        return (number - _CALLS) // MAX_OUTPUTS
    return number // 8 if 0 <= number < _CALLS and number % 8 == OF_CALL else -1


def common(m: Machine, a: Iterable[int], b: Iterable[int]) -> set[int]:
    """What two graphs have in common: not a network of which they hang on different outputs."""
    found = set(a) & set(b)
    if found and m.runs.branches:
        for number in found & set(m.runs.branches.values()):
            mine, others = ({made for made in graph if m.runs.branches.get(made) == number} for graph in (a, b))
            if mine and others and not mine & others:
                found.discard(number)
    return found


def spent(graph: frozenset[int], site: int) -> frozenset[int]:
    """A graph that somebody ran backward over before it was handed out at `site`."""
    return graph | {_number(site, _RAN)}


def on_some_paths(m: Machine, value: Value) -> frozenset[int]:
    """Where backward has run over one of the computed things that a value may be, and not over another.

    Of what earlier turns of a loop have left, and of what its first turn starts from, that says nothing: there backward
    has run in between.
    """
    if len(value.refs) < 2 or any(ref & 1 for ref in value.refs):
        return frozenset()
    objects = [m.state.object(ref) for ref in value.refs]
    graphs = [obj.graph for obj in objects if obj.leaf is Fact.NO and obj.requires_grad > 0]
    if len(graphs) < 2:
        return frozenset()
    everywhere: frozenset[int] = reduce(join_graphs, graphs)
    return frozenset[int]().union(*graphs) - everywhere


# -- backward


def over(
    m: Machine,
    value: Value,
    site: int,
    *,
    freed: bool,
    name: str,
    part: bool,
    retained: bool,
    behind: frozenset[int] = frozenset(),
) -> None:
    """Backward runs over the graph of a value. What hangs on the same graph has been run over as well.

    `behind` is the part of the graph that it does not come to, `retained` is whether the call says in so many words
    that what was saved is kept; `part` whether it runs over some of the graph only, or makes a graph of its own, so
    that the graph is not done with.
    """
    runs = m.runs
    if m.world.is_of_another_framework and all(m.state.object(ref).kind not in TENSORS for ref in value.refs):
        return
    runs.sites.add(site)
    runs.over[site] = frozenset(ref | 1 for ref in value.refs)
    runs.names[site] = name
    runs.directly.update(ref | 1 for ref in value.refs)
    if any(ref & 1 for ref in value.refs):
        # One of several that a loop has made, as in a list: nobody knows which of them the others are.
        if freed and not part and not m.blocks.on_purpose and not exclusion.is_of_one_turn(m, site):
            sure = max(min(m.state.object(ref).sure for ref in value.refs), Sure.LIKELY)
            runs.several[site] = Again(name, (site,), frozenset(), sure, frozenset())
        return
    if not freed:
        runs.kept.add(site)
    # What the last turn of a loop frees, no other turn needs.
    freed = freed and not m.blocks.on_purpose and not (m.in_loop and exclusion.is_of_one_turn(m, site))
    graph = frozenset[int]().union(*(m.state.object(ref).graph for ref in value.refs)) - on_some_paths(m, value)
    graph = _up_to(m, graph, behind, site) if behind else graph
    runs.came_to[site] = frozenset(number for number in graph if number >= 0)
    _note_again(m, value, graph, site, name)
    if len(value.refs) > 1:
        runs.of_arms[site] = tuple((obj.site, obj.graph) for obj in map(m.state.object, value.refs))
    if part:
        _freed_at_its_end(m, value, site, freed=freed)
        return
    if retained:
        runs.retained[site] = (name, value.refs)
    saved = {number for number in graph if number >= 0}
    real = {number for number in saved if m.needed.is_freed(number)}
    for ref, obj in m.state.objects_with_graph():
        met = set[int]() if saved.isdisjoint(obj.graph) else common(m, obj.graph, saved)
        if met:
            what = _FREED if freed and met & real else _RAN
            if what == _FREED:
                runs.freed_of.setdefault(ref | 1, set()).add(site)
            held = {_number(place, _HELD) for place in _bound_at(m, ref)}
            m.state.set_object(ref, obj._replace(graph=obj.graph | held | {_number(site, what)}))
    for ref in value.refs:
        obj = m.state.object(ref)
        if obj.requires_grad is Fact.UNKNOWN and obj.kind in (*TENSORS, Kind.UNKNOWN):
            # A backward pass starts from nothing else.
            leaf = Fact.NO if obj.leaf is Fact.UNKNOWN else obj.leaf
            obj = obj._replace(requires_grad=Fact.LIKELY, leaf=leaf)
        if not obj.graph & saved:
            obj = obj._replace(graph=obj.graph | {_number(site, _RAN)})
        m.state.set_object(ref, obj)


def _up_to(m: Machine, graph: frozenset[int], behind: frozenset[int], site: int) -> frozenset[int]:
    """The part of a graph that backward at a site comes to: without what lies `behind` something, and without what
    backward has run over there alone."""
    own = frozenset(number for number in graph - behind if number >= 0)
    loops = m.index.loops.get(site, ())
    inner = loops[-1] if loops else -1
    before = frozenset(n for n in own if inner not in m.index.loops.get((n & ~EARLIER) // 8, ()))
    there = set()
    for number in graph & behind:
        for where, what in _decoded([number]):
            # What an earlier turn of the loop has run over is nothing that this turn has made.
            mine = before if where > site else own
            if what in (_FREED, _RAN) and not m.runs.came_to.get(where, own) & mine:
                there.add(number)
    return own | (frozenset(number for number in graph if number < 0) - there)


def _freed_at_its_end(m: Machine, value: Value, site: int, *, freed: bool) -> None:
    """Backward ran over a part of a graph that nobody knows, which begins at this value: over its own end for sure."""
    for ref in value.refs if freed and len(value.refs) == 1 else ():
        made = ends.behind(m, ref)
        if any(m.needed.is_freed(number) for number in m.state.object(ref).graph if number >= 0):
            made.append(ref)
        for end in made:
            obj = m.state.object(end)
            held = {_number(place, _HELD) for place in _bound_at(m, end)}
            m.state.set_object(end, obj._replace(graph=obj.graph | held | {_number(site, _FREED)}))


def _bound_at(m: Machine, ref: int, depth: int = MAX_DEPTH) -> Iterator[int]:
    """Where the names and slots were bound that hold an object, or the container that it stands in."""
    for key in m.state.holders.get(ref, ()):
        cell = m.state.cell(key)
        if cell is not None and ref in cell.refs and cell.site >= 0:
            yield cell.site
            if depth > 1 and isinstance(key, tuple) and m.state.object(key[0]).kind in CONTAINERS:
                yield from _bound_at(m, key[0], depth - 1)


def _note_again(m: Machine, value: Value, graph: frozenset[int], site: int, name: str) -> None:
    runs = m.runs
    found = tuple(where for where in freed_at(graph) if not _ran_on_other_arm(m, where, graph, site))
    runs.reached.update(where for where, what in _decoded(graph) if what == _ADDED)
    runs.used_again.update(where for where, what in _decoded(graph) if what in (_FREED, _RAN))
    through = frozenset(where for where, what in _decoded(graph) if what == _HELD)
    runs.through[site] = through
    runs.again.pop(site, None)
    if found and not m.blocks.on_purpose and not any(ref & 1 for ref in value.refs):
        sure = max(min((m.state.object(ref).sure for ref in value.refs), default=Sure.NOT), Sure.LIKELY)
        # What returned several losses may have detached what they share.
        apart = runs.over[site] <= runs.parts and all(not runs.over[site] & runs.over[where] for where in found)
        runs.again[site] = Again(
            name, found, through, Sure.HINT if apart else sure, _of_unknown_networks(m, graph, found)
        )


def _ran_on_other_arm(m: Machine, where: int, graph: frozenset[int], site: int) -> bool:
    """Whether the backward pass at `where` has come to a graph only on an arm that excludes what stands at a site.

    `if shared: loss = loss + value`, `loss.backward()`, and then `if not shared: value.backward()`.
    """
    saved = [number for number in graph if number >= 0]
    made = [one for one, behind in m.runs.of_arms.get(where, ()) if common(m, saved, behind)]
    return bool(made) and all(exclusion.exclude(m, one, site) for one in made)


def _of_unknown_networks(m: Machine, graph: frozenset[int], found: tuple[int, ...]) -> frozenset[int]:
    """The networks that have saved all that two passes have in common, if nobody knows what they are, and each pass
    runs over other networks as well: those in common may be frozen, or cut what they are given.

    torch refuses the second pass each time, so that its author would know. What has no other network behind it has its
    graph from there.
    """
    all_saving: set[int] = set()
    for where in found:
        before = m.runs.came_to.get(where, graph)
        met = common(m, graph, before)
        saving = {number for number in met if number in m.needed.by_modules}
        networks = {ref for number in saving for ref in m.needed.by_modules[number].refs}
        if not networks or any(number in m.needed.saves for number in met - saving):
            return frozenset()
        if any(m.state.object(ref).type not in ("", *kinds.MODULE_BASES) for ref in networks):
            return frozenset()
        if any(kinds.named_generator(m.state.object(ref).text) for ref in networks):
            # Who has called it so trains it here.
            return frozenset()
        if not all(one & m.needed.by_modules.keys() - saving for one in (graph, before)):
            return frozenset()
        all_saving |= networks
    return frozenset(all_saving)


# -- sums and lists


def accumulate(
    m: Machine, site: int, target: Value, value: Value, name: str, source: str, form: str, *, lasting: bool = False
) -> bool:
    """At `site` something is added to a sum or a container. Returns whether the sum now counts as one.

    `lasting` is whether the target is known to outlive the call; of what a field holds itself, that is found out here.
    """
    lasting = lasting or is_field_from_before(m, target.root, owners=("self", FIELD))
    if lasting:
        m.runs.fields[site] = (Accumulated(site, name, source, form, -1, Sure.LIKELY), value.refs)
    if not m.runs.sites:
        return lasting
    ran = {where for obj in held_in(m, target.refs, MAX_DEPTH) for where in ran_at(obj.graph)}
    ran = ran or _ran_aside(m, site, target, value, source)
    carrying = [obj for ref in value.refs if (obj := carrying_object(m, ref)) is not None]
    known = m.runs.added.get(site)
    if known is not None and known[0].name == name:
        # One call may add to several sums, of which this is one: `meter.update(loss, n)`.
        del m.runs.added[site]
    if not carrying or len(carrying) < len(value.refs):
        return lasting
    if not ran:
        if form == "collected" and m.in_loop:
            sure = min(obj.sure if obj.kind in TENSORS else Sure.LIKELY for obj in carrying)
            m.runs.put_within[site] = (Accumulated(site, name, source, form, -1, sure), value.refs)
        return lasting
    sure = min(obj.sure if obj.kind in TENSORS else Sure.LIKELY for obj in carrying)
    m.runs.added[site] = (Accumulated(site, name, source, form, -1, sure), tuple(sorted(ran)))
    return True


def _ran_aside(m: Machine, site: int, target: Value, value: Value, source: str) -> set[int]:
    """Where backward has run over the very thing that is added, in the same turn of a loop, and the graph does not say
    so: on an arm of a condition, or because it is one of several that an earlier loop has made, by its name here.

    Then it has run over what the sum holds of earlier turns as well: `if optimizer is not None: loss.backward()`.
    """
    loops = m.index.loops.get(site, ())
    several = source.isidentifier() and any(ref & 1 for ref in value.refs)
    if not loops or not (several or any(obj.graph for obj in held_in(m, target.refs, MAX_DEPTH))):
        return set()
    mine = {ref | 1 for ref in value.refs}
    return {
        where
        for where in m.runs.sites
        if (where in m.index.on_arms or (several and m.runs.names.get(where) == source))
        and m.index.loops.get(where, ()) == loops
        and mine & m.runs.over.get(where, frozenset())
        and not exclusion.exclude(m, where, site)
    }


def is_field_from_before(m: Machine, root: Key | None, owners: tuple[str, ...] = ("self",)) -> bool:
    """Whether something is held by a field of `self` that this method has not set: it outlives the call."""
    if root.__class__ is not tuple or m.state.object(root[0]).owner not in owners or not root[1].startswith("."):
        return False
    cell = m.state.cell(root)
    return cell is not None and cell.site == -1


def stands_in_field(m: Machine, register: int) -> bool:
    """Whether a register holds an element of a container in such a field: `self.history["loss"]`."""
    event = m.unit.definitions[register] if register >= 0 else None
    return isinstance(event, t.Item) and is_field_from_before(m, m.value(event.base).root)


def stands_around(m: Machine, register: int, value: Value) -> bool:
    """Whether a closure that runs backward puts what that has run over into a container of the function around it."""
    return _outer_name(m, register) != "" and any(ran_at(m.state.object(ref).graph) for ref in value.refs)


def note_outside(m: Machine, site: int, register: int, value: Value, source: str) -> None:
    """A closure puts a value into a container of the function around it, and may run backward over it afterwards."""
    if name := _outer_name(m, register):
        m.runs.put_outside[site] = (Accumulated(site, name, source, "collected", -1, Sure.LIKELY), value.refs)


def _outer_name(m: Machine, register: int) -> str:
    """The name of the function around a closure that a register was loaded from; empty if there is none."""
    event = m.unit.definitions[register] if register >= 0 else None
    if m.unit.parent <= 0 or m.unit.owner >= 0 or not isinstance(event, t.Load):
        return ""
    own = {parameter.name for parameter in m.unit.parameters} | m.unit.bound
    return event.name if event.name not in own else ""


def mark_sum(m: Machine, site: int, result: Value) -> None:
    """The result of an addition is a sum that began before: if backward reaches it, it is meant to."""
    for ref in result.refs:
        obj = m.state.object(ref)
        m.state.set_object(ref, obj._replace(graph=obj.graph | {_number(site, _ADDED)}))


def held_in(m: Machine, refs: tuple[int, ...], depth: int) -> Iterator[Object]:
    """The objects that stand in some, as deep as is said, in place of the containers that hold them."""
    for ref in refs:
        obj = m.state.object(ref)
        if obj.kind in CONTAINERS | {Kind.INSTANCE} and depth:
            for slot in m.state.slot_names(ref):
                yield from held_in(m, m.state.refs_of(slot), depth - 1)
        else:
            yield obj


def carries(m: Machine, refs: tuple[int, ...]) -> bool:
    """Whether all that a value may be surely carries a graph."""
    return bool(refs) and all(carrying_object(m, ref) is not None for ref in refs)


def carrying_object(m: Machine, ref: int) -> Object | None:
    """An object that surely carries a graph. One of several things that a model returns may be a metric without one."""
    obj = m.state.object(ref)
    if obj.leaf > 0 or obj.requires_grad is Fact.NO or obj.kind not in (*TENSORS, Kind.UNKNOWN):
        return None
    if ref | 1 in m.runs.directly:
        return obj
    return obj if obj.requires_grad > 0 and not (PART in obj.flags and obj.kind is Kind.UNKNOWN) else None
