"""Parameters that alone can be what a function trains: `def meta_step(w, tasks)`, which runs backward over losses that
are computed of `w` and of the batches that a loop takes out of `tasks`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.references import FunctionReference
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.tapes.way_back import WayBack
from torchcopylint.flow.values import imports, naming
from torchcopylint.knowledge import table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchcopylint.flow.running.machine import Machine

MAX_EVENTS = 120
"""So many events are gone back over from a loss."""
_NUMBERS = frozenset({"float", "int", "bool", "str"})
_WITHOUT_GRAPH = frozenset(
    {"shape", "ndim", "dtype", "device", "data", "grad", "item", "detach", "size", "numel", "len"}
    | {"numpy", "tolist", "argmax", "argmin", "argsort"}
)
_COUNTING = frozenset({"sum", "max", "min", "abs", "len"})


def is_trained(m: Machine, name: str) -> bool:
    """Whether a function runs backward over something that nothing but the parameter of that name can have a graph
    from: backward would be refused if it required none."""
    calls = [call for call in m.index.of(t.Invoke) if call.name == "backward" and imports.ahead(m, call)[:1] == "."]
    return any(_sources(m, call.base) == {name} for call in calls)


def _sources(m: Machine, register: int) -> set[str] | None:
    """The parameters that a value is computed from, but for numbers; `None` if it may be computed from other things
    than them, constants, and the parts of what a loop goes through, which are its data."""
    parameters = {one.name: one for one in m.unit.parameters}
    found: set[str] = set()
    way = WayBack(m, register, MAX_EVENTS)
    for event in way:
        if isinstance(event, t.Load):
            bound = uses.bindings_before(m, event)
            one = parameters.get(event.name)
            if (not bound and one is None) or _is_switched(m, event.name):
                return None
            way.go_on(bound)
            if not bound and one is not None and not _is_number(one):
                found.add(event.name)
            continue
        further = _computed_from(m, event)
        if further is None:
            return None
        way.go_on(further)
    return None if way.cut_short else found


def _is_switched(m: Machine, name: str) -> bool:
    """Whether a unit says of what a name holds that it requires grad: it is a leaf of its own from there on."""
    stores = (event for event in m.index.of(t.StoreAttribute) if event.name == "requires_grad")
    return any(naming.text_of(m, event.base) == name for event in stores)


def _is_number(parameter: t.Parameter) -> bool:
    declared = parameter.annotation.name if parameter.annotation is not None else ""
    return declared in _NUMBERS or (not declared and parameter.has_default)


def _computed_from(m: Machine, event: t.Event) -> Sequence[int] | None:
    """The registers that an event computes its result from; `None` if nobody knows."""
    match event:
        case t.Const():
            return ()
        case t.Operate():
            return event.operands
        case t.Augment():
            return (event.target, event.value)
        case t.Make():
            return event.items
        case t.Item():
            return (event.base,)
        case t.Unpack():
            return () if isinstance(m.unit.definitions[event.value], t.Iterate) else (event.value,)
        case t.Attribute():
            return () if event.name in _WITHOUT_GRAPH else None
        case t.Invoke() | t.Call():
            return _of_call(m, event)
    return None


def _of_call(m: Machine, event: t.Invoke | t.Call) -> Sequence[int] | None:
    given = [argument.register for argument in event.arguments]
    switched = isinstance(event, t.Invoke) and event.name == "requires_grad_"
    if switched or any(argument.keyword == "requires_grad" for argument in event.arguments):
        # A leaf of its own.
        return None
    if table.function(imports.ahead(m, event)) is not None:
        return given
    if isinstance(event, t.Invoke):
        if event.name in _WITHOUT_GRAPH:
            return ()
        return [event.base, *given] if table.tensor_method(event.name) is not None else None
    called = m.unit.definitions[event.function]
    if not isinstance(called, t.Load) or uses.bindings_before(m, called):
        return None
    if isinstance(m.world.outer(m, called.name).const, FunctionReference):
        return given
    return (given if called.name != "len" else ()) if called.name in _COUNTING else None
