"""On which of its arguments what a function returns hangs, by the graph of autograd: `y, h = model(x, h)`.

Then what backward has run over before the call is a part of what comes back, and backward runs over it again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from torchcopylint.flow import tape as t
from torchcopylint.flow.autograd import distributions, grads
from torchcopylint.flow.graphs import runs
from torchcopylint.flow.model import (
    ANY_ELEMENT,
    CONTAINERS,
    PARTS,
    PLACEHOLDER,
    TENSORS,
    Fact,
    Kind,
    Object,
    Sure,
    Value,
)
from torchcopylint.flow.program import recurrent
from torchcopylint.flow.storages import keeping, slots
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.tapes.way_back import WayBack
from torchcopylint.flow.values import kinds, memory, naming
from torchcopylint.knowledge import table

if TYPE_CHECKING:
    from torchcopylint.flow.interprocedural.summaries import Summary
    from torchcopylint.flow.running.machine import Machine

MAX_STEPS = 80
"""So many events are gone back over from what is returned to the parameters."""
_COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "!=", "in", "is", "not"})
_GRAD = "torch.autograd.grad"
"""Gradients have a graph where one is asked for (executed under torch 2.13)."""
_DISCRETE = frozenset({"argmax", "argmin", "long", "int", "bool", "argsort", "one_hot", "zeros_like", "ones_like"})


_GOING_THROUGH = frozenset({f"builtins.{name}" for name in ("zip", "enumerate", "reversed", "list", "tuple")})
_LOOKING_THROUGH = frozenset({"items", "values"})
_TAKING_OUT = frozenset({"get", "pop", "setdefault"})


class Hanging(NamedTuple):
    """What stands in `slot` of what a function returns (or all of it) hangs on the graph of `parameter`.

    Of a method, that may be a field as well, by its text: `self.hidden`, or one of a part, `self.memory.state`.
    """

    slot: str
    parameter: str


Graphs: TypeAlias = "list[tuple[str, frozenset[int]]]"
"""Slots of what a call returns, and the graphs behind them."""


def of(m: Machine, fields: frozenset[str]) -> tuple[Hanging, ...]:
    """Which parts of what a unit returns hang on which parameter, or on which of some fields, whichever way it
    returns."""
    if m.blocks.has_no_grad or m.unit.is_generator:
        return ()
    returns = [event for event in m.index.of(t.Return) if event.value >= 0]
    found: set[Hanging] | None = None
    for event in returns:
        made = m.unit.definitions[event.value]
        parts = {"": event.value}
        if isinstance(made, t.Make) and made.kind == "tuple" and not any(made.stars):
            parts = {f"[{position}]": register for position, register in enumerate(made.items)}
        hanging = {Hanging(slot, name) for slot, register in parts.items() for name in sources(m, register, fields)}
        found = hanging if found is None else found & hanging
    return tuple(sorted(found or ()))


def field_of(m: Machine, name: str) -> str:
    """How a field of the object is called whose method this is."""
    return f"{m.unit.first}.{name}"


def sources(m: Machine, register: int, fields: frozenset[str]) -> set[str]:
    """The parameters, and those of some fields, that a value is computed from by what keeps the graph."""
    own = 1 if m.unit.owner >= 0 else 0
    names = {parameter.name for parameter in m.unit.parameters[own:] if parameter.kind == "plain"}
    found: set[str] = set()
    way = WayBack(m, register, MAX_STEPS)
    for event in way:
        if event.__class__ is t.Load:
            bound = uses.bindings_before(m, event)
            way.go_on([*bound, *_appended(m, event.name, bound)])
            if event.name in names and not any(_ends(m, event.name, one) for one in bound):
                found.add(event.name)
        elif event.__class__ is t.Attribute and event.name in fields:
            if naming.text_of(m, event.out) == field_of(m, event.name):
                found.add(field_of(m, event.name))
        elif event.__class__ is t.Attribute and _is_view_with_graph(m, event):
            way.go_on([event.base])
        elif event.__class__ is t.Operate and event.symbol not in _COMPARISONS:
            way.go_on(event.operands)
        elif event.__class__ is t.Unpack:
            of_own = _through_own(m, event.value, f"[{event.position}]")
            way.go_on([event.value] if of_own is None else of_own)
            found |= _fields_through_own(m, event.value, f"[{event.position}]", fields) if of_own is not None else set()
        elif event.__class__ is t.Item:
            way.go_on([event.base])
        elif event.__class__ is t.Iterate:
            way.go_on([event.iterable])
        elif event.__class__ is t.Call and m.dotted_of(event) in _GOING_THROUGH:
            way.go_on([argument.register for argument in event.arguments])
        elif event.__class__ is t.Make:
            # A key of a dictionary is no part of what stands there.
            collected = (one.item for one in m.index.of(t.Collect) if one.container == event.out)
            way.go_on([*event.items, *collected])
        elif event.__class__ is t.Invoke and event.name in _LOOKING_THROUGH and not event.arguments:
            way.go_on([event.base])
        elif event.__class__ is t.Invoke and event.name in _TAKING_OUT and event.arguments:
            # What stands in for an entry that there is not yet has no history.
            way.go_on([event.base])
        elif (event.__class__ is t.Call or event.__class__ is t.Invoke) and (
            of_own := _through_own(m, event.out, "")
        ) is not None:
            way.go_on(of_own)
            found |= _fields_through_own(m, event.out, "", fields)
        elif event.__class__ is t.Call and (of_network := _through_network(m, event)) is not None:
            way.go_on(of_network)
        elif (event.__class__ is t.Call or event.__class__ is t.Invoke) and _keeps_graph(m, event):
            way.go_on([argument.register for argument in event.arguments])
            way.go_on([event.base] if isinstance(event, t.Invoke) else [])
    return found


def _is_view_with_graph(m: Machine, event: t.Attribute) -> bool:
    """Whether an attribute of a tensor is one as well, in its graph: `weights.T`, not `weights.data`."""
    objects = [m.state.object(ref) for ref in (*m.value(event.base).refs, *m.value(event.out).refs)]
    return bool(objects) and all(obj.kind in TENSORS and obj.requires_grad is not Fact.NO for obj in objects)


def _appended(m: Machine, name: str, bound: list[int]) -> list[int]:
    """What is put into a list or dictionary that a name is bound to, by that name."""
    if not any(m.unit.definitions[register].__class__ is t.Make for register in bound if register >= 0):
        return []
    stored = [event.value for event in m.index.of(t.StoreItem) if naming.text_of(m, event.base) == name]
    return stored + [
        event.arguments[0].register
        for event in m.index.of(t.Invoke)
        if event.name == "append" and len(event.arguments) == 1 and naming.text_of(m, event.base) == name
    ]


class Called(NamedTuple):
    """A method of the object that the unit is a method of is called, or one of what it holds in the field `part`."""

    call: t.Invoke
    part: str
    method: int


def called(m: Machine, register: int) -> Called | None:
    """The call of a method that a register comes from: of a network in a field, that is its `forward`."""
    call = m.unit.definitions[register] if register >= 0 else None
    base = m.unit.definitions[call.base] if call.__class__ is t.Invoke and call.base >= 0 else None
    if call.__class__ is not t.Invoke or m.unit.owner < 0 or not m.unit.parameters:
        return None
    if base.__class__ is t.Load and base.name == m.unit.first:
        known = m.world.field_of(f"class#{m.unit.owner}", call.name)
        forward = m.world.method_of(known, "forward") if known is not None and known.kind is Kind.MODULE else None
        method = m.world.method(m.unit.owner, call.name) if forward is None else forward
        return Called(call, call.name if forward is not None else "", method) if method is not None else None
    holder = m.unit.definitions[base.base] if base.__class__ is t.Attribute and base.base >= 0 else None
    if base.__class__ is t.Attribute and holder.__class__ is t.Load and holder.name == m.unit.first:
        known = m.world.field_of(f"class#{m.unit.owner}", base.name)
        method = m.world.method_of(known, call.name) if known is not None else None
        return Called(call, base.name, method) if method is not None else None
    return None


def _through_own(m: Machine, register: int, slot: str) -> list[int] | None:
    """The arguments that a part of what a network of the file returns hangs on, where a field holds it and is called,
    or of what another method of the object does: `y, self.h = self.net(x, self.h)`; `None` of any other value."""
    found = called(m, register)
    summary = m.world.summary(found.method) if found is not None else None
    if found is None or summary is None:
        return None
    return _given_for(m, found.method, found.call, summary, slot)


def _given_for(m: Machine, method: int, call: t.Call | t.Invoke, summary: Summary, slot: str = "") -> list[int]:
    """What a call of a method passes for the parameters that its result, or a part of it, hangs on."""
    names = [parameter.name for parameter in m.world.unit(method).parameters[1:]]
    given = dict(
        zip(names, [one.register for one in call.arguments if not one.keyword and not one.stars], strict=False)
    )
    given |= {one.keyword: one.register for one in call.arguments if one.keyword}
    return [given[one.parameter] for one in summary.hangs if one.slot in (slot, "") and one.parameter in given]


def _through_network(m: Machine, event: t.Call) -> list[int] | None:
    """The arguments that what a network returns hangs on, which has been handed in or made here, and whose class is
    known; `None` of any other call."""
    refs = m.value(event.function).refs
    obj = m.state.object(refs[0]) if len(refs) == 1 else None
    number = m.world.local_class(obj.type) if obj is not None and obj.kind is Kind.MODULE else None
    forward = m.world.method(number, "forward") if number is not None else None
    summary = m.world.summary(forward) if forward is not None else None
    if forward is None or summary is None:
        return None
    return _given_for(m, forward, event, summary)


def _fields_through_own(m: Machine, register: int, slot: str, fields: frozenset[str]) -> set[str]:
    """Those of some fields of the object, or of its parts, that what such a call returns hangs on."""
    found = called(m, register)
    summary = m.world.summary(found.method) if found is not None else None
    hanging = [one.parameter.partition(".") for one in summary.hangs if one.slot in (slot, "")] if summary else []
    before = f"{found.part}." if found is not None and found.part else ""
    return {field_of(m, before + field) for _, _, field in hanging if field and before + field in fields}


def _ends(m: Machine, name: str, register: int) -> bool:
    """Whether a binding takes the place of what the caller has passed under a name, or is made of it.

    `if h is None: h = torch.zeros(2)` leaves what was passed as it is.
    """
    binds = [event for event in m.index.binds.get(name, ()) if event.value == register]
    conditional = bool(binds) and all(uses.on_some_paths(m, event.site) for event in binds)
    made = uses.expression(m, register, name)
    return not conditional or any(isinstance(event, t.Load) and event.name == name for event in made)


def _keeps_graph(m: Machine, event: t.Call | t.Invoke) -> bool:
    if m.dotted_of(event) == _GRAD:
        return any(one.keyword == "create_graph" and m.value(one.register).const is True for one in event.arguments)
    if m.dotted_of(event).rpartition(".")[2] in _DISCRETE or (isinstance(event, t.Invoke) and event.name in _DISCRETE):
        return False
    if isinstance(event, t.Invoke):
        base = m.unit.definitions[event.base]
        if isinstance(base, t.Load) and base.name == m.unit.first:
            known = m.world.field_of(f"class#{m.unit.owner}", event.name) if m.unit.owner >= 0 else None
            layer = known is not None and table.module_class(known.type) is not None
            going_round = kinds.named_model(event.name) and recurrent.goes_round(m, event.site)
            unknown = known is None or known.kind is Kind.UNKNOWN
            return layer or going_round or (unknown and kinds.named_criterion(event.name))
        refs = m.value(event.base).refs
        if refs and all(distributions.is_one(m.state.object(ref)) for ref in refs):
            return event.name in distributions.HANGING
        if _is_computed_of_output(m, event):
            return True
    elif _is_layer(m, event.function) or _is_criterion(m, event):
        return True
    return keeping.keeps_graph(m, event)


def _is_computed_of_output(m: Machine, event: t.Invoke) -> bool:
    """Whether a method that makes a new tensor is called on what has been computed from what a network has returned
    of which nothing is known: `((out - y) ** 2).mean()`."""
    objects = [m.state.object(ref) for ref in m.value(event.base).refs]
    op = table.tensor_method(event.name)
    fresh = op is not None and op.shares == "fresh" and op.result == "tensor" and op.differentiable
    return fresh and bool(objects) and all(obj.kind is Kind.UNKNOWN and obj.graph for obj in objects)


def _is_criterion(m: Machine, event: t.Call) -> bool:
    """Whether what is called is a variable of which nothing but its name is known, and that is of a loss."""
    load = m.unit.definitions[event.function] if event.function >= 0 else None
    held = m.value(event.function)
    unknown = held.const is None and all(m.state.object(ref).kind is Kind.UNKNOWN for ref in held.refs)
    return isinstance(load, t.Load) and unknown and kinds.named_criterion(load.name)


def _is_layer(m: Machine, register: int) -> bool:
    """Whether a register holds a layer of torch's, such as one that a loop takes out of a list of them."""
    rows = [table.module_class(m.state.object(ref).type) for ref in m.value(register).refs]
    return bool(rows) and all(row is not None and not row.container for row in rows)


