"""Values that are not negative by how they were computed: an activation that leaves such numbers as they are overwrites
them with themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import Kind
from torchcopylint.flow.storages import slots
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.tapes.rectified import KEEPING_SIGNS, made_by_constructor, plain

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

MAX_DEPTH = 8
"""So many operations are gone back over."""
_LEAVING = KEEPING_SIGNS | {"prelu"}
"""Activations that return what is not negative as it is."""
_MAKING = frozenset(
    {"relu", "relu6", "sigmoid", "softmax", "softplus", "exp", "abs", "square", "softmin", "hardsigmoid", "norm", "var"}
    | {"std", "sqrt"}
)
"""Not what is filled with a number: it stands for whatever else the program may be given."""
_KEEPING = frozenset(
    {"view", "reshape", "flatten", "squeeze", "unsqueeze", "contiguous", "float", "half", "double", "to", "cuda", "cpu"}
    | {"mean", "sum", "amax", "clone", "detach", "transpose", "permute", "expand", "repeat", "t", "type", "dropout"}
    | {"dropout1d", "dropout2d", "dropout3d", "identity", "type_as"}
    | {f"{kind}{size}d" for kind in ("maxpool", "avgpool", "adaptiveavgpool", "adaptivemaxpool") for size in (1, 2, 3)}
)
_SEQUENTIAL = "torch.nn.Sequential"
_SAME = frozenset({"+", "*", "/"})


def note(m: Machine, site: int, name: str) -> None:
    """An activation at a site has just overwritten its input: tell the write if the numbers are what they were."""
    write, register = m.writes.get(site), m.index.calls.get(site, -1)
    event = m.unit.definitions[register] if register >= 0 else None
    if write is None or plain(name) not in _LEAVING:
        return
    first = -1
    if isinstance(event, t.Call) and event.arguments and not event.arguments[0].keyword:
        first = event.arguments[0].register
    elif isinstance(event, t.Invoke):
        # `F.relu(x)`, `self.act(x)` or `x.relu_()`.
        first = event.arguments[0].register if event.arguments else event.base
    if _is_so(m, first, MAX_DEPTH):
        m.writes[site] = write._replace(unchanged=True)


def _is_so(m: Machine, register: int, depth: int) -> bool:
    event = m.unit.definitions[register] if register >= 0 and depth else None
    if isinstance(event, t.Load):
        bound = uses.bindings_before(m, event) if not _may_be_passed(m, event) else []
        return bool(bound) and all(_is_so(m, one, depth - 1) for one in bound)
    if isinstance(event, t.Const):
        return isinstance(event.value, int | float) and event.value >= 0
    if isinstance(event, t.Operate) and event.symbol in _SAME:
        return all(_is_so(m, one, depth - 1) for one in event.operands)
    if isinstance(event, t.Call) and event.arguments:
        refs = m.value(event.function).refs
        through = _through_layers(m, refs) if refs else _through_name(m.dotted_of(event))
        return through is True or (through is None and _is_so(m, event.arguments[0].register, depth - 1))
    if isinstance(event, t.Invoke):
        refs, function = _called(m, event), m.dotted_of(event).startswith("torch.")
        chain = chain_in_field(m, event)
        through = _through_chain(chain) if chain else _through_layers(m, refs) if refs else _through_name(event.name)
        source = event.arguments[0].register if (function or refs) and event.arguments else event.base
        return through is True or (through is None and _is_so(m, source, depth - 1))
    return False


def _may_be_passed(m: Machine, load: t.Load) -> bool:
    """Whether a name may still hold what the caller has passed: it is bound on other arms alone."""
    bound = (bind.site for bind in m.index.binds.get(load.name, ()))
    passed = any(parameter.name == load.name for parameter in m.unit.parameters)
    return passed and not any(uses.runs_before(m, site, load.site) for site in bound)


def _called(m: Machine, event: t.Invoke) -> tuple[int, ...]:
    """The layers in a field that are called like a method: `self.act(x)`."""
    found = [ref for ref in m.value(event.base).refs for ref in m.state.refs_of((ref, f".{event.name}"))]
    return tuple(ref for ref in found if m.state.object(ref).kind is Kind.MODULE)


def _through_name(name: str) -> bool | None:
    """Whether what an operation returns is not negative; `None` if it is what it is given that decides."""
    short = plain(name)
    return True if short in _MAKING else None if short in _KEEPING else False


def _through_layers(m: Machine, refs: tuple[int, ...]) -> bool | None:
    """The same of layers, and of chains of them, as their last ones tell."""
    if len(refs) != 1:
        return False
    obj = m.state.object(refs[0])
    held = [slots.slot_value(m, slot) for slot in m.state.slot_names(refs[0]) if slot[1].startswith("[")]
    if not held or obj.type != _SEQUENTIAL:
        return _through_name(obj.type) if obj.type.startswith("torch.nn.") else False
    return _through_chain([m.state.object(one.refs[0]).type if one.refs else "" for one in held])


def _through_chain(types: list[str]) -> bool | None:
    """The same of the classes of layers that follow one another."""
    for one in reversed(types):
        through = _through_name(one) if one.startswith("torch.nn.") else False
        if through is not None:
            return through
    return None


def chain_in_field(m: Machine, event: t.Invoke) -> list[str]:
    """The classes of the layers of the chain that is called in a field of `self`, as the constructor writes them out;
    nothing if that is not seen."""
    made, built = made_by_constructor(m, event)
    return layers_of(made, built) if made is not None else []


def layers_of(m: Machine, built: t.Event | None) -> list[str]:
    """The classes of the layers that a call of `nn.Sequential` writes out, an empty text for what is no call; nothing
    for another event."""
    if not isinstance(built, t.Call | t.Invoke) or m.dotted_of(built) != _SEQUENTIAL:
        return []
    layers = [_layer_behind(m, one.register, built.site) for one in built.arguments]
    return [m.dotted_of(one) if isinstance(one, t.Call | t.Invoke) else "" for one in layers]


def _layer_behind(m: Machine, register: int, site: int) -> t.Event | None:
    """What made a layer that a chain is given: also one that a field of `self` holds by then."""
    made = m.unit.definitions[register] if register >= 0 else None
    if not isinstance(made, t.Attribute) or not uses.is_self(m, made.base):
        return made
    stores = [store for store in m.index.stores.get(made.name, ()) if store.site < site]
    if not stores or stores[-1].site in m.index.on_arms or stores[-1].value < 0:
        return None
    return m.unit.definitions[stores[-1].value]
