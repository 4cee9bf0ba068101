"""Layers that a unit makes to have the same memory, and only calls: to compare what they make of one input."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import LOCAL, TENSORS, Kind
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from torchcopylint.flow.facts import DataShared
    from torchcopylint.flow.running.machine import Machine

_HARMLESS = frozenset(
    {"eval", "train", "forward", "zero_grad", "requires_grad_", "to", "cpu", "cuda", "float", "double", "half"}
)
"""Methods of a module that write none of its values."""


def are(m: Machine, fact: DataShared) -> bool:
    """Whether all that two names share memory through are made in this function, and nothing but called and looked at:
    no optimizer, loop or function gets to see their parameters, and nothing writes them."""
    if m.unit.kind != "function" or fact.form not in ("assign", "table"):
        return False
    names = {_root(fact.target), _root(fact.source)}
    names |= {_root(naming.text_of(m, store.base)) for store in m.index.of(t.StoreAttribute) if _gives(m, store, names)}
    written = {_root(write.root) for write in m.writes.values() if write.form != "assign"}
    return written.isdisjoint(names) and all(_is_only_called(m, name) for name in names)


def _root(text: str) -> str:
    return text.partition(".")[0].partition("[")[0]


def _gives(m: Machine, store: t.StoreAttribute, names: set[str]) -> bool:
    """Whether an assignment gives one of some names' memory to something: `other.bias.data = bias`."""
    return _root(naming.text_of(m, store.value)) in names if store.value >= 0 else False


def _is_only_called(m: Machine, name: str) -> bool:
    """Whether a name is bound to what is made here, and looked at by nobody else."""
    found = uses.of_name(m, name)
    bound = [use.register for use in found if not use.loads]
    if not bound or any(parameter.name == name for parameter in m.unit.parameters) or uses.seen_from_inside(m, name):
        return False
    return all(_is_made(m, one) for one in bound) and all(_looks(m, use.register) for use in found if use.loads)


def _is_made(m: Machine, register: int) -> bool:
    objects = [m.state.object(ref) for ref in m.value(register).refs] if register >= 0 else []
    new = all(obj.kind in (Kind.MODULE, *TENSORS) and obj.owner in ("", LOCAL) for obj in objects)
    return bool(objects) and new and not uses.from_iteration(m, register)


def _looks(m: Machine, register: int) -> bool:
    """Whether what is done with a value, or with what is taken of it, cannot write it, as far as no write is noted."""
    tensor = all(m.state.object(ref).kind in TENSORS for ref in m.value(register).refs)
    event = m.consumer_of(register)
    if isinstance(event, t.Call):
        known = m.dotted_of(event).startswith(("torch.", "numpy.", "builtins."))
        return event.function == register or (tensor and known and not _is_optimizer(m, event.out))
    if isinstance(event, t.Invoke):
        return tensor or (event.base == register and event.name in _HARMLESS)
    if isinstance(event, t.Attribute):
        return _looks(m, event.out)
    if isinstance(event, t.StoreAttribute):
        return event.base == register or tensor
    return not isinstance(event, t.Bind | t.Return | t.Yield | t.StoreItem | t.Make)


def _is_optimizer(m: Machine, register: int) -> bool:
    return any(m.state.object(ref).kind is Kind.OPTIMIZER for ref in m.value(register).refs)
