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

from torchcopylint.flow import exclusion, left, naming, recurrent
from torchcopylint.flow import tape as t
from torchcopylint.flow.earlier import from_before, is_begun_on_arms, may_come_from_before
from torchcopylint.flow.facts import Accumulated, BackwardAgain, RetainedForNothing
from torchcopylint.flow.loops import Loops, displayed
from torchcopylint.flow.model import (
    CONTAINERS,
    FIELD,
    PART,
    TENSORS,
    Fact,
    How,
    Key,
    Kind,
    Object,
    Sure,
    Value,
    join_graphs,
)

if TYPE_CHECKING:
    from torchcopylint.flow.facts import Relation
    from torchcopylint.flow.machine import Machine

_BRANCHES, _CALLS = 1 << 48, 1 << 47
MAX_OUTPUTS = 64
_FREED, _RAN, _ADDED, _HELD = 1, 2, 3, 4
MAX_DEPTH = 2
"""How deep what a container holds is looked at."""


class Again(NamedTuple):
    """Backward runs over a value, and over what the runs at the sites `freed` have freed.

    `through` are the sites where the names were bound that held such a graph when it was freed.
    """

    name: str
    freed: tuple[int, ...]
    through: frozenset[int]
    sure: Sure


@dataclass(slots=True)
class Runs:
    """What one unit's backward passes did: where they ran, what they ran over directly, twice, or for a sum."""

    sites: set[int] = field(default_factory=set)
    directly: set[int] = field(default_factory=set)
    over: dict[int, frozenset[int]] = field(default_factory=dict)
    parts: set[int] = field(default_factory=set)
    """Parts of what somebody returned of whom nothing is known, just as they came."""
    groups: dict[int, int] = field(default_factory=dict)
    """Which parts of what a function of the file returned hang on something that it has computed for all of them."""
    branches: dict[int, int] = field(default_factory=dict)
    """Numbers in graphs that tell the outputs of one network apart, and the number that they all have."""
    again: dict[int, Again] = field(default_factory=dict)
    added: dict[int, tuple[Accumulated, tuple[int, ...]]] = field(default_factory=dict)
    reached: set[int] = field(default_factory=set)
    fields: dict[int, tuple[Accumulated, tuple[int, ...]]] = field(default_factory=dict)
    retained: dict[int, tuple[str, tuple[int, ...]]] = field(default_factory=dict)
    used_again: set[int] = field(default_factory=set)
    kept: set[int] = field(default_factory=set)
    """Where backward kept the graph for another pass: what goes on holding it may be meant to."""
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
    made = _BRANCHES + number * MAX_OUTPUTS + group % MAX_OUTPUTS
    m.runs.branches[made] = number
    return made


def hang_together(m: Machine, value: Value, group: int, site: int) -> bool:
    """What a call at `site` has returned, and the others of its `group`, hang on one graph, of which backward frees
    something. Returns whether it is a tensor with a graph."""
    objects = [(ref, m.state.object(ref)) for ref in value.refs]
    if m.state.mode.recording <= 0 or any(obj.kind not in TENSORS or obj.requires_grad <= 0 for _, obj in objects):
        return False
    number = _CALLS + site * MAX_OUTPUTS + group % MAX_OUTPUTS
    m.module_saves[number] = Value()
    for ref, obj in objects:
        m.state.set_object(ref, obj._replace(graph=obj.graph | {number}))
    return True


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


