"""Sums and lists that gather the graph of every turn of a loop, and of which everybody takes the numbers alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import Accumulated
from torchcopylint.flow.graphs import own_elements, passes, runs
from torchcopylint.flow.graphs.earlier import is_begun_on_arms
from torchcopylint.flow.graphs.figures import Looks, is_figure_for_callers, is_for_others, is_taken_so
from torchcopylint.flow.model import PART, TENSORS, Fact, Kind, Object, Sure, Value
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.tapes.loops import Loops
from torchcopylint.flow.values import kinds, naming

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchcopylint.flow.facts import Relation
    from torchcopylint.flow.running.machine import Machine


class Gathered(NamedTuple):
    """What a function returns at a place (-1: all that it returns) is a sum or a list with the graph of every turn."""

    place: int
    name: str
    source: str
    form: str
    sure: Sure


_DICTIONARIES = frozenset({"dict", "defaultdict", "OrderedDict", "Counter"})


def note(m: Machine, site: int, own: int, value: Value, source: str, form: str = "figure") -> None:
    """At `site`, in a loop, `value` is added to the sum in the register `own`, or to the list (`figures`)."""
    m.gathering.own.pop(site, None)
    if not m.in_loop or m.state.mode.recording is not Fact.YES or not value.refs:
        return
    objects = [m.state.object(ref) for ref in value.refs]
    if any(ref | 1 in m.runs.parts and m.state.object(ref).kind is Kind.UNKNOWN for ref in value.refs):
        # Of several things that a function returns of which nothing is known, each may be a number.
        return
    if all(_carries_network(m, obj, f"{source} {obj.text}") for obj in objects):
        sure = min(obj.sure if obj.kind in TENSORS else Sure.LIKELY for obj in objects)
        name = naming.text_of(m, own)
        m.gathering.own[site] = own, Accumulated(site, name, source, form, -1, sure, m.state.mode.assumed)
        m.gathering.hanging_on[site] = frozenset(
            number for obj in objects for number in obj.graph if number in m.needed.by_modules
        )


def _carries_network(m: Machine, obj: Object, text: str) -> bool:
    """Whether an object has the graph of a network behind it, that nothing has cut.

    What nobody knows makes of the output of a network, if it is called a loss, is one.
    """
    if obj.kind not in (*TENSORS, Kind.UNKNOWN) or PART in obj.flags or obj.leaf > 0 or obj.requires_grad is Fact.NO:
        return False
    if obj.requires_grad is Fact.UNKNOWN and not kinds.named_criterion(text):
        return False
    return any(number in m.needed.by_modules for number in obj.graph)


def found(m: Machine, known: set[int]) -> Iterator[Relation]:
    """The sums and lists of a unit that nobody uses but as numbers; not those at the sites `known`."""
    for fact, looks in _figures(m, known):
        if looks.returned and not is_figure_for_callers(m.world, m.unit.number, looks.returned):
            continue
        yield fact._replace(ran=min((s for s in looks.looked if s > fact.site), default=-1))
    yield from _of_others(m, known)


def handed_out(m: Machine) -> tuple[Gathered, ...]:
    """The sums and lists that a unit returns, and leaves it to the callers of other files what they are for: in its
    own file, nobody calls it. But not what is for others than those: who tries a network and asks for the shape is not
    all that calls it."""
    if not m.gathering.own or m.world.call_modes.get(m.unit.number) or is_for_others(m.world, m.unit.number):
        return ()
    found = []
    for fact, looks in _figures(m, set()):
        found += [Gathered(place, fact.name, fact.source, fact.form, fact.sure) for place in sorted(looks.returned)]
    return tuple(found)


def for_others(m: Machine) -> frozenset[int]:
    """The sites of what a unit gathers, if what it returns is not for those alone that call it here."""
    return frozenset(m.gathering.own) if m.gathering.own and is_for_others(m.world, m.unit.number) else frozenset()


def note_call(m: Machine, unit: int, site: int) -> None:
    """At `site`, a function of another file is called, which may return such sums."""
    sums = m.world.outside.gathers(unit)
    m.gathering.by_calls.pop(site, None)
    if sums and m.state.mode.recording is Fact.YES:
        m.gathering.by_calls[site] = sums, m.state.mode.assumed


def _of_others(m: Machine, known: set[int]) -> Iterator[Relation]:
    """The calls of functions of other files that return such a sum, of which nothing but the number is used here."""
    calls: list[t.Call | t.Invoke] = [*m.index.of(t.Call), *m.index.of(t.Invoke)] if m.gathering.by_calls else []
    for call in calls:
        sums, assumed = m.gathering.by_calls.get(call.site, ((), False))
        for one in sums if call.site not in known else ():
            looks = Looks(m.unit, m)
            if is_taken_so(looks, call, {one.place}) and looks.looked and not looks.returned:
                name = f"{naming.text_of(m, call.out)}"
                yield Accumulated(call.site, name, one.source, one.form, min(looks.looked), one.sure, assumed)
                break


def _figures(m: Machine, known: set[int]) -> Iterator[tuple[Accumulated, Looks]]:
    """The sums and lists of a unit that it uses as numbers alone, or returns."""
    loops = Loops(m.unit.tape) if m.gathering.own else None
    for site, (own, fact) in sorted(m.gathering.own.items()):
        made = m.unit.definitions[own] if own >= 0 else None
        loaded = made if fact.name.isidentifier() else _dictionary(m, made)
        if loops is None or site in known or not isinstance(loaded, t.Load):
            continue
        if is_begun_on_arms(m, site, loaded.name) or _is_of_one_graph(m, site, loaded.name):
            continue
        around = own_elements.adds_again(m, loops, loops.around(site), fact.name, (site,))
        if not passes.outlives_turn(m, fact, around) or _ends_loop(m.unit.tape, site):
            continue
        if fact.form != "figures" and loaded is made and _is_taken_apart(m, loaded.name):
            continue
        looks = Looks(m.unit, m, "" if loaded is made else loaded.name)
        if not looks.is_figure(loaded.name) or not (looks.looked or looks.returned):
            continue
        if not looks.returned and _is_alive_in_result(m, site):
            continue
        yield fact, looks


def _dictionary(m: Machine, event: t.Event | None) -> t.Load | None:
    """The dictionary of sums that a sum is an entry of, where the unit has begun it: `totals = {"a": 0, "b": 0}`."""
    loaded = m.unit.definitions[event.base] if isinstance(event, t.Item) and event.base >= 0 else None
    bound = uses.bindings_before(m, loaded) if isinstance(loaded, t.Load) else []
    begun = [m.unit.definitions[register] if register >= 0 else None for register in bound]
    if not isinstance(loaded, t.Load) or not begun or not loaded.name.isidentifier():
        return None
    return loaded if all(_is_new_dictionary(m, one) for one in begun) else None


def _is_new_dictionary(m: Machine, event: t.Event | None) -> bool:
    if isinstance(event, t.Make):
        return event.kind == "dict"
    return isinstance(event, t.Call) and naming.text_of(m, event.function).rpartition(".")[2] in _DICTIONARIES


def _is_of_one_graph(m: Machine, site: int, name: str) -> bool:
    """Whether what the turns add hangs on what a network has computed once, before the loops that add to the sum or
    list: each turn keeps no graph but that one. `values = critic(x)`, and then `found.append(r[i] + values[i])`."""
    begun = [set(m.index.loops.get(bind.site, ())) for bind in m.index.binds.get(name, ())]
    graphs = m.gathering.hanging_on.get(site, frozenset())
    called = [site for site in map(runs.calling, graphs) if site in m.index.calls]
    if not begun or not called or len(called) < len(graphs):
        return False
    # What another loop has computed one by one is as many graphs as that one has turns.
    return all(set(m.index.loops.get(one, ())) <= set.intersection(*begun) for one in called)


def _is_alive_in_result(m: Machine, site: int) -> bool:
    """Whether what the unit returns hangs on the same graphs, of all turns: who gathers what `forward` has computed on
    the way, to look at it, keeps nothing alive by that."""
    graphs = m.gathering.hanging_on.get(site, frozenset())
    refs = [ref for value in m.results.returned for ref in value.refs]
    refs += [ref for one in refs for ref in _given(m, m.state.object(one))]
    objects = runs.held_in(m, tuple(refs), runs.MAX_DEPTH)
    found = [obj for obj in objects if obj.requires_grad > 0 and graphs & obj.graph]
    around = m.index.loops.get(site, ())
    return any(obj.site >= 0 and around and around[0] not in m.index.loops.get(obj.site, ()) for obj in found)


def _given(m: Machine, obj: Object) -> Iterator[int]:
    """What was passed to the call that made an object, which may hold it: `return Output(out=out, seen=seen)`."""
    register = m.index.calls.get(obj.site, -1) if obj.kind in (Kind.INSTANCE, Kind.UNKNOWN) else -1
    call = m.unit.definitions[register] if register >= 0 else None
    for argument in call.arguments if isinstance(call, t.Call) else ():
        yield from m.value(argument.register).refs


def _is_taken_apart(m: Machine, name: str) -> bool:
    """Whether elements are taken out of what a name holds: `features[mask].detach()` is no number."""
    for use in uses.of_name(m, name):
        event = m.consumer_of(use.register) if use.loads else None
        if isinstance(event, t.Item) and event.base == use.register:
            return True
    return False


def _ends_loop(tape: t.Tape, site: int) -> bool:
    """Whether the loop around a site ends with the turn that comes by there: `total += loss; break`."""
    for place, event in enumerate(tape):
        if event.site == site and any(isinstance(later, t.Break) for later in tape[place:]):
            return True
        if any(_ends_loop(part, site) for part in t.inner_tapes(event)):
            return True
    return False
