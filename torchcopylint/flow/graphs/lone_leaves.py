"""Leaves that end the graph of a loss, and that nobody else looks at: `torch.tensor(numbers, requires_grad=True)`.

Backward over what is computed from such leaves alone fills the gradients of these, which nobody asks for, and trains
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import TENSORS, Fact, Kind
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.tapes.way_back import WayBack
from torchcopylint.flow.values import naming
from torchcopylint.flow.values.state import kind_of
from torchcopylint.knowledge import table

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

MAKING = frozenset({"torch.tensor", "torch.as_tensor", "torch.from_numpy", "torch.Tensor", "torch.FloatTensor"})
_OF_NUMBERS = frozenset({Kind.NUMBER, Kind.STRING, Kind.NONE})
_TAKING = frozenset({"item", "tolist", "numpy", "detach"})
MAX_EVENTS = 120


def behind(
    m: Machine, register: int, cuts: Callable[[t.Call | t.Invoke], bool] = lambda _: False
) -> t.Call | t.Invoke | None:
    """The call that made such a leaf of the numbers in tensors, if nothing else behind a value requires grad. `cuts` is
    whether a call is known to take tensors with graphs."""
    leaves, seen = [], set[int]()
    way = WayBack(m, register, MAX_EVENTS)
    for event in way:
        out: int = getattr(event, "out", t.NO_REGISTER)
        seen.add(out)
        if _requires_none(m, out, event):
            continue
        if isinstance(event, t.Call | t.Invoke) and event.arguments and m.dotted_of(event) in MAKING:
            leaves.append(event)
        elif isinstance(event, t.Load) and (bound := uses.bindings_before(m, event)):
            way.go_on(bound)
        elif isinstance(event, t.Operate | t.Make) or _computes(m, event):
            way.go_on(_operands(m, event))
        else:
            return None
    if way.cut_short or not leaves or not all(_is_alone(m, leaf, seen, cuts(leaf)) for leaf in leaves):
        return None
    return leaves[0]


def _requires_none(m: Machine, out: int, event: t.Event) -> bool:
    value = m.value(out) if out >= 0 else None
    if value is None or isinstance(event, t.Const) or kind_of(value, m.state) in _OF_NUMBERS:
        return True
    found = [m.state.object(ref) for ref in value.refs]
    return bool(found) and all(obj.kind in TENSORS and obj.requires_grad is Fact.NO for obj in found)


def _computes(m: Machine, event: t.Event) -> bool:
    """Whether an event is a known operation on tensors."""
    if isinstance(event, t.Invoke) and m.value(event.base).refs:
        return table.tensor_method(event.name) is not None
    dotted = m.dotted_of(event) if isinstance(event, t.Call | t.Invoke) else ""
    return table.function(dotted) is not None


def _operands(m: Machine, event: t.Event) -> tuple[int, ...]:
    if isinstance(event, t.Call) or (isinstance(event, t.Invoke) and not m.value(event.base).refs):
        return tuple(argument.register for argument in event.arguments)
    return t.operands(event)


def _is_alone(m: Machine, leaf: t.Call | t.Invoke, seen: Collection[int], of_graphs: bool) -> bool:
    """Whether a leaf is made of tensors with graphs, of the numbers in tensors, or of somebody's where an optimizer is
    to learn from it, and nobody but what has been `seen` uses it."""
    made = [m.state.object(ref) for ref in m.value(leaf.out).refs]
    if not made or any(obj.requires_grad is not Fact.YES or obj.leaf is Fact.NO for obj in made):
        return False
    parts = uses.expression(m, leaf.arguments[0].register, "")
    numbers = of_graphs or any(_takes_numbers(m, part) for part in parts)
    if not numbers and not _trains_others(m, leaf, parts):
        return False
    user = m.consumer_of(leaf.out)
    if not isinstance(user, t.Bind):
        return getattr(user, "out", t.NO_REGISTER) in seen
    loads = [load for load in m.index.of(t.Load) if load.name == user.name]
    mine = [load.out for load in loads if leaf.out in uses.bindings_before(m, load)]
    return not uses.seen_from_inside(m, user.name) and all(register in seen for register in mine)


def _trains_others(m: Machine, leaf: t.Call | t.Invoke, parts: list[t.Event]) -> bool:
    """Whether a step is taken behind the leaf, which no optimizer has, and the leaf is made of what a field holds or
    somebody has handed in: `torch.tensor(agent.log_probs, requires_grad=True)`."""
    steps = [event for event in m.index.of(t.Invoke) if event.name == "step" and not event.arguments]
    if not any(event.site > leaf.site for event in steps):
        return False
    made = m.unit.definitions[leaf.arguments[0].register]
    return isinstance(made, t.Load | t.Attribute) and not any(isinstance(one, t.Const) for one in parts)


def _takes_numbers(m: Machine, event: t.Event) -> bool:
    """Whether an event gives the numbers in a tensor without its graph."""
    if isinstance(event, t.Call) and len(event.arguments) == 1 and naming.text_of(m, event.function) == "float":
        return m.value(event.arguments[0].register).const is None
    if isinstance(event, t.Attribute):
        return event.name == "data"
    return isinstance(event, t.Invoke) and event.name in _TAKING
