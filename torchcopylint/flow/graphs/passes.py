"""What a unit's backward passes say once it has been run: graphs that are summed up, run over again, or kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import Accumulated, BackwardAgain, ParameterRebound, RetainedForNothing
from torchcopylint.flow.graphs import addends, carriers, figures, own_elements, turn_by_turn
from torchcopylint.flow.graphs.beside import grows_beside
from torchcopylint.flow.graphs.earlier import comes_from_arguments, from_before, is_begun_on_arms, may_come_from_before
from torchcopylint.flow.graphs.runs import MAX_DEPTH, Again, carrying_object, held_in, ran_at
from torchcopylint.flow.model import (
    ARGUMENT,
    CONTAINERS,
    TENSORS,
    Fact,
    Kind,
    Object,
    Sure,
    Value,
)
from torchcopylint.flow.program import optimized
from torchcopylint.flow.tapes import exclusion, left
from torchcopylint.flow.tapes.loops import Loops, displayed
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from torchcopylint.flow.facts import Relation
    from torchcopylint.flow.running.machine import Machine


def found(m: Machine) -> list[Relation]:
    """What a unit's backward passes say once the unit has been run."""
    if not m.runs.sites:
        return []
    loops = Loops(m.unit.tape)
    # A graph for each of two models that are written out is what a comparison holds, and no more, and a graph for each
    # network that has an optimizer of its own is what these are trained with.
    few = frozenset[int]()
    if m.runs.added:
        few = displayed(m.unit.tape, m.unit.definitions) | own_elements.through_optimizers(m)
    relations: list[Relation] = []
    for site, (fact, ran) in sorted(m.runs.added.items()):
        freeing = [where for where in ran if where not in m.runs.kept] or _kept_by(m, fact, ran)
        inside = [where for where in freeing if outlives_turn(m, fact, _adding(m, loops, fact, where, few), where)]
        if inside and site not in m.runs.reached and not is_begun_on_arms(m, site, fact.name):
            relations.append(fact._replace(ran=inside[0]))
    relations += _put_within(m, loops, {fact.site for fact in relations})
    relations += _kept_in_fields(m, {fact.site for fact in relations})
    for site, again in sorted(m.runs.again.items()):
        relations += _again(m, loops, site, again)
    for site, again in sorted(m.runs.several.items()):
        relations += _again_on_shared(m, loops.around(site), site, again)
    for site, (name, refs) in sorted(m.runs.retained.items()):
        if not loops.only_one(site, m.runs.sites) or any(_is_handed_out(m, ref) for ref in refs):
            continue
        loop = loops.around(site)
        through = m.runs.through.get(site, frozenset())
        carried = loop is not None and carriers.found(m, loop, site, through) is not None
        earlier = loop is not None and (_may_carry(m, loop) or _is_on_earlier(m, loop, site))
        if carried or (site not in m.runs.used_again and not earlier):
            relations.append(RetainedForNothing(site, name, carried))
    return relations


def _adding(m: Machine, loops: Loops, fact: Accumulated, ran: int, but: frozenset[int]) -> t.Loop | None:
    """The loop on whose turns one sum is added to, and backward has run at the site `ran`."""
    around = loops.around(fact.site, ran, but=but)
    return own_elements.adds_again(m, loops, around, fact.name, (fact.site, ran))


def _kept_by(m: Machine, fact: Accumulated, ran: tuple[int, ...]) -> list[int]:
    """Which backward passes say that they keep the graph, where the sum itself is looked at as a number only.

    Nobody runs backward over it later, so what was kept for that was not kept for the sum.
    """
    keeping = [where for where in ran if where in m.runs.retained]
    if not keeping or fact.form != "sum" or not fact.name.isidentifier():
        return []
    looks = figures.Looks(m.unit, m)
    return keeping if looks.is_figure(fact.name) and not looks.returned else []


