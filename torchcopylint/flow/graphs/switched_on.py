"""Losses that are said to require grad: `loss.requires_grad = True` behind `argmax`, `-array.sum().requires_grad_()`.

Who switches that on of a loss has been told that it required none. Backward then fills a gradient that nobody asks for.
What else the loss may be computed from (targets, of which nobody knows whether they require grad) has no part in that,
as long as nothing on the way to it brings a graph along.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.base.finding import Role
from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import GraphLost
from torchcopylint.flow.graphs import lone_leaves, severed
from torchcopylint.flow.model import TENSORS, Fact, Kind, Sure
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.tapes.way_back import WayBack
from torchcopylint.flow.values import inside, kinds, naming
from torchcopylint.knowledge import table

if TYPE_CHECKING:
    from collections.abc import Collection

    from torchcopylint.flow.running.machine import Machine

Cut = tuple[t.Event, int, str]
MAX_EVENTS = 120
"""So many events are gone back over from a loss."""


def note(m: Machine, register: int, site: int, name: str) -> None:
    """Backward runs over a loss that nothing with a graph is behind, but for what has lost it, and that is switched on
    all the same."""
    if register < 0 or m.blocks.on_purpose or not kinds.named_loss(name):
        return
    switched = dict(_switched(m, register, site))
    found = _cut_behind(m, register, site, frozenset()) if switched else None
    if found is None or not all(_is_let_alone(m, one, found[1]) for one in switched.values()):
        return
    event, source, op = found[0]
    m.fact(GraphLost(site, name, naming.spelling(m, source), event.site, op, True, Sure.LIKELY))


def _switched(m: Machine, register: int, site: int) -> list[tuple[int, str]]:
    """Where grad is switched on of a loss, or of what it is computed from: the sites, and the names."""
    switches = _switches_of(m)
    calls: list[t.Invoke | t.Call] = [*m.index.of(t.Invoke), *m.index.of(t.Call)]
    if not switches and not any(_makes_leaf(m, event) for event in calls):
        # So it is in nearly every unit, and the way back is long.
        return []
    found: list[tuple[int, str]] = []
    named: set[str] = set()
    way = WayBack(m, register, MAX_EVENTS)
    for event in way:
        if isinstance(event, t.Load):
            named.add(event.name)
        if isinstance(event, t.Invoke | t.Call) and (_switches(m, event) or _makes_leaf(m, event)):
            # Whoever has given it a name can ask that for its gradient: `x = net(y).detach().requires_grad_()`.
            found.append((event.site, _name_given(m, event.out)))
        way.go_on(severed.behind(m, event, site) if severed.cuts(m, event) is None else ())
    switched = [(at, naming.text_of(m, base)) for at, base in switches if at < site]
    return found + [(at, name) for name in named for at, text in switched if text == name]


def _name_given(m: Machine, register: int) -> str:
    """The name that a value is bound to as it was made, if it is."""
    return next((name for name, bound in m.index.binds.items() if any(b.value == register for b in bound)), "")


def _switches_of(m: Machine) -> list[tuple[int, int]]:
    """Where a unit says of something that it requires grad, and the register of that."""
    calls = [(event.site, event.base) for event in m.index.of(t.Invoke) if _switches(m, event)]
    stores = (event for event in m.index.of(t.StoreAttribute) if event.name == "requires_grad")
    return calls + [(event.site, event.base) for event in stores if m.value(event.value).const is True]


def _makes_leaf(m: Machine, event: t.Invoke | t.Call) -> bool:
    """`torch.tensor(out > 0.5, requires_grad=True)`"""
    asked = (argument for argument in event.arguments if argument.keyword == "requires_grad")
    return any(m.value(one.register).const is True for one in asked) and m.dotted_of(event) in lone_leaves.MAKING


def _switches(m: Machine, event: t.Event) -> bool:
    if not isinstance(event, t.Invoke) or event.name != "requires_grad_":
        return False
    return not event.arguments or m.value(event.arguments[0].register).const is True


def _is_let_alone(m: Machine, name: str, seen: Collection[int]) -> bool:
    """Whether nobody looks at what has a name but who computes the loss: else its gradient may be what is wanted."""
    if not name or kinds.named_loss(name):
        return True
    switched = {base for _, base in _switches_of(m)}
    loads = [load.out for load in m.index.of(t.Load) if load.name == name]
    return not uses.seen_from_inside(m, name) and all(out in seen or out in switched for out in loads)


def _cut_behind(m: Machine, register: int, site: int, names: frozenset[str]) -> tuple[Cut, set[int]] | None:
    """The first place on the way to a value where something lost its graph, if nothing else there may bring one along,
    and what was come by. Parameters of the `names` bring one."""
    found: list[Cut] = []
    seen = set[int]()
    way = WayBack(m, register, MAX_EVENTS)
    for event in way:
        seen.add(getattr(event, "out", t.NO_REGISTER))
        cutting = severed.cuts(m, event)
        if cutting is not None:
            if severed.carries(m, cutting[0]) or (names and severed.is_of_arguments(m, names, cutting[0], site)):
                found.append((event, *cutting))
            else:
                way.go_on(severed.behind(m, event, site))
            continue
        helped = severed.cut_elsewhere(m, event) or _cut_by_helper(m, event)
        if helped is not None:
            found.append(helped)
        elif _is_without_graph(m, event):
            continue
        elif not _may_be_passed(m, event, names):
            return None
        elif isinstance(event, t.Call):
            way.go_on(argument.register for argument in event.arguments)
        else:
            way.go_on(severed.behind(m, event, site))
    return (min(found, key=lambda cut: cut[0].site), seen) if found and not way.cut_short else None


def _is_without_graph(m: Machine, event: t.Event) -> bool:
    """Whether an event calls something that nobody knows, and that has returned what requires no grad."""
    if not isinstance(event, t.Call | t.Invoke):
        return False
    known = table.tensor_method(event.name) if isinstance(event, t.Invoke) else table.function(m.dotted_of(event))
    made = [m.state.object(ref) for ref in m.value(event.out).refs]
    kinds_of = (*TENSORS, Kind.ARRAY)
    return known is None and bool(made) and all(o.kind in kinds_of and o.requires_grad is Fact.NO for o in made)


def _may_be_passed(m: Machine, event: t.Event, names: frozenset[str]) -> bool:
    """Whether an event computes what it gives of its operands and brings no graph of its own."""
    match event:
        case t.Load():
            bound = bool(m.index.binds.get(event.name))
            return bound or (event.name not in names and not kinds.named_loss(event.name))
        case t.Invoke() | t.Call() if not (isinstance(event, t.Invoke) and _switches(m, event)):
            known = table.tensor_method(event.name) if isinstance(event, t.Invoke) else None
            function = known or table.function(m.dotted_of(event))
            text = event.name if isinstance(event, t.Invoke) else naming.text_of(m, event.function)
            return function is not None or kinds.named_criterion(text) or text in ("sum", "len", "list", "zip")
        case t.Attribute():
            return not severed.carries(m, event.out)
    return True


def _cut_by_helper(m: Machine, event: t.Event) -> Cut | None:
    """The call of a function or method of this file that returns nothing with the graph of what it was given."""
    if not isinstance(event, t.Call | t.Invoke):
        return None
    called = severed.called_unit(m, event)
    helper = m.world.machines.get(called) if called is not None and m.world.is_own(called) else None
    taken = [order for order, argument in enumerate(event.arguments) if severed.carries(m, argument.register)]
    returned = helper.index.of(t.Return) if helper is not None else []
    if helper is None or not taken or not returned or helper is m:
        return None
    names = severed.passed_for(helper, event, taken)
    behind = [_cut_behind(helper, one.value, one.site + 1, names) for one in returned]
    found = [one[0] for one in behind if one is not None]
    if len(found) < len(behind):
        return None
    last, _, op = found[-1]
    inside.note(m, event.site, Role.CUT, inside.innermost(helper, last.site, Role.CUT, op, given=False))
    return event, event.arguments[taken[0]].register, f"{severed.text_of_call(m, event)}(...)"
