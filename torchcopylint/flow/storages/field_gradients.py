"""Gradients that a method keeps in a field of its object as they are, and that the class has overwritten by the time it
reads the field: `self.full = [p.grad for p in net.parameters()]`, and in another method backward, then `self.full`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import GradientKept
from torchcopylint.flow.graphs import zeroing
from torchcopylint.flow.model import CONTAINERS, TENSORS, How, Kind, Sure
from torchcopylint.flow.tapes.uses import is_self

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

_ALIKE = frozenset({How.OWN, How.DETACH, How.DATA})
_ZEROING = "zero_grad(set_to_none=False)"


def found(m: Machine) -> Iterator[GradientKept]:
    """What a method keeps so. Nothing where somebody drops gradients: those that are kept may be let go."""
    if m.unit.owner < 0 or not m.backward.gradients or m.world.class_kind(m.unit.owner)[0] is Kind.OPTIMIZER:
        return
    stores = [event for event in m.index.of(t.StoreAttribute) if is_self(m, event.base) and _keeps_gradients(m, event)]
    if not stores or zeroing.dropped_for(m.world, m.unit.owner):
        return
    for event in stores:
        overwritten = _read_behind(m, event)
        if overwritten is not None:
            written, cause, read = overwritten
            name = f"{m.unit.first}.{event.name}"
            yield GradientKept(event.site, name, ".grad", read, Sure.LIKELY, written, cause)


def _keeps_gradients(m: Machine, event: t.StoreAttribute) -> bool:
    """Whether a field is set to a gradient that the unit has looked at, or to a list or dictionary of nothing else."""
    cells = (m.state.refs_of((ref, ".grad")) for ref in m.backward.gradients)
    held = {one | 1 for refs in cells for one in refs}
    value = m.value(event.value)
    refs: tuple[int, ...] = value.refs if len(value.refs) == 1 else ()
    if refs and m.state.object(refs[0]).kind in CONTAINERS:
        refs = tuple(one for slot in m.state.slot_names(refs[0]) for one in m.state.refs_of(slot))
    return bool(refs) and all(_is_gradient(m, ref, held) for ref in refs)


def _is_gradient(m: Machine, ref: int, held: set[int]) -> bool:
    obj = m.state.object(ref)
    if obj.kind not in TENSORS or len(obj.shares) != 1:
        return False
    share = obj.shares[0]
    plain = share.how in _ALIKE and share.sure and not share.when and not share.region
    return plain and share.storage | 1 in held


def _read_behind(m: Machine, store: t.StoreAttribute) -> tuple[int, str, int] | None:
    """Where a method of the class writes gradients, how, and where it reads the field behind that, still as the method
    that keeps them has left it."""
    for unit in m.world.program.units:
        if unit.kind != "function" or unit.owner < 0 or unit.owner not in m.world.lineage(m.unit.owner):
            continue
        index = m.world.index(unit)
        sets = [one.site for one in index.stores.get(store.name, ())]
        begins = min(sets, default=-1)
        writes = [event for event in index.of(t.Invoke) if _writes_gradients(unit, event)]
        for look in index.of(t.Attribute):
            base = unit.definitions[look.base]
            own = look.name == store.name and isinstance(base, t.Load) and base.name == unit.first
            before = [event for event in writes if event.site < look.site and event.site not in index.on_arms]
            if own and before and (begins < 0 or look.site < begins) and not _is_test(m, unit, look):
                event = before[0]
                cause = "backward()" if event.name == "backward" else _ZEROING
                return event.site, cause, look.site
    return None


def _writes_gradients(unit: t.Unit, event: t.Invoke) -> bool:
    return event.name == "backward" or (event.name == "zero_grad" and zeroing.fills(unit, event))


def _is_test(m: Machine, unit: t.Unit, look: t.Attribute) -> bool:
    """Whether what is looked at is whether the field holds anything: `if self.previous is not None:`."""
    return isinstance(m.world.index(unit).consumers.get(look.out), t.Logic | t.Test | t.Assume)