def _put_within(m: Machine, loops: Loops, known: set[int]) -> Iterator[Accumulated]:
    """What an inner loop collects, and a loop around it runs backward over before it collects more."""
    for site, (fact, refs) in sorted(m.runs.put_within.items()):
        if site in known | m.runs.reached or is_begun_on_arms(m, site, fact.name):
            continue
        freed = set.intersection(*(m.runs.freed_of.get(ref | 1, set()) for ref in refs)) - m.runs.kept
        mine = m.index.loops.get(site, ())
        for where in sorted(freed):
            around = m.index.loops.get(where, ())
            outer = bool(around) and len(around) < len(mine) and mine[: len(around)] == around
            if outer and where > site and outlives_turn(m, fact, loops.around(site, where), where):
                yield fact._replace(ran=where)
                break


def _is_on_earlier(m: Machine, loop: t.Loop, site: int) -> bool:
    """Whether backward at a site may run over a graph that was there before the loop's turn."""
    register = m.index.calls.get(site, -1)
    event = m.unit.definitions[register] if register >= 0 else None
    return event is not None and (may_come_from_before(m, loop, event) or comes_from_arguments(m, event))


def _kept_in_fields(m: Machine, known: set[int]) -> Iterator[Relation]:
    """What a method adds to a field that it found, and runs backward over: each call of the method adds another."""
    for site, (fact, refs) in sorted(m.runs.fields.items()):
        ran = run_over(m, fact, refs)
        if ran >= 0 and site not in known:
            yield fact._replace(ran=ran)


def run_over(m: Machine, fact: Accumulated, refs: tuple[int, ...]) -> int:
    """Where a unit runs backward over all that it adds to what it does not empty itself; -1 if it does not."""
    carrying = [obj for ref in refs if (obj := carrying_object(m, ref)) is not None]
    ran = {where for obj in carrying for where in ran_at(obj.graph)} - m.runs.kept
    if not ran or len(carrying) < len(refs) or fact.site in m.runs.reached:
        return -1
    empties = any(_empties(m, event, {fact.name}) for event in _unconditional(m.unit.tape) if event.site != fact.site)
    return -1 if empties else min(ran)


def outlives_turn(m: Machine, fact: Accumulated, loop: t.Loop | None, ran: int = -1) -> bool:
    """Whether a sum or a container goes on from one turn of a loop to the next, instead of beginning anew in each.

    What is emptied under a condition, every hundred turns, has kept a hundred graphs by then; but not where the
    condition is that for adding to it as well, or asked again there, nor where backward at the site `ran` runs every
    hundred turns, too, or on the same arm: `if not buffer: return`, and then backward, and `buffer = []`.
    """
    if loop is None:
        return False
    names = {fact.name, fact.name.replace("[", ".").partition(".")[0]}
    seldom = any(branch.site in m.index.counting and _holds(branch, ran) for branch in m.index.of(t.Branch))
    events = t.events(loop.body) if seldom else _unconditional(loop.body, beside=fact.site)
    if any(_empties(m, event, names) for event in events if event.site != fact.site):
        return False
    # `if use_critic: values = []`, and further on `if use_critic: values.append(critic(x))`.
    emptied = (event.site for event in t.events(loop.body) if event.site != fact.site and _empties(m, event, names))
    return not any(
        exclusion.goes_with(m, site, fact.site) or (ran >= 0 and exclusion.goes_along(m, site, ran)) for site in emptied
    )


def _holds(branch: t.Branch, site: int) -> bool:
    return any(event.site == site for arm in branch.arms for event in t.events(arm))


def _empties(m: Machine, event: t.Event, names: set[str]) -> bool:
    match event:
        case t.Bind():
            return event.name.partition("#")[0] in names and not addends.goes_on(m, event)
        case t.StoreAttribute():
            anew = not event.augmented and not addends.goes_on(m, event)
            return f"{naming.text_of(m, event.base)}.{event.name}" in names and anew
        case t.StoreItem():
            text = f"{naming.text_of(m, event.base)}[{naming.index_text(m, event.subscript)}]"
            return text in names and not event.augmented and not addends.goes_on(m, event)
        case t.DeleteItem():
            return naming.text_of(m, event.base) in names
        case t.Invoke():
            return event.name == "clear" and naming.text_of(m, event.base) in names
    return False


