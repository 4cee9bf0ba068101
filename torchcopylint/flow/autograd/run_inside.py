"""Backward passes inside of a function: `def update(self, loss): ...; loss.backward()` runs over its caller's graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from torchcopylint.flow import tape as t
from torchcopylint.flow.autograd import grads, hanging
from torchcopylint.flow.model import Fact, Kind, Object, Sure, Value
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.tapes.way_back import WayBack
from torchcopylint.flow.values import memory, naming
from torchcopylint.flow.values.sites import Arguments
from torchcopylint.knowledge import table

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

_ARITHMETIC = frozenset({"+", "-", "*", "/", "**", "@"})
_KEEPING = ("retain_graph", "create_graph", "retain_variables", "inputs")


class Ran(NamedTuple):
    """Each call runs backward once over what it is given for some parameters, and may keep the graph for more."""

    parameters: tuple[str, ...]
    kept: bool


def ran(m: Machine) -> tuple[Ran, ...]:
    """Over which of its parameters a unit runs backward whenever it is called."""
    if m.blocks.has_no_grad or m.unit.is_generator or not m.unit.parameters:
        return ()
    found = []
    for event in m.index.of(t.Invoke):
        if event.name != "backward" or event.base < 0:
            continue
        if uses.on_some_paths(m, event.site) or uses.loops_around(m, event.site):
            continue
        kept = bool(event.arguments) and any(one.keyword in _KEEPING for one in event.arguments)
        names = hanging.sources(m, event.base, frozenset()) | _computed_from(m, event.base)
        found += [Ran(tuple(sorted(names)), kept)] if names else []
    return tuple(found)


def _computed_from(m: Machine, register: int) -> set[str]:
    """The parameters that a value is computed from by what tensors do: whoever runs backward over it, takes them for
    tensors, whether anything else says so or not."""
    names = {parameter.name for parameter in m.unit.parameters if parameter.kind == "plain"}
    found: set[str] = set()
    way = WayBack(m, register, hanging.MAX_STEPS)
    for event in way:
        if isinstance(event, t.Load):
            bound = uses.bindings_before(m, event)
            way.go_on(bound)
            if event.name in names and not bound:
                found.add(event.name)
        elif isinstance(event, t.Operate):
            way.go_on(event.operands if event.symbol in _ARITHMETIC else ())
        elif isinstance(event, t.Call | t.Invoke) and m.dotted_of(event).startswith("torch."):
            op = table.function(m.dotted_of(event))
            known = op is not None and op.differentiable
            way.go_on([argument.register for argument in event.arguments] if known else ())
        elif isinstance(event, t.Invoke) and event.base >= 0 and not isinstance(m.value(event.base).const, t.Dotted):
            op = table.tensor_method(event.name)
            way.go_on([event.base] if op is not None and op.differentiable else ())
    return found


def run(m: Machine, items: tuple[Ran, ...], bound: dict[str, Value], site: int, called: str) -> None:
    """A function of another file is called: of one of this file, what it does is seen in the place of its call."""
    for item in items:
        given = [bound[name] for name in item.parameters if name in bound and len(bound[name].refs) == 1]
        given = [value for value in given if m.state.object(value.refs[0]).requires_grad > 0]
        if not given:
            continue
        value, name = given[0], naming.key_text(m, given[0].root) if len(given) == 1 else f"{called}(...)"
        if len(given) > 1:
            # One pass over all of them: what they have in common is freed once.
            graph = frozenset[int]().union(*(m.state.object(one.refs[0]).graph for one in given))
            made = Object(Kind.TENSOR, Sure.LIKELY, leaf=Fact.NO, requires_grad=Fact.LIKELY, graph=graph, text=name)
            value = memory.fresh(m, site, made, "run inside")
        keywords = {"retain_graph": Value(const=True)} if item.kept else {}
        grads.backward(m, value, site, Arguments([], keywords), name or item.parameters[0])
