"""Modules that compute one of their weights: `weight_norm`, `spectral_norm`, pruning.

Those of `torch.nn.utils.parametrizations` compute it whenever somebody asks for it. The older ones keep what they have
computed in a plain attribute, with its graph, and compute it again at each call, as that is recorded.
"""

from __future__ import annotations

from torchcopylint.flow import tape as t
from torchcopylint.flow.autograd import unknowns
from torchcopylint.flow.model import COMPUTED_AT, COMPUTES, COMPUTES_ANEW, Fact, Kind, Object, Sure, Value
from torchcopylint.flow.running.machine import Machine
from torchcopylint.flow.running.special import special
from torchcopylint.flow.storages import reading, slots
from torchcopylint.flow.values import memory
from torchcopylint.flow.values.sites import Arguments
from torchcopylint.knowledge import table

_AT_ONCE = "torch.nn.utils.weight_norm"
_AT_CALLS = "torch.nn.utils.spectral_norm"
_PRUNE = "torch.nn.utils.prune."
_PRUNING = (
    "identity",
    "random_unstructured",
    "l1_unstructured",
    "random_structured",
    "ln_structured",
    "custom_from_mask",
)
_MAX_DEPTH = 3
"""So deep are those looked for that are called with the module that holds them."""


@special(
    _AT_ONCE,
    _AT_CALLS,
    "torch.nn.utils.parametrizations.weight_norm",
    "torch.nn.utils.parametrizations.spectral_norm",
    "torch.nn.utils.parametrizations.orthogonal",
)
def _normed(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    """The module itself, which computes one of its weights from now on: that is no leaf any more."""
    module = arguments.first("module")
    reading.read(m, module, event.site, "argument", name)
    if len(module.refs) != 1 or m.state.object(module.refs[0]).kind is not Kind.MODULE:
        return memory.unknown(m, event.site, f"{name}(...)")
    field = _field(arguments)
    slots.bind_slot(m, (module.refs[0], f".{field}"), memory.unknown(m, event.site, f"{name}(...).{field}"), event.site)
    dotted = m.dotted_of(event)
    if dotted in (_AT_ONCE, _AT_CALLS):
        _keep(m, module.refs[0], field, event.site, at_once=dotted == _AT_ONCE)
    else:
        _compute_anew(m, module.refs[0], field)
    _note_where(m, module.refs[0], event.site)
    return module


@special("torch.nn.utils.parametrize.register_parametrization")
def _parametrised(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    """What was a parameter is computed of it whenever somebody asks for it. Buffers are parametrised as well."""
    module, told = arguments.first("module"), arguments.keywords.get("tensor_name", arguments.at(1)).const
    unknowns.call_unknown(m, arguments, event.site, name)
    if len(module.refs) != 1 or m.state.object(module.refs[0]).kind is not Kind.MODULE or not isinstance(told, str):
        return module
    obj = m.state.object(module.refs[0])
    row = table.module_class(obj.type) if obj.type else None
    held = m.state.refs_of((module.refs[0], f".{told}"))
    parameter = row is not None and told in row.parameters
    parameter = parameter or (bool(held) and all(m.state.object(ref).kind is Kind.PARAMETER for ref in held))
    field = memory.unknown(m, event.site, f"{obj.text}.{told}", "weight")
    slots.bind_slot(m, (module.refs[0], f".{told}"), field, event.site)
    if parameter:
        _compute_anew(m, module.refs[0], told)
        _note_where(m, module.refs[0], event.site)
    return module


@special(*(_PRUNE + name for name in _PRUNING))
def _pruned(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    """The weight is the product of a parameter and a mask from now on."""
    result = unknowns.call_unknown(m, arguments, event.site, name)
    module = arguments.first("module")
    if len(module.refs) != 1 or m.state.object(module.refs[0]).kind is not Kind.MODULE:
        return result
    _keep(m, module.refs[0], _field(arguments), event.site, at_once=True)
    _note_where(m, module.refs[0], event.site)
    return module


@special(
    "torch.nn.utils.remove_weight_norm",
    "torch.nn.utils.remove_spectral_norm",
    "torch.nn.utils.parametrize.remove_parametrizations",
    _PRUNE + "remove",
)
def _removed(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    """The weight is a parameter again."""
    unknowns.call_unknown(m, arguments, event.site, name)
    module = arguments.first("module")
    field = _field(arguments)
    for ref in module.refs:
        obj = m.state.object(ref)
        anew = (COMPUTES_ANEW, field)
        left = tuple(entry for entry in obj.config if entry != anew)
        m.state.set_object(ref, obj._replace(flags=obj.flags - {COMPUTES}, config=left))
        slots.bind_slot(m, (ref, f".{field}"), memory.unknown(m, event.site, f"{name}(...).{field}"), event.site)
    return module


def asked(m: Machine, base: Value, field: str, site: int) -> Value | None:
    """A field that a module computes whenever somebody asks for it: the tensor is another one at each look."""
    entry = (COMPUTES_ANEW, field)
    if len(base.refs) != 1 or entry not in m.state.object(base.refs[0]).config:
        return None
    if m.state.mode.recording <= 0 or m.state.object(base.refs[0]).requires_grad is Fact.NO:
        return None
    return _computed(m, base.refs[0], field, site)


def called(m: Machine, function: Value, site: int) -> None:
    """A module has been called: what it or its parts keep of a weight is computed anew, with a graph or without one."""
    for ref in function.refs:
        if m.state.mode.recording <= 0:
            m.shown.unrecorded.add(ref)
        _called(m, ref, site, _MAX_DEPTH)


def _called(m: Machine, ref: int, site: int, depth: int) -> None:
    obj = m.state.object(ref)
    if obj.kind is not Kind.MODULE:
        return
    if COMPUTES in obj.flags:
        field = dict(obj.config).get(COMPUTES)
        recorded = m.state.mode.recording > 0 and obj.requires_grad is not Fact.NO
        made = (
            _computed(m, ref, str(field), site)
            if recorded
            else memory.unknown(m, site, f"{obj.text}.{field}", "weight")
        )
        slots.bind_slot(m, (ref, f".{field}"), made, site)
    for slot in m.state.slot_names(ref) if depth else ():
        for part in m.state.refs_of(slot):
            if part != ref:
                _called(m, part, site, depth - 1)


def is_as_left(m: Machine, ref: int, site: int) -> bool:
    """Whether nobody has had a module in hand, up to the call at `site`, who may have called it without a graph."""
    if ref in m.shown.unrecorded:
        return False
    obj = m.state.object(ref)
    events: list[t.Call | t.Invoke] = [*m.index.of(t.Call), *m.index.of(t.Invoke)]
    for event in events:
        if event.site == site:
            continue
        given = [argument.register for argument in event.arguments if argument.register >= 0]
        if any(ref in m.value(register).refs for register in given) and not _is_known(m, event):
            return False
        own = isinstance(event, t.Invoke) and m.world.method_of(obj, event.name) is not None
        if isinstance(event, t.Invoke) and own and event.base >= 0 and ref in m.value(event.base).refs:
            return False
    return True


def _is_known(m: Machine, event: t.Call | t.Invoke) -> bool:
    """Whether what is called is known not to call a module that it is given."""
    return m.dotted_of(event).startswith(("torch.nn.", "copy."))


def _field(arguments: Arguments) -> str:
    told = arguments.keywords.get("name", arguments.keywords.get("tensor_name", arguments.at(1))).const
    return told if isinstance(told, str) else "weight"


def _compute_anew(m: Machine, ref: int, field: str) -> None:
    obj = m.state.object(ref)
    m.state.set_object(ref, obj._replace(config=tuple(dict.fromkeys((*obj.config, (COMPUTES_ANEW, field))))))


def _note_where(m: Machine, ref: int, site: int) -> None:
    """Where a module was told to compute a weight: that is why the weight is no leaf."""
    obj = m.state.object(ref)
    config = (*(entry for entry in obj.config if entry[0] != COMPUTED_AT), (COMPUTED_AT, site))
    m.state.set_object(ref, obj._replace(config=config))
    for slot in m.state.slot_names(ref):
        for held in m.state.refs_of(slot):
            one = m.state.object(held)
            if one.site == site and one.leaf is Fact.NO:
                m.state.set_object(held, one._replace(config=(*one.config, (COMPUTED_AT, site))))


def _keep(m: Machine, ref: int, field: str, site: int, *, at_once: bool) -> None:
    obj = m.state.object(ref)
    config = (*(entry for entry in obj.config if entry[0] != COMPUTES), (COMPUTES, field))
    m.state.set_object(ref, obj._replace(flags=obj.flags | {COMPUTES}, config=config))
    if at_once and m.state.mode.recording > 0:
        slots.bind_slot(m, (ref, f".{field}"), _computed(m, ref, field, site), site)


def _computed(m: Machine, ref: int, field: str, site: int) -> Value:
    needs = Fact.LIKELY if m.state.mode.assumed else Fact.YES
    obj = m.state.object(ref)
    made = Object(Kind.TENSOR, Sure.PROVEN, leaf=Fact.NO, requires_grad=needs, text=f"{obj.text}.{field}")
    where = tuple(entry for entry in obj.config if entry[0] == COMPUTED_AT)
    return memory.fresh(m, site, made._replace(config=where), "weight")
