"""What a chain of layers (`nn.Sequential`) keeps for backward: of what it is given, and of what it returns.

What stands between its layers nobody else holds, so only the ends matter.
"""

from __future__ import annotations

from torchcopylint.flow import tape as t
from torchcopylint.flow.autograd import frozen, grads, saving
from torchcopylint.flow.facts import Saved, ViewRefused
from torchcopylint.flow.model import ANY_ELEMENT, Fact, Kind, Object, Sure, Value
from torchcopylint.flow.networks import hooked_parts
from torchcopylint.flow.program import chain_layers
from torchcopylint.flow.running.machine import Machine
from torchcopylint.flow.storages import nonnegative
from torchcopylint.flow.tapes import activations, uses
from torchcopylint.flow.values import naming
from torchcopylint.knowledge import table

SEQUENTIAL = chain_layers.SEQUENTIAL
_SHARING = frozenset({"same", "view"})
"""Layers that hand on the memory of what they are given, as the table says."""


def keep(m: Machine, function: Value, obj: Object, first: Value, result: Value, site: int, name: str) -> None:
    """A chain was called: backward needs what its first layer keeps of its input, and its last one of its result."""
    made = m.state.object(result.refs[0]) if len(result.refs) == 1 else None
    if made is None or made.kind is not Kind.TENSOR or made.requires_grad <= 0:
        return
    layers = classes(m, function, site)
    if layers and layers[0] is not None and layers[0].output != "tensors":
        activations.known_tensor(m, first)
    entry = next((row for row in layers if row is None or row.shares not in _SHARING), None)
    last = layers[-1] if layers else None
    needed = any(given.requires_grad > 0 for given in grads.tensors_in(m, [first]))
    ids = []
    if entry is not None and "input" in entry.saves and (needed or _is_trained(m, function, obj, entry)):
        source = naming.key_text(m, first.root) or "its input"
        ids += saving.save(m, first, site * 8, Saved(site, f"{name}(...)", "input", source))
    if last is not None and "output" in last.saves:
        ids += saving.save(m, result, site * 8 + 1, Saved(site, f"{name}(...)", "output", "its result"))
    if ids:
        made = m.state.object(result.refs[0])
        m.state.set_object(result.refs[0], made._replace(graph=made.graph | frozenset(ids)))


def first(m: Machine, function: Value, site: int) -> str:
    """The class of the first layer of the chain that is called at a site, if it is known."""
    layers = classes(m, function, site)
    return layers[0].name if layers and layers[0] is not None else ""


def classes(m: Machine, function: Value, site: int) -> list[table.ModuleOp | None]:
    """The classes of the layers of the chain that is called at a site, in order; `None` for one that is unknown, and
    nothing if the layers are. They are known where they stand in one call of `nn.Sequential`, and no place is set."""
    places = (slot[1] for ref in function.refs for slot in m.state.slot_names(ref))
    if any(place.startswith("[") and place != ANY_ELEMENT for place in places):
        return []
    call = m.unit.definitions[m.index.calls[site]] if site in m.index.calls else None
    if len(function.refs) == 1 and (known := chain_layers.of(m.state.object(function.refs[0]))):
        return [_class_of(name) for name in known]
    if isinstance(call, t.Invoke):
        return [_class_of(name) for name in nonnegative.chain_in_field(m, call)]
    load = m.unit.definitions[call.function] if isinstance(call, t.Call) and call.function >= 0 else None
    bound = uses.bindings_before(m, load) if isinstance(load, t.Load) else []
    built = m.unit.definitions[bound[0]] if len(bound) == 1 and bound[0] >= 0 else None
    return [_class_of(name) for name in nonnegative.layers_of(m, built)]


def layers(m: Machine, register: int) -> list[Value]:
    """The layers of the chain that a register holds, in order, where they stand in the one call that made it; nothing
    for any other chain."""
    load = m.unit.definitions[register] if register >= 0 else None
    bound = uses.bindings_before(m, load) if isinstance(load, t.Load) else [register]
    built = m.unit.definitions[bound[0]] if len(bound) == 1 and bound[0] >= 0 else None
    if not isinstance(built, t.Call | t.Invoke) or not nonnegative.layers_of(m, built):
        return []
    held = [m.value(one.register) if one.register >= 0 and not one.stars else Value() for one in built.arguments]
    return held if all(len(one.refs) == 1 for one in held) else []


def picked(m: Machine, register: int) -> tuple[int, ...] | None:
    """The layer that a register has been given out of a chain by its number, `net[2]`; `None` if nobody knows."""
    item = m.unit.definitions[register] if register >= 0 else None
    if not isinstance(item, t.Item) or len(item.subscript) != 1:
        return None
    place = m.value(item.subscript[0]).const if isinstance(item.subscript[0], int) else None
    held = layers(m, item.base)
    known = isinstance(place, int) and not isinstance(place, bool) and -len(held) <= place < len(held)
    return held[place].refs if known and isinstance(place, int) else None


def check_hooked(m: Machine, function: Value, first: Value, site: int, name: str) -> None:
    """A chain is called, one of whose layers has a full backward hook: what such a layer takes and gives are views that
    no layer may write, itself or the next."""
    call = m.unit.definitions[m.index.calls[site]] if site in m.index.calls else None
    held = layers(m, call.function) if isinstance(call, t.Call) else []
    refs = [one.refs[0] for one in held]
    watched = {ref for ref in refs if hooked_parts.has_hook(m, ref, site)}
    if not watched or m.state.mode.recording <= 0:
        return
    needs = max((given.requires_grad for given in grads.tensors_in(m, [first])), default=Fact.UNKNOWN)
    before = -1
    for ref in refs:
        obj = m.state.object(ref)
        row = table.module_class(obj.type) if obj.type else None
        inplace = row is not None and row.inplace_keyword and dict(obj.config).get("inplace") is True
        hooked = next((one for one in (ref, before) if one in watched), -1)
        if inplace and hooked >= 0 and needs > 0:
            sure = Sure.PROVEN if needs is Fact.YES else Sure.LIKELY
            text = m.state.object(hooked).text
            at = m.holding.hooks[hooked]
            m.fact(ViewRefused(site, name, obj.text, "chain", text, at, m.state.mode.assumed, True, sure))
            return
        if row is not None and row.parameters and obj.requires_grad is not Fact.NO:
            needs = Fact.YES
        before = ref


def _class_of(name: str) -> table.ModuleOp | None:
    row = table.module_class(name) if name else None
    return row if row is not None and not row.container else None


def _is_trained(m: Machine, function: Value, obj: Object, entry: table.ModuleOp) -> bool:
    """Whether the parameters of a layer at the entry of a chain are trained, as far as is known."""
    return bool(entry.parameters) and not frozen.trains_nothing(m, function, obj)
