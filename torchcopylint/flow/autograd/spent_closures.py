"""Graphs that a function computes once, and that a closure of it runs backward over each time it is called:
`optimizer.step(closure)` calls it again and again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.autograd import spent_fields
from torchcopylint.flow.facts import BackwardAgain
from torchcopylint.flow.graphs import passes
from torchcopylint.flow.model import OUTPUT, TENSORS, Fact, Kind, Sure
from torchcopylint.flow.references import FunctionReference
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.tapes.way_back import WayBack
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from torchcopylint.flow.facts import Relation
    from torchcopylint.flow.running.machine import Machine

_SEARCHING = "LBFGS"
"""The optimizer that calls its closure several times a step."""


def found(m: Machine) -> Iterator[Relation]:
    """Where a closure that is called again frees a graph which the function around it has made."""
    outer = m.world.machines.get(m.unit.parent) if m.unit.parent >= 0 and m.unit.owner < 0 else None
    if outer is None or not m.runs.sites or m.blocks.on_purpose:
        return
    for site in sorted(m.runs.sites - m.runs.kept - set(m.runs.again)):
        over = spent_fields.operand(m, site)
        for name in _outer_names(m, over) if over >= 0 else ():
            made = _made_with_graph(outer, name)
            if made >= 0 and _is_called_again(outer, m.unit.number, made):
                yield BackwardAgain(site, naming.text_of(m, over), site, Sure.LIKELY, "", made, name)
                break


def collected(m: Machine, known: set[int]) -> Iterator[Relation]:
    """What a closure puts into a list of the function around it before it runs backward over that, where steps call the
    closure more often than the list is made. `known` is where that has been told."""
    outer = m.world.machines.get(m.unit.parent) if m.runs.put_outside else None
    for site, (fact, refs) in sorted(m.runs.put_outside.items()) if outer is not None else ():
        ran = passes.run_over(m, fact, refs) if site not in known else -1
        made = [bound.site for bound in outer.index.binds.get(fact.name, ())] if outer is not None else []
        if ran >= 0 and outer is not None and len(made) == 1 and _is_called_again(outer, m.unit.number, made[0]):
            yield fact._replace(ran=ran)


def trains(m: Machine) -> bool:
    """Whether a unit takes steps with a function that runs backward: `optimizer.step(closure)`."""
    steps = [event for event in m.index.of(t.Invoke) if event.name == "step" and event.arguments]
    given = [m.value(argument.register).const for event in steps for argument in event.arguments]
    closures = [m.world.machines.get(one.unit) for one in given if isinstance(one, FunctionReference)]
    return any(closure is not None and closure.backward.trains for closure in closures)


def _outer_names(m: Machine, register: int) -> list[str]:
    """The names of the function around this one that a value is computed from by what keeps the graph."""
    own = {parameter.name for parameter in m.unit.parameters} | m.unit.bound
    found: list[str] = []
    way = WayBack(m, register, spent_fields.MAX_STEPS)
    for event in way:
        if isinstance(event, t.Load):
            way.go_on(uses.bindings_before(m, event))
            if event.name not in own and event.site not in m.index.unrecorded:
                found.append(event.name)
        elif isinstance(event, t.Operate):
            way.go_on(event.operands)
        elif isinstance(event, t.Call | t.Invoke) and spent_fields.hands_on(m, event):
            way.go_on([argument.register for argument in event.arguments])
            way.go_on([event.base] if isinstance(event, t.Invoke) else [])
    return found


def _made_with_graph(outer: Machine, name: str) -> int:
    """Where a function binds a name, once and on all paths, to what has a graph to be freed; -1 if it does not."""
    bound = outer.index.binds.get(name, ())
    if len(bound) != 1 or uses.on_some_paths(outer, bound[0].site) or _is_set_from_inside(outer, name):
        return -1
    objects = [outer.state.object(ref) for ref in outer.value(bound[0].value).refs]
    # All that a network has returned, if nobody here has shown what it is: it is the closure that makes a loss of it.
    computed = (
        obj.graph and (OUTPUT in obj.flags or (obj.kind in TENSORS and obj.leaf is Fact.NO and obj.requires_grad > 0))
        for obj in objects
    )
    return bound[0].site if objects and all(computed) else -1


def _is_set_from_inside(outer: Machine, name: str) -> bool:
    """Whether a function in this one sets the name, as `nonlocal`."""
    inner = (unit for unit in outer.world.program.units if unit.parent == outer.unit.number)
    return any(name not in unit.bound and name in outer.world.index(unit).binds for unit in inner)


def _is_called_again(outer: Machine, number: int, made: int) -> bool:
    """Whether a function calls another one of its own more often than it binds something at a site."""
    around = uses.loops_around(outer, made)
    calls: list[t.Invoke | t.Call] = [*outer.index.of(t.Invoke), *outer.index.of(t.Call)]
    for event in calls:
        passed = [outer.value(one.register).const for one in event.arguments[:1] if not one.stars]
        steps = isinstance(event, t.Invoke) and event.name == "step" and _is(passed, number)
        called = isinstance(event, t.Call) and _is([outer.value(event.function).const], number)
        if not (steps or called):
            continue
        if len(uses.loops_around(outer, event.site)) > len(around):
            return True
        if steps and isinstance(event, t.Invoke) and _searches(outer, event.base):
            return True
    return False


def _is(constants: list[object], number: int) -> bool:
    return any(isinstance(one, FunctionReference) and one.unit == number for one in constants)


def _searches(m: Machine, register: int) -> bool:
    """Whether an optimizer is one that calls its closure several times, and is not told to do so once."""
    for ref in m.value(register).refs:
        obj = m.state.object(ref)
        made = m.unit.definitions[m.index.calls[obj.site]] if obj.site in m.index.calls else None
        if obj.kind is not Kind.OPTIMIZER or not isinstance(made, t.Call | t.Invoke):
            return False
        if not m.dotted_of(made).endswith(_SEARCHING) or any(one.keyword == "max_iter" for one in made.arguments):
            return False
    return bool(m.value(register).refs)
