"""Tensors that an object gets from another one in whose place it is made: who asked for it lets the other one go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import FIELD, LOCAL, Fact, Kind
from torchcopylint.flow.tapes import uses

if TYPE_CHECKING:
    from torchcopylint.flow.facts import DataShared
    from torchcopylint.flow.running.machine import Machine
    from torchcopylint.flow.running.noted import PutOn


def to_new_object(m: Machine, fact: DataShared) -> bool:
    """Whether a constructor takes single tensors of what it is handed for its own object, and keeps no more of that:
    `self.register_buffer("scale", module.scale)`. Who goes through all parameters of a network takes a snapshot."""
    root, dot, _ = fact.source.partition(".")
    if m.unit.name != "__init__" or m.unit.owner < 0 or not dot:
        return False
    if not fact.target.startswith(f"{m.unit.first}.") and not _is_own_parameter(m, fact, root):
        return False
    handed = {parameter.name for parameter in m.unit.parameters} - {m.unit.first}
    if root not in handed or uses.loops_around(m, fact.site):
        return False
    return not any(_is_named(m, store.value, root) for store in m.index.of(t.StoreAttribute))


def _is_own_parameter(m: Machine, fact: DataShared, root: str) -> bool:
    """Whether what is put on the memory of a layer's parameter is set as one of the object itself, which is made like
    that layer: `super().__init__(layer.in_features, layer.out_features)`. Who is made otherwise has it for company."""
    event = m.unit.definitions[m.index.calls[fact.site]] if fact.site in m.index.calls else None
    if fact.form != "parameter" or not isinstance(event, t.Call | t.Invoke):
        return False
    use = m.consumer_of(event.out)
    if not isinstance(use, t.StoreAttribute) or not _is_named(m, use.base, m.unit.first):
        return False
    bases = [call for call in m.index.of(t.Invoke) if call.name == "__init__"]
    return any(_is_taken_of(m, argument.register, root) for call in bases for argument in call.arguments)


def _is_taken_of(m: Machine, register: int, name: str) -> bool:
    taken = m.unit.definitions[register] if register >= 0 else None
    return isinstance(taken, t.Attribute) and _is_named(m, taken.base, name)


def to_caller(m: Machine, put: PutOn) -> bool:
    """Whether what is put on the memory of a field is a parameter that nobody trains, and goes to the caller:
    `return nn.Parameter(self.source.bias.detach(), requires_grad=False)`."""
    made = m.state.object(put.ref)
    if made.kind is not Kind.PARAMETER or made.requires_grad is not Fact.NO or made.owner == FIELD:
        return False
    return any(put.ref in value.refs for value in m.results.returned)


def is_dropped(m: Machine, fact: DataShared) -> bool:
    """Whether the module that gets the memory is made here, and nobody sees more of it than the fields that are set."""
    name, dot, _ = fact.target.partition(".")
    bound = m.index.binds.get(name, ())
    if m.unit.kind != "function" or not dot or not bound or uses.seen_from_inside(m, name):
        return False
    refs = m.state.refs_of(name)
    if not refs or any(m.state.object(ref).owner not in ("", LOCAL) for ref in refs):
        return False
    made = [m.unit.definitions[bind.value] for bind in bound if bind.value >= 0]
    if not all(isinstance(event, t.Call | t.Invoke) for event in made):
        return False
    return all(_is_filled(m, use.register) for use in uses.of_name(m, name) if use.loads)


def _is_filled(m: Machine, register: int) -> bool:
    """Whether what a name holds is looked at to set something in it, and for nothing else: `rms.weight.data = w`."""
    event = m.consumer_of(register)
    while isinstance(event, t.Attribute) and event.base == register:
        register = event.out
        event = m.consumer_of(register)
    return isinstance(event, t.StoreAttribute) and event.base == register


def _is_named(m: Machine, register: int, name: str) -> bool:
    loaded = m.unit.definitions[register] if register >= 0 else None
    return isinstance(loaded, t.Load) and loaded.name == name