def over(m: Machine, value: Value, site: int, *, freed: bool, name: str, part: bool, retained: bool) -> None:
    """Backward runs over the graph of a value. What hangs on the same graph has been run over as well.

    `retained` is whether the call says in so many words that what was saved is kept; `part` whether it runs over some
    of the graph only, or makes a graph of its own, so that the graph is not done with.
    """
    runs = m.runs
    if m.world.is_of_another_framework and all(m.state.object(ref).kind not in TENSORS for ref in value.refs):
        return
    runs.sites.add(site)
    runs.over[site] = frozenset(ref | 1 for ref in value.refs)
    runs.directly.update(ref | 1 for ref in value.refs)
    if any(ref & 1 for ref in value.refs):
        # One of several that a loop has made, as in a list: nobody knows which of them the others are.
        return
    if not freed:
        runs.kept.add(site)
    # What the last turn of a loop frees, no other turn needs.
    freed = freed and not m.on_purpose and not (m.in_loop and exclusion.is_of_one_turn(m, site))
    graph = frozenset[int]().union(*(m.state.object(ref).graph for ref in value.refs)) - on_some_paths(m, value)
    _note_again(m, value, graph, site, name)
    if part:
        _freed_at_its_end(m, value, site, freed=freed)
        return
    if retained:
        runs.retained[site] = (name, value.refs)
    saved = {number for number in graph if number >= 0}
    real = {number for number in saved if number in m.saves or number in m.module_saves}
    for ref, obj in m.state.objects_with_graph():
        met = common(m, obj.graph, saved)
        if met:
            what = _FREED if freed and met & real else _RAN
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


def _freed_at_its_end(m: Machine, value: Value, site: int, *, freed: bool) -> None:
    """Backward ran over a part of a graph that nobody knows, which begins at this value: over its own end for sure.

    If it is a view, that is over what made the tensor that it is a view of, too: `grad(y[0], x)`, `grad(y[1], x)`.
    """
    for ref in value.refs if freed and len(value.refs) == 1 else ():
        obj = m.state.object(ref)
        bases = [s.of for s in obj.shares if s.how in (How.VIEW, How.INDEX, How.ROW) and s.of != ref and s.sure]
        made = [base for base in bases if _saves_itself(m, m.state.object(base))]
        if any(number in m.saves or number in m.module_saves for number in obj.graph if number >= 0):
            made.append(ref)
        for end in made:
            obj = m.state.object(end)
            held = {_number(place, _HELD) for place in _bound_at(m, end)}
            m.state.set_object(end, obj._replace(graph=obj.graph | held | {_number(site, _FREED)}))


def _saves_itself(m: Machine, obj: Object) -> bool:
    """Whether the operation that made a tensor has saved something for backward."""
    return obj.leaf is Fact.NO and any(
        number in m.saves and m.saves[number].site == obj.site for number in obj.graph if number >= 0
    )


def _bound_at(m: Machine, ref: int, depth: int = MAX_DEPTH) -> Iterator[int]:
    """Where the names and slots were bound that hold an object, or the tuple that it stands in."""
    for key in m.state.holders.get(ref, ()):
        cell = m.state.cell(key)
        if cell is not None and ref in cell.refs and cell.site >= 0:
            yield cell.site
            if depth > 1 and isinstance(key, tuple) and m.state.object(key[0]).kind is Kind.TUPLE:
                yield from _bound_at(m, key[0], depth - 1)


def _note_again(m: Machine, value: Value, graph: frozenset[int], site: int, name: str) -> None:
    runs = m.runs
    found = freed_at(graph)
    runs.reached.update(where for where, what in _decoded(graph) if what == _ADDED)
    runs.used_again.update(where for where, what in _decoded(graph) if what in (_FREED, _RAN))
    through = frozenset(where for where, what in _decoded(graph) if what == _HELD)
    runs.through[site] = through
    runs.again.pop(site, None)
    if found and not m.on_purpose and not any(ref & 1 for ref in value.refs):
        sure = max(min((m.state.object(ref).sure for ref in value.refs), default=Sure.NOT), Sure.LIKELY)
        # What returned several losses may have detached what they share.
        apart = runs.over[site] <= runs.parts and all(not runs.over[site] & runs.over[where] for where in found)
        runs.again[site] = Again(name, found, through, Sure.HINT if apart else sure)


# -- sums and lists