def _is_let_go_with(m: Machine, loop: t.Loop, name: str, ran: int) -> bool:
    """Whether a loop empties a container on each of its turns on which backward runs at a site, if not on others."""
    removals = (event for event in t.events(loop.body) if isinstance(event, t.Invoke | t.DeleteItem))
    emptied = (event.site for event in removals if _empties(m, event, {name}))
    return any(exclusion.goes_along(m, site, ran) for site in emptied)


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
    out = {r | 1 for value in m.results.returned for r in (*value.refs, *_elements(m, value))}
    keys = (key for key in m.state.holders.get(ref, ()) if isinstance(key, tuple))
    return ref | 1 in out or any(m.state.object(key[0]).kind not in CONTAINERS for key in keys)


def _elements(m: Machine, value: Value) -> list[int]:
    return [held for ref in value.refs for slot in m.state.slot_names(ref) for held in m.state.refs_of(slot)]


def _again(m: Machine, loops: Loops, site: int, again: Again) -> Iterator[Relation]:
    if again.networks and not optimized.is_trained(m, again.networks):
        again = again._replace(sure=Sure.HINT)
    earlier = [where for where in again.freed if where < site and not loops.are_alternatives(where, site)]
    if earlier:
        yield BackwardAgain(site, again.name, earlier[-1], again.sure, "", -1)
        return
    for where in again.freed:
        loop = own_elements.comes_again(m, loops, loops.around(site, where), site, where)
        carrier = carriers.found(m, loop, where, again.through) if loop is not None else None
        carrier = carrier or (left.by_call(m, loop, again) if loop is not None else None)
        if carrier is not None and not (loop is not None and _is_let_go_with(m, loop, carrier[0], where)):
            name, kept = carrier
            if _is_rebound(m, name):
                return
            yield BackwardAgain(site, again.name, where, again.sure, name, kept)
            return
        before = from_before(m, loop, again.through) if loop is not None else None
        let_go = before is not None and loop is not None and _is_let_go_with(m, loop, before.name, where)
        if before is not None and not let_go and not grows_beside(m, before, site):
            sure = Sure.HINT if _is_of_others(m, before) else again.sure
            yield BackwardAgain(site, again.name, where, sure, "", before.site, before.name)
            return
        stated = list(_again_on_shared(m, loop, site, again))
        yield from stated
        if stated:
            return


def _again_on_shared(m: Machine, loop: t.Loop | None, site: int, again: Again) -> Iterator[Relation]:
    """Each turn of a loop runs backward over a value of its own, and several of these hang on one graph."""
    shared = turn_by_turn.shared_by_elements(m, loop, site, again.through) if loop is not None else None
    if shared is not None:
        yield BackwardAgain(site, again.name, again.freed[0], again.sure, "", shared.site, shared.name)


def _is_rebound(m: Machine, name: str) -> bool:
    """Whether it is stated already that a name has lost the leaf that it is to hold: its graph comes from that."""
    stated = (fact for facts in m.facts.values() for fact in facts if isinstance(fact, ParameterRebound))
    return any(fact.form == "gradient" and fact.name == name for fact in stated)


def _is_of_others(m: Machine, bind: t.Bind) -> bool:
    """Whether a value was computed by networks that somebody else made, in a unit that trains something else.

    The second turn would raise if they were not frozen: features of an image that is to be met, by a network that was
    handed over; a transform of another file that has no parameters. The unit makes its optimizer itself.
    """
    graph = frozenset[int]().union(*(m.state.object(ref).graph for ref in m.value(bind.value).refs))
    networks = [ref for number in graph & m.needed.by_modules.keys() for ref in m.needed.by_modules[number].refs]
    if not networks or any(ref in m.backward.asked or _is_made_here(m, m.state.object(ref)) for ref in networks):
        return False
    made = (ref for register in m.index.calls.values() for ref in m.value(register).refs)
    return any(m.state.object(ref).kind is Kind.OPTIMIZER for ref in made)


def _is_made_here(m: Machine, network: Object) -> bool:
    """Whether a network is of this file, or a layer of torch, and was not handed over."""
    local = m.world.local_class(network.type)
    known = m.world.is_own_class(local) if local is not None else network.type.startswith("torch.")
    return known and network.owner != ARGUMENT


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
    held = list(held_in(m, m.value(event.value).refs, MAX_DEPTH))
    return any(obj.requires_grad is not Fact.NO for obj in held if obj.kind in (*TENSORS, Kind.UNKNOWN))
