"""`torch.vmap(function)`: inside, what is computed from a mapped argument has a dimension that nobody sees.

A tensor without it cannot take such a value in place: there is no room for one value per example.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import MappedWrite
from torchcopylint.flow.model import FIELD, GLOBAL, TENSORS, Kind
from torchcopylint.flow.references import FunctionReference
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.tapes.way_back import WayBack
from torchcopylint.knowledge import table

if TYPE_CHECKING:
    from torchcopylint.flow.facts import Relation
    from torchcopylint.flow.running.machine import Machine
    from torchcopylint.flow.values.sites import Arguments

VMAP = frozenset({"torch.vmap", "torch.func.vmap", "functorch.vmap"})
MAPPED = "mapped"
MAX_EXPRESSION = 60
_MAKING = frozenset({"zeros", "ones", "empty", "full", "eye", "arange", "tensor", "linspace"})
"""Functions of torch whose result is not mapped, whatever size they are given."""
_PLAIN = frozenset({"shape", "dtype", "device", "ndim", "size", "dim", "numel", "element_size", "stride", "is_cuda"})
"""What is the same for every example."""


def note(m: Machine, function: object, arguments: Arguments, *, bound: bool) -> None:
    """A function is given to `vmap`, or a method, `bound` to its object. Which of its parameters are not mapped,
    `in_dims` says."""
    if not isinstance(function, FunctionReference) or not m.world.is_own(function.unit):
        return
    unit = m.world.program.units[function.unit]
    parameters = [p.name for p in unit.parameters[bound:] if p.kind == "plain"]
    dims = arguments.keywords.get("in_dims", arguments.at(1))
    if len(dims.refs) == 1 and m.state.object(dims.refs[0]).kind in (Kind.TUPLE, Kind.LIST):
        held = [m.state.cell((dims.refs[0], f"[{position}]")) for position in range(len(parameters))]
        known = [name for name, one in zip(parameters, held, strict=True) if one is not None and _is_dim(one.const)]
    elif dims.refs or (dims.const is None and dims.kind is not Kind.UNKNOWN):
        return
    else:
        known = parameters
    for name in known:
        m.world.roles.setdefault(function.unit, set()).add(f"{MAPPED} {name}")


def _is_dim(const: object) -> bool:
    return isinstance(const, int) and not isinstance(const, bool)


def found(m: Machine) -> list[Relation]:
    """Writes of mapped values into what is not mapped, in a function that `vmap` is given."""
    roles = m.world.roles_of(m.unit)
    mapped = {role.removeprefix(f"{MAPPED} ") for role in roles if role.startswith(MAPPED)}
    if any(table.canonical(m.world.resolve_name(name)) in VMAP for name in m.world.decorators(m.unit.number)):
        mapped = {parameter.name for parameter in m.unit.parameters if parameter.kind == "plain"}
    if not mapped:
        return []
    relations: list[Relation] = []
    refused: set[int] = set()
    for event in m.index.events:
        for target, values in _writes(event):
            write = m.writes.get(event.site)
            source = next((name for value in values if (name := _mapped(m, value, mapped))), "")
            if (
                write is None
                or not source
                or refused & set(write.storages)
                or _mapped(m, target, mapped, maybe=True)
                or not _is_plain(m, target)
            ):
                continue
            refused.update(write.storages)
            relations.append(MappedWrite(event.site, write.name, write.op, source, write.sure))
    return relations


def _writes(event: t.Event) -> Iterator[tuple[int, tuple[int, ...]]]:
    """What an event writes in place, and what goes into it."""
    match event:
        case t.Augment():
            yield event.target, (event.value,)
        case t.StoreItem():
            yield event.base, (event.value, *(part for part in event.subscript if isinstance(part, int)))
        case t.Invoke() if event.name.endswith("_") and not event.name.endswith("__"):
            yield event.base, tuple(argument.register for argument in event.arguments)


def _is_plain(m: Machine, register: int) -> bool:
    """Whether a tensor is surely not mapped: it comes from outside of the function, or was made of nothing mapped."""
    value = m.value(register)
    owners = {share.storage for ref in value.refs for share in m.state.object(ref).shares}
    if not owners or any(m.state.object(ref).kind not in TENSORS for ref in value.refs):
        return False
    if all(m.state.object(ref).owner == FIELD for ref in value.refs):
        return True
    arguments = {m.number("argument", parameter.name) for parameter in m.unit.parameters}
    if owners & arguments:
        # A parameter that `in_dims` leaves out.
        return owners <= arguments
    if all(m.state.object(owner).owner == GLOBAL for owner in owners):
        return True
    made = [event for event in uses.expression(m, register, "") if isinstance(event, t.Call | t.Invoke)]
    names = [m.dotted_of(event).rpartition(".") for event in made]
    return bool(made) and all(head != "torch" or name in _MAKING or name.endswith("_") for head, _, name in names)


def _mapped(m: Machine, register: int, parameters: set[str], *, maybe: bool = False) -> str:
    """The mapped parameter that a value is computed from; `maybe` if what nobody knows counts as well."""
    way = WayBack(m, register, MAX_EXPRESSION)
    for event in way:
        if isinstance(event, t.Load):
            bound = uses.bindings_before(m, event)
            if event.name in parameters and not bound:
                return event.name
            way.go_on(bound)
        elif not _is_same(m, event, maybe) or _is_of_arithmetic(m, event, parameters):
            way.go_on(t.operands(event))
            if isinstance(event, t.Item):
                way.go_on(part for part in event.subscript if isinstance(part, int))
    return ""


def _is_same(m: Machine, event: t.Event, maybe: bool) -> bool:
    """Whether the result of an event is the same for every example, or nobody knows (unless `maybe`)."""
    if isinstance(event, t.Attribute | t.Invoke) and event.name in _PLAIN:
        return True
    if not isinstance(event, t.Call | t.Invoke):
        return False
    dotted = m.dotted_of(event)
    if dotted.startswith("torch."):
        return dotted.rpartition(".")[2] in _MAKING
    if maybe or isinstance(event, t.Call):
        return not maybe
    value = m.value(event.base)
    return not value.refs or any(m.state.object(ref).kind not in TENSORS for ref in value.refs)


def _is_of_arithmetic(m: Machine, event: t.Event, parameters: set[str]) -> bool:
    """Whether a method is called on what an operator makes of a mapped parameter, which is a tensor:
    `(row > limit).sum()`."""
    made = m.unit.definitions[event.base] if isinstance(event, t.Invoke) and event.base >= 0 else None
    loaded = [m.unit.definitions[one] for one in t.operands(made)] if isinstance(made, t.Operate) else []
    names = [one.name for one in loaded if isinstance(one, t.Load) and not uses.bindings_before(m, one)]
    return isinstance(event, t.Invoke) and event.name not in _PLAIN and not parameters.isdisjoint(names)
