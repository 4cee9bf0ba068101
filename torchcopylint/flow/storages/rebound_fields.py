"""Fields that are left bound to what was computed of their leaf and its gradient: the next call reads `.grad` of that.

`layer.w = layer.w - rate * layer.w.grad` at the end of a step that is taken again and again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import ParameterRebound
from torchcopylint.flow.model import Fact
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

MAX_STEPS = 24
"""So many events are gone back over from a value to a gradient that it is computed from."""
_AS_LEAF = frozenset({"requires_grad_", "detach_", "retain_grad"})


def found(m: Machine) -> Iterator[ParameterRebound]:
    """Such fields of what a function was handed, if nobody in the file makes leaves of them again or sets them anew."""
    if not m.fields.rebound or m.unit.kind != "function" or m.unit.name == "__init__":
        return
    told = {fact.bound for facts in m.facts.values() for fact in facts if isinstance(fact, ParameterRebound)}
    left = {rebound[0]: (ref, rebound[2]) for ref, rebound in m.fields.rebound.items()}
    for store in m.index.of(t.StoreAttribute):
        ref, sure = left.get(store.site, (-1, None))
        if sure is None or store.site in told or not _still_held(m, ref, store.name):
            continue
        name = f"{naming.text_of(m, store.base)}.{store.name}"
        read = _gradient(m, store, name)
        if read is not None and not _is_set_elsewhere(m, store) and not _is_taken_once(m):
            yield ParameterRebound(read, name, "gradient", "", store.site, sure)


def _still_held(m: Machine, ref: int, field: str) -> bool:
    """Whether a field holds, as the unit ends, the new tensor, still no leaf."""
    obj = m.state.object(ref & ~1)
    keys = [key for one in (ref, ref & ~1) for key in m.state.holders.get(one, ())]
    held = any(isinstance(key, tuple) and key[1] == f".{field}" for key in keys)
    return held and not (obj.leaf is Fact.YES and obj.requires_grad > 0)


def _gradient(m: Machine, store: t.StoreAttribute, name: str) -> int | None:
    """Where the gradient of the field is read for what the field is then set to."""
    for part in uses.expression(m, store.value, ""):
        if isinstance(part, t.Attribute) and part.name == "grad" and naming.text_of(m, part.base) == name:
            return part.site
    return None


def _is_set_elsewhere(m: Machine, store: t.StoreAttribute) -> bool:
    """Whether another place of the file, but for constructors, sets a field of that name, or makes a leaf of it."""
    for unit in m.world.program.units:
        index = m.world.index(unit)
        others = [one for one in index.stores.get(store.name, ()) if one.site != store.site]
        if unit.name != "__init__" and any(not _is_step(unit, one.value) for one in others):
            return True
        touched = [one.base for one in index.of(t.Invoke) if one.name in _AS_LEAF]
        touched += [one.base for one in index.stores.get("requires_grad", ())]
        for base in touched:
            made = unit.definitions[base] if base >= 0 else None
            if isinstance(made, t.Attribute) and made.name == store.name:
                return True
    return False


def _is_step(unit: t.Unit, register: int) -> bool:
    """Whether a value is computed from a gradient: it is another step, which stands where this one does."""
    pending = [register]
    for _ in range(MAX_STEPS):
        pending = [one for one in pending if one >= 0]
        if not pending:
            return False
        made = unit.definitions[pending.pop()]
        if isinstance(made, t.Attribute) and made.name == "grad":
            return True
        pending += t.operands(made) if made is not None else ()
    return False


def _is_taken_once(m: Machine) -> bool:
    """Whether the module itself calls the function, once, and nobody else does."""
    calls = []
    for unit in m.world.program.units:
        for event in unit.definitions:
            named = isinstance(event, t.Invoke) and event.name == m.unit.name
            made = unit.definitions[event.function] if isinstance(event, t.Call) and event.function >= 0 else None
            if event is not None and (named or (isinstance(made, t.Load) and made.name == m.unit.name)):
                calls.append((unit, event.site))
    if len(calls) != 1:
        return False
    unit, site = calls[0]
    return unit.kind == "module" and not m.world.index(unit).loops.get(site)
