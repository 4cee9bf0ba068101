"""Values that are computed from nothing but what has no graph, and from batches, of which nobody wants a gradient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import TENSORS, Fact, Kind, Object, Value
from torchcopylint.flow.references import FunctionReference
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.tapes.way_back import WayBack
from torchcopylint.flow.values import kinds, naming
from torchcopylint.flow.values.state import kind_of
from torchcopylint.knowledge import losses, table

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

MAX_EVENTS = 120
"""So many events are gone back over at most."""
MAX_STEPS = 12
"""So many times something is taken apart between a loop and what is used."""
_TARGETS = frozenset({"y", "target", "targets", "label", "labels", "gt", "mask", "masks", "y_true", "ground_truth"})
"""What a function is handed under such a name is what a network's result is to be."""
_OF_ONE = frozenset({"to", "cuda", "type", "view", "reshape", "permute", "transpose", "unsqueeze", "expand", "repeat"})
"""Methods that are given no tensors, or none that what they return hangs on."""
_OF_NUMBERS = frozenset({Kind.NUMBER, Kind.STRING, Kind.NONE})


def are_all_that_requires_grad(m: Machine, register: int) -> bool:
    """Whether a value has no graph unless what a loop takes out of what it goes through, or a target, has one."""
    way = WayBack(m, register, MAX_EVENTS)
    some = False
    for event in way:
        out: int = getattr(event, "out", t.NO_REGISTER)
        found = [m.state.object(ref) for ref in m.value(out).refs] if out >= 0 else []
        if isinstance(event, t.Load) and any(obj.requires_grad is Fact.YES for obj in found):
            return False
        if out < 0 or _requires_none(m, m.value(out), found):
            continue
        if isinstance(event, t.Load):
            bound = uses.bindings_before(m, event)
            if not bound and not _is_target(m, event.name):
                return False
            way.go_on(bound)
            some = some or not bound
        elif _is_of_loop(m, event):
            some = True
        else:
            further = _computed_from(m, event)
            if further is None:
                return False
            way.go_on(further)
    return some and not way.cut_short


def _requires_none(m: Machine, value: Value, found: Sequence[Object]) -> bool:
    if value.const is not None or kind_of(value, m.state) in _OF_NUMBERS:
        return True
    return bool(found) and all(obj.kind in TENSORS and obj.requires_grad is Fact.NO for obj in found)


def _is_target(m: Machine, name: str) -> bool:
    return name in _TARGETS and any(parameter.name == name for parameter in m.unit.parameters)


def _is_of_loop(m: Machine, event: t.Event) -> bool:
    """`for x, y in loader`, `for batch in loader: batch["y"]`."""
    for _ in range(MAX_STEPS):
        if not isinstance(event, t.Unpack | t.Item):
            break
        taken = m.unit.definitions[event.value if isinstance(event, t.Unpack) else event.base]
        bound = uses.bindings_before(m, taken) if isinstance(taken, t.Load) else []
        if taken is None or (isinstance(taken, t.Load) and len(bound) != 1):
            return False
        further = m.unit.definitions[bound[0]] if bound and bound[0] >= 0 else taken
        if further is None:
            return False
        event = further
    if not isinstance(event, t.Iterate):
        return False
    through = event.iterable
    made = m.unit.definitions[through]
    while isinstance(made, t.Call) and made.arguments:
        # `enumerate(loader)`, `tqdm(loader)`
        through = made.arguments[0].register
        made = m.unit.definitions[through]
    return kinds.named_loader(naming.text_of(m, through))


def _computed_from(m: Machine, event: t.Event) -> Sequence[int] | None:
    """The registers that an event computes its result from; `None` if nobody knows."""
    match event:
        case t.Operate():
            return event.operands
        case t.Augment():
            return (event.target, event.value)
        case t.Make():
            return (*event.items, *m.index.collected.get(event.out, ()))
        case t.Item():
            return (event.base,)
        case t.Unpack():
            made = m.unit.definitions[event.value]
            if not isinstance(made, t.Make) or any(made.stars):
                return None
            return made.items[event.position : event.position + 1] if event.position >= 0 else None
        case t.Invoke() | t.Call():
            return _of_call(m, event)
    return None


def _of_call(m: Machine, event: t.Invoke | t.Call) -> Sequence[int] | None:
    given = [argument.register for argument in event.arguments]
    if table.function(m.dotted_of(event)) is not None:
        return given
    if isinstance(event, t.Invoke) and table.tensor_method(event.name) is not None:
        return [event.base, *(given if event.name not in _OF_ONE else ())]
    function = m.value(event.function) if isinstance(event, t.Call) else _in_field(m, event)
    if isinstance(function.const, FunctionReference):
        return given
    made = [m.state.object(ref) for ref in function.refs]
    return given if made and all(losses.function_of(obj.type) is not None for obj in made) else None


def _in_field(m: Machine, event: t.Invoke) -> Value:
    """What a field holds that is called: `self.criterion(out, y)`."""
    owners = m.value(event.base).refs
    return Value(m.state.refs_of((owners[0], f".{event.name}"))) if len(owners) == 1 else Value()