def accumulate(
    m: Machine, site: int, target: Value, value: Value, name: str, source: str, form: str, *, lasting: bool = False
) -> bool:
    """At `site` something is added to a sum or a container. Returns whether the sum now counts as one.

    `lasting` is whether the target is known to outlive the call; of what a field holds itself, that is found out here.
    """
    if lasting or is_field_from_before(m, target.root, owners=("self", FIELD)):
        m.runs.fields[site] = (Accumulated(site, name, source, form, -1, Sure.LIKELY), value.refs)
    if not m.runs.sites:
        return False
    ran = {where for obj in _held(m, target.refs, MAX_DEPTH) for where in ran_at(obj.graph)}
    ran = ran or _ran_aside(m, site, target, value)
    carrying = [obj for ref in value.refs if (obj := _carrying(m, ref)) is not None]
    known = m.runs.added.get(site)
    if known is not None and known[0].name == name:
        # One call may add to several sums, of which this is one: `meter.update(loss, n)`.
        del m.runs.added[site]
    if not ran or not carrying or len(carrying) < len(value.refs):
        return False
    sure = min(obj.sure if obj.kind in TENSORS else Sure.LIKELY for obj in carrying)
    m.runs.added[site] = (Accumulated(site, name, source, form, -1, sure), tuple(sorted(ran)))
    return True


def _ran_aside(m: Machine, site: int, target: Value, value: Value) -> set[int]:
    """Where backward has run over the very thing that is added, on an arm of a condition in the same turn of a loop.

    Then it has run over what the sum holds of earlier turns as well: `if optimizer is not None: loss.backward()`.
    """
    loops = m.index.loops.get(site, ())
    if not loops or not any(obj.graph for obj in _held(m, target.refs, MAX_DEPTH)):
        return set()
    mine = {ref | 1 for ref in value.refs}
    return {
        where
        for where in m.runs.sites & m.index.on_arms
        if where < site
        and m.index.loops.get(where, ()) == loops
        and mine & m.runs.over.get(where, frozenset())
        and not exclusion.exclude(m, where, site)
    }


def is_field_from_before(m: Machine, root: Key | None, owners: tuple[str, ...] = ("self",)) -> bool:
    """Whether something is held by a field of `self` that this method has not set: it outlives the call."""
    if not isinstance(root, tuple) or m.state.object(root[0]).owner not in owners or not root[1].startswith("."):
        return False
    cell = m.state.cell(root)
    return cell is not None and cell.site == -1


def stands_in_field(m: Machine, register: int) -> bool:
    """Whether a register holds an element of a container in such a field: `self.history["loss"]`."""
    event = m.unit.definitions[register] if register >= 0 else None
    return isinstance(event, t.Item) and is_field_from_before(m, m.value(event.base).root)


def mark_sum(m: Machine, site: int, result: Value) -> None:
    """The result of an addition is a sum that began before: if backward reaches it, it is meant to."""
    for ref in result.refs:
        obj = m.state.object(ref)
        m.state.set_object(ref, obj._replace(graph=obj.graph | {_number(site, _ADDED)}))


def _held(m: Machine, refs: tuple[int, ...], depth: int) -> Iterator[Object]:
    for ref in refs:
        obj = m.state.object(ref)
        if obj.kind in CONTAINERS and depth:
            for slot in m.state.slot_names(ref):
                yield from _held(m, m.state.refs_of(slot), depth - 1)
        else:
            yield obj


def _carrying(m: Machine, ref: int) -> Object | None:
    """An object that surely carries a graph. One of several things that a model returns may be a metric without one."""
    obj = m.state.object(ref)
    if obj.leaf > 0 or obj.requires_grad is Fact.NO or obj.kind not in (*TENSORS, Kind.UNKNOWN):
        return None
    if ref | 1 in m.runs.directly:
        return obj
    return obj if obj.requires_grad > 0 and not (PART in obj.flags and obj.kind is Kind.UNKNOWN) else None


# -- afterwards


