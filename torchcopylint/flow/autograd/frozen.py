"""Networks of which every parameter is switched off: what they make of something without a graph has none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.autograd import grads
from torchcopylint.flow.facts import CopyFrozen
from torchcopylint.flow.model import SWITCHED, TENSORS, Fact, How, Kind, Object, Value
from torchcopylint.flow.program import hollow
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from torchcopylint.flow.running.machine import Machine

_ALL = frozenset({"parameters", "named_parameters"})


def note_loop(m: Machine, wanted: bool | None, site: int) -> None:
    """In a loop over all parameters of a module, `requires_grad` is switched: `for p in net.parameters(): ...`."""
    loops = uses.loops_around(m, site)
    if not loops or uses.on_some_paths(m, site):
        return
    loop = next(one for one in m.index.of(t.Loop) if one.site == loops[-1])
    head = loop.body[0] if loop.body else None
    made = m.unit.definitions[head.iterable] if isinstance(head, t.Iterate) else None
    if isinstance(made, t.Invoke) and made.name in _ALL and not made.arguments:
        for ref in m.value(made.base).refs:
            if wanted is False and m.state.object(ref).kind is Kind.MODULE:
                m.switches.frozen.add(ref | 1)
                note_copy(m, ref, naming.text_of(m, made.base), "requires_grad = False", site)
            else:
                m.switches.frozen.discard(ref | 1)
                m.switches.thawed.add(ref | 1)


def note_copy(m: Machine, ref: int, name: str, op: str, site: int) -> None:
    """What is switched off may be a shallow copy of a module, which has the very parameters of that."""
    obj = m.state.object(ref)
    copied = next((share for share in obj.shares if share.how is How.COPY and share.sure), None)
    source = m.state.object(copied.of).text if copied is not None else ""
    if copied is not None and source not in ("", name):
        m.fact(CopyFrozen(site, name, source, op, copied.site, obj.sure))


def switched_arguments(m: Machine) -> tuple[str, ...]:
    """The parameters of a unit, by their names, over whose own parameters it has gone to switch what they require, and
    those that are tensors which it has switched off."""
    switched = m.switches.parameters | m.switches.tensors | m.switches.thawed
    names = [parameter.name for parameter in m.unit.parameters] if switched else []
    return tuple(name for name in names if m.number("argument", name) | 1 in switched)


def arguments_switched_on(m: Machine) -> tuple[str, ...]:
    """The parameters of a unit that are no networks, and that it leaves switched on, whichever way it went."""
    names = [parameter.name for parameter in m.unit.parameters] if m.switches.on else []
    found = ((name, m.number("argument", name)) for name in names)
    return tuple(name for name, ref in found if ref | 1 in m.switches.on and _is_on(m.state.object(ref)))


def _is_on(obj: Object) -> bool:
    return obj.kind is not Kind.MODULE and obj.requires_grad is Fact.YES


def take_on(m: Machine, on: Iterable[str], bound: Mapping[str, Value]) -> None:
    """A call has told these arguments to require gradients."""
    for value in (bound.get(name, Value()) for name in on):
        obj = m.state.object(value.refs[0]) if len(value.refs) == 1 else None
        if obj is not None and obj.kind in TENSORS and obj.requires_grad is not Fact.YES:
            leaf = Fact.YES if obj.leaf is Fact.UNKNOWN and not obj.graph else obj.leaf
            m.state.set_object(value.refs[0], obj._replace(requires_grad=Fact.YES, leaf=leaf))


def frozen_arguments(m: Machine) -> tuple[str, ...]:
    """The parameters of a unit that are networks of which it has switched off all that they train, on all paths."""
    refs = ((parameter.name, m.number("argument", parameter.name)) for parameter in m.unit.parameters)
    return tuple(name for name, ref in refs if ref | 1 in m.switches.frozen or _is_off(m.state.object(ref)))


def _is_off(obj: Object) -> bool:
    return obj.kind is Kind.MODULE and obj.requires_grad is Fact.NO


def take(m: Machine, switched: Iterable[str], off: Iterable[str], bound: Mapping[str, Value]) -> None:
    """A call has switched what the parameters of these arguments require, and, of some, all `off`."""
    for ref in (ref for name in switched for ref in bound.get(name, Value()).refs):
        obj = m.state.object(ref)
        if obj.kind not in TENSORS:
            m.switches.parameters.add(ref | 1)
            m.switches.frozen.discard(ref | 1)
        elif obj.leaf is not Fact.NO:
            m.state.set_object(ref, obj._replace(requires_grad=Fact.UNKNOWN))
    for value in (bound.get(name, Value()) for name in off):
        if len(value.refs) == 1 and m.state.object(value.refs[0]).kind is Kind.MODULE:
            m.switches.frozen.add(value.refs[0] | 1)


def is_switched(m: Machine, ref: int) -> bool:
    """Whether a loop has gone over the parameters of a module: nobody knows which of them require gradients."""
    return ref | 1 in m.switches.parameters or SWITCHED in m.state.object(ref).flags


def note_part(m: Machine, ref: int, part: Value) -> None:
    """A module is given a part, which has not been switched off with the others."""
    parts = [m.state.object(held) for held in part.refs]
    if any(one.kind in (Kind.MODULE, Kind.PARAMETER) and one.requires_grad is not Fact.NO for one in parts):
        m.switches.frozen.discard(ref | 1)
        obj = m.state.object(ref)
        if obj.kind is Kind.MODULE and obj.requires_grad is Fact.NO:
            m.state.set_object(ref, obj._replace(requires_grad=Fact.UNKNOWN))


def is_frozen(m: Machine, ref: int) -> bool:
    """Whether all the parameters of a module are switched off, as far as its own unit, or the module's body, says."""
    return m.state.object(ref).requires_grad is Fact.NO or ref | 1 in m.switches.frozen


def trains_nothing(m: Machine, function: Value, obj: Object) -> bool:
    """Whether a network, as `obj` describes it, has no parameters that gradients could go to."""
    local = m.world.local_class(obj.type)
    off = obj.requires_grad is Fact.NO or (len(function.refs) == 1 and is_frozen(m, function.refs[0]))
    # What a loop in a constructor or another method has switched off may train nothing.
    off = off or SWITCHED in obj.flags or (obj.requires_grad is not Fact.YES and m.world.is_switched(obj.type, ""))
    return off or (local is not None and hollow.has_no_parameters(m.world, local))


def made_by_frozen(m: Machine, given: Iterable[Value], made: Object) -> Object:
    """What a function of the project has made, which is given frozen networks and no others: a graph that it has seen
    comes from their parameters, if nothing else that it is given has one."""
    values = list(given)
    modules = [ref for value in values for ref in value.refs if m.state.object(ref).kind is Kind.MODULE]
    if made.requires_grad <= 0 or not modules or not all(is_frozen(m, ref) for ref in modules):
        return made
    if any(obj.requires_grad > 0 for obj in grads.tensors_in(m, values)):
        return made
    return made._replace(requires_grad=Fact.UNKNOWN, leaf=Fact.UNKNOWN)