def graphs(m: Machine, items: tuple[Hanging, ...], bound: dict[str, Value]) -> Graphs:
    """The graphs that the parts of what a call returns hang on, by the slots of the parts.

    To be asked before the call changes anything: what it has made on an earlier turn of a loop is older afterwards.
    """
    found = []
    for item in items if m.state.mode.recording > 0 else ():
        given = _given(m, item.parameter, bound)
        graph = frozenset[int]().union(*(o.graph for o in grads.tensors_in(m, [given]) if o.requires_grad > 0))
        # What a loop's first turn starts from, and what its others find, are two things.
        found.append((item.slot, graph - runs.on_some_paths(m, given)))
    return found


def _given(m: Machine, parameter: str, bound: dict[str, Value]) -> Value:
    """What a call is given for a parameter, or what the field of the one whose method it is holds."""
    name, _, path = parameter.partition(".")
    value = bound.get(name, Value())
    for field in path.split(".") if path else ():
        cell = m.state.cell((value.refs[0], f".{field}")) if len(value.refs) == 1 else None
        value = Value(cell.refs, cell.kind) if cell is not None else Value()
    return value


def carry(m: Machine, hanging: Graphs, result: Value, site: int, bound: dict[str, Value]) -> None:
    """A call returns what hangs on such graphs. What was passed and comes back holds what it held."""
    if hanging and any(result.refs == value.refs for value in bound.values()):
        return
    for part, graph in hanging if len(result.refs) == 1 else ():
        value = slots.slot_value(m, (result.refs[0], part)) if part else result
        for ref in value.refs:
            _hang(m, ref, graph, site, part)