def found(m: Machine) -> list[Relation]:
    """What a unit's backward passes say once the unit has been run."""
    if not m.runs.sites:
        return []
    loops = Loops(m.unit.tape)
    # A graph for each of two models that are written out is what a comparison holds, and no more.
    few = displayed(m.unit.tape, m.unit.definitions) if m.runs.added else frozenset()
    relations: list[Relation] = []
    for site, (fact, ran) in sorted(m.runs.added.items()):
        freeing = [where for where in ran if where not in m.runs.kept]
        inside = [where for where in freeing if outlives_turn(m, fact, loops.around(site, where, but=few), where)]
        if inside and site not in m.runs.reached and not is_begun_on_arms(m, site, fact.name):
            relations.append(fact._replace(ran=inside[0]))
    relations += _kept_in_fields(m, {fact.site for fact in relations})
    for site, again in sorted(m.runs.again.items()):
        relations += _again(m, loops, site, again)
    for site, (name, refs) in sorted(m.runs.retained.items()):
        if not loops.only_one(site, m.runs.sites) or any(_is_handed_out(m, ref) for ref in refs):
            continue
        loop = loops.around(site)
        through = m.runs.through.get(site, frozenset())
        carried = loop is not None and _carrier(m, loop, site, through) is not None
        earlier = loop is not None and (_may_carry(m, loop) or _is_on_earlier(m, loop, site))
        if carried or (site not in m.runs.used_again and not earlier):
            relations.append(RetainedForNothing(site, name, carried))
    return relations


def _is_on_earlier(m: Machine, loop: t.Loop, site: int) -> bool:
    """Whether backward at a site may run over a graph that was there before the loop's turn."""
    register = m.index.calls.get(site, -1)
    event = m.unit.definitions[register] if register >= 0 else None
    return event is not None and may_come_from_before(m, loop, event)


def _kept_in_fields(m: Machine, known: set[int]) -> Iterator[Relation]:
    """What a method adds to a field that it found, and runs backward over: each call of the method adds another."""
    for site, (fact, refs) in sorted(m.runs.fields.items()):
        carrying = [obj for ref in refs if (obj := _carrying(m, ref)) is not None]
        ran = sorted({where for obj in carrying for where in ran_at(obj.graph)} - m.runs.kept)
        empties = any(_empties(m, event, {fact.name}) for event in _unconditional(m.unit.tape) if event.site != site)
        if ran and len(carrying) == len(refs) and site not in known | m.runs.reached and not empties:
            yield fact._replace(ran=ran[0])


def outlives_turn(m: Machine, fact: Accumulated, loop: t.Loop | None, ran: int = -1) -> bool:
    """Whether a sum or a container goes on from one turn of a loop to the next, instead of beginning anew in each.

    What is emptied under a condition, every hundred turns, has kept a hundred graphs by then; but not where the
    condition is that for adding to it as well, nor where backward at the site `ran` runs every hundred turns, too.
    """
    if loop is None:
        return False
    names = {fact.name, fact.name.replace("[", ".").partition(".")[0]}
    seldom = any(branch.site in m.index.counting and _holds(branch, ran) for branch in m.index.of(t.Branch))
    events = t.events(loop.body) if seldom else _unconditional(loop.body, beside=fact.site)
    return not any(_empties(m, event, names) for event in events if event.site != fact.site)


def _holds(branch: t.Branch, site: int) -> bool:
    return any(event.site == site for arm in branch.arms for event in t.events(arm))


def _empties(m: Machine, event: t.Event, names: set[str]) -> bool:
    match event:
        case t.Bind():
            return event.name.partition("#")[0] in names and not _goes_on(m, event)
        case t.StoreAttribute():
            anew = not event.augmented and not _goes_on(m, event)
            return f"{naming.text_of(m, event.base)}.{event.name}" in names and anew
        case t.StoreItem():
            text = f"{naming.text_of(m, event.base)}[{naming.index_text(m, event.subscript)}]"
            return text in names and not event.augmented
        case t.DeleteItem():
            return naming.text_of(m, event.base) in names
        case t.Invoke():
            return event.name == "clear" and naming.text_of(m, event.base) in names
    return False


