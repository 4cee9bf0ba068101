"""A model with nothing around it: `model.module if is_parallel(model) else model`, which is the one that was given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import ARGUMENT, Kind

if TYPE_CHECKING:
    from collections.abc import Collection

    from torchcopylint.flow.running.machine import Machine

_WRAPPED = ".module"
_ITSELF = frozenset({"eval", "train", "to", "cuda", "cpu", "float", "half", "requires_grad_"})
"""Methods by which a module hands back itself."""
_KEEPING = {t.Attribute: frozenset({_WRAPPED[1:]}), t.Invoke: _ITSELF}
MAX_STEPS = 6


def parameter_of(m: Machine, refs: Collection[int]) -> str:
    """The parameter of a unit of which some objects are the model, or what that wraps."""
    given = [ref for ref in refs if m.state.object(ref).owner == ARGUMENT]
    if len(given) != 1 or m.state.object(given[0]).kind not in (Kind.MODULE, Kind.UNKNOWN):
        return ""
    inner = m.state.refs_of((given[0], _WRAPPED))
    return m.state.object(given[0]).text if set(refs) - {given[0]} <= set(inner) else ""


def is_bound_from(m: Machine, site: int, given: str) -> bool:
    """Whether a field is set, at a site, to what a parameter holds by way of what only takes a wrapper off it."""
    registers = [event.value for event in m.index.of(t.StoreAttribute) if event.site == site]
    return bool(registers) and all(_leads_to(m, register, given) for register in registers)


def _leads_to(m: Machine, register: int, given: str, depth: int = MAX_STEPS) -> bool:
    for left in range(depth, 0, -1):
        event = m.unit.definitions[register] if register >= 0 else None
        if isinstance(event, t.Load):
            bound = [bind.value for bind in m.index.binds.get(event.name, ())]
            if event.name == given or not bound:
                return event.name == given
            return all(_leads_to(m, value, given, left - 1) for value in bound)
        if isinstance(event, t.Attribute | t.Invoke) and event.name in _KEEPING[type(event)]:
            register = event.base
        elif isinstance(event, t.Call) and len(event.arguments) == 1:
            register = event.arguments[0].register
        else:
            return False
    return False