def may_hang(obj: Object) -> bool:
    """Whether a part of what a call returns can hang on a graph: a tensor, or a distribution that is made of some."""
    return obj.kind in (*TENSORS, Kind.UNKNOWN) or distributions.is_one(obj)


def _hang(m: Machine, ref: int, graph: frozenset[int], site: int, slot: str) -> None:
    obj = m.state.object(ref)
    parts = PARTS in obj.flags
    if obj.kind in CONTAINERS and not parts:
        if not m.state.slot_names(ref):
            one = Object(Kind.TENSOR, Sure.LIKELY, text=f"{obj.text}[...]", flags=frozenset({PLACEHOLDER}))
            held = memory.fresh(m, site, one, f"each of {slot}")
            slots.bind_slot(m, (ref, ANY_ELEMENT), held, site)
        for name in m.state.slot_names(ref):
            for inner in m.state.refs_of(name):
                if inner != ref and m.state.object(inner).kind not in CONTAINERS:
                    _hang(m, inner, graph, site, slot)
    elif (parts or may_hang(obj)) and graph and obj.requires_grad is not Fact.NO:
        sure = max(obj.requires_grad, Fact.LIKELY)
        m.state.set_object(ref, obj._replace(graph=obj.graph | graph, requires_grad=sure, leaf=Fact.NO))