def _goes_on(m: Machine, event: t.Bind | t.StoreAttribute) -> bool:
    """Whether a name is bound to something that is computed from what it holds: `total += x`, `total = total + x`."""
    made = m.unit.definitions[event.value] if event.value >= 0 else None
    if not isinstance(made, t.Augment | t.Operate):
        return False
    sources = (m.unit.definitions[register] for register in t.operands(made))
    return any(naming.is_same_place(m, event, source) for source in sources)


def _unconditional(tape: t.Tape, beside: int = -1, inside: bool = False) -> Iterator[t.Event]:
    """The events of a tape without those of its branches, but with those of arms in which the site `beside` stands.

    In a loop inside of it, the other arms of that branch count as well: `if i == 0: total = x` begins for `else`.
    """
    for event in tape:
        yield event
        if isinstance(event, t.Loop):
            yield from _unconditional(event.body, beside, True)
        elif isinstance(event, t.Try):
            yield from _unconditional(event.body, beside, inside)
            yield from _unconditional(event.final, beside, inside)
        elif isinstance(event, t.Branch) and beside >= 0:
            among = [any(inner.site == beside for inner in t.events(arm)) for arm in event.arms]
            for arm, stands in zip(event.arms, among, strict=True):
                if stands or (inside and any(among)):
                    yield from _unconditional(arm, beside, inside)


def _is_handed_out(m: Machine, ref: int) -> bool:
    """Whether a value is returned or kept in a field, so that others may run backward over it."""
    out = {r | 1 for value in m.returned for r in (*value.refs, *_elements(m, value))}
    keys = (key for key in m.state.holders.get(ref, ()) if isinstance(key, tuple))
    return ref | 1 in out or any(m.state.object(key[0]).kind not in CONTAINERS for key in keys)


def _elements(m: Machine, value: Value) -> list[int]:
    return [held for ref in value.refs for slot in m.state.slot_names(ref) for held in m.state.refs_of(slot)]


def _again(m: Machine, loops: Loops, site: int, again: Again) -> Iterator[Relation]:
    earlier = [where for where in again.freed if where < site and not loops.are_alternatives(where, site)]
    if earlier:
        yield BackwardAgain(site, again.name, earlier[-1], again.sure, "", -1)
        return
    for where in again.freed:
        loop = loops.around(site, where)
        carrier = _carrier(m, loop, where, again.through) if loop is not None else None
        carrier = carrier or (left.by_call(m, loop, again) if loop is not None else None)
        if carrier is not None:
            name, kept = carrier
            yield BackwardAgain(site, again.name, where, again.sure, name, kept)
            return
        before = from_before(m, loop, again.through) if loop is not None else None
        if before is not None:
            yield BackwardAgain(site, again.name, where, again.sure, "", before.site, before.name)
            return


def _carrier(m: Machine, loop: t.Loop, ran: int, through: frozenset[int]) -> tuple[str, int] | None:
    """The name that takes a graph into the loop's next turn, and where it is bound last, if nothing there cuts it.

    It is read in the loop before it is bound there. Where one of several bindings cuts it, that happens under a
    condition of which we do not know how it goes with the one for backward.
    """
    read: set[str] = set()
    bound: dict[str, list[tuple[int, int]]] = {}
    carried: set[str] = set()
    for event in (event for part in (loop.test, loop.body) for event in t.events(part)):
        match event:
            case t.Load():
                read.add(event.name)
            case t.Attribute():
                read.add(f"{naming.text_of(m, event.base)}.{event.name}")
            case t.Bind() | t.StoreAttribute():
                named = event.name if isinstance(event, t.Bind) else f"{naming.text_of(m, event.base)}.{event.name}"
                if named in read and named not in bound:
                    carried.add(named)
                bound.setdefault(named, []).append((event.value, event.site))
            case t.StoreItem() | t.Invoke() if isinstance(event, t.StoreItem) or event.name.endswith("_"):
                # In place: what the name held before goes on, and takes the graph of what is put into it along.
                named = naming.text_of(m, event.base)
                if named not in bound:
                    carried.add(named)
                bound.setdefault(named, []).append((event.base, event.site))
    for name, places in bound.items():
        hidden = "#" in name or name.startswith(("%", ".")) or "..." in name
        cell = m.state.cell(name)
        reaches = any(site in through for site in (*(site for _, site in places), cell.site if cell else -1))
        if name in carried and reaches and not hidden and all(_takes_along(m, register, ran) for register, _ in places):
            if any(recurrent.may_cut(m, register) for register, _ in places):
                continue
            return None if _is_cut_by_method(m, loop, name) else (name, places[-1][1])
    return None


def _may_carry(m: Machine, loop: t.Loop) -> bool:
    """Whether a call of the loop is given what it returned on the turn before, which nothing cuts: `y, h = f(x, h)`.

    Then backward of each turn may run over the graph of the one before, whatever `f` is.
    """
    read: set[str] = set()
    bound: set[str] = set()
    for event in (event for part in (loop.test, loop.body) for event in t.events(part)):
        if isinstance(event, t.Load):
            read.add(event.name)
        elif isinstance(event, t.Bind) and event.name in read - bound and _returned_anew(m, event):
            return True
        if isinstance(event, t.Bind):
            bound.add(event.name)
    return False


def _returned_anew(m: Machine, event: t.Bind) -> bool:
    """Whether a name is bound to what a call returned that was given what the name held, and it may have a graph."""
    made = m.unit.definitions[event.value] if event.value >= 0 else None
    if isinstance(made, t.Unpack):
        made = m.unit.definitions[made.value] if made.value >= 0 else None
    if not isinstance(made, t.Call) or m.value(event.value).const is not None:
        return False
    function = m.value(made.function)
    if isinstance(function.const, t.Dotted):
        return False
    given = (m.unit.definitions[argument.register] for argument in made.arguments if argument.register >= 0)
    if not any(isinstance(source, t.Load) and source.name == event.name for source in given):
        return False
    held = list(_held(m, m.value(event.value).refs, MAX_DEPTH))
    return any(obj.requires_grad is not Fact.NO for obj in held if obj.kind in (*TENSORS, Kind.UNKNOWN))


def _is_cut_by_method(m: Machine, loop: t.Loop, name: str) -> bool:
    """Whether a loop calls a method of the same object that sets the field `name` anew, or detaches it."""
    owner, _, kept = name.rpartition(".")
    for event in (event for part in (loop.test, loop.body) for event in t.events(part)):
        if owner != "self" or not isinstance(event, t.Invoke) or naming.text_of(m, event.base) != owner:
            continue
        called = m.world.method(m.unit.owner, event.name)
        if called is not None and m.world.is_own(called) and _lets_go(m.world.unit(called), kept):
            return True
    return False


def _lets_go(unit: t.Unit, kept: str) -> bool:
    """Whether a method sets a field, or cuts what it holds."""
    for event in t.events(unit.tape):
        if isinstance(event, t.StoreAttribute) and event.name == kept:
            return True
        if isinstance(event, t.Invoke) and event.name == "detach_" and event.base >= 0:
            base = unit.definitions[event.base]
            if isinstance(base, t.Attribute) and base.name == kept:
                return True
    return False


def _takes_along(m: Machine, register: int, ran: int) -> bool:
    """Whether the value of a register carries a graph that backward at a site has freed (it has run since)."""
    held = list(_held(m, m.value(register).refs, MAX_DEPTH))
    return bool(held) and any(ran in ran_at(obj.graph) for obj in held)
