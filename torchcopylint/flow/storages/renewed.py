"""Parameters that each update gives other memory (`p.data = p.data * m + ...`): who is put on what they have now shares
nothing that anybody writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import DataShared
from torchcopylint.flow.storages import mixing
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

_LOOKING = frozenset({"zip", "enumerate"})
_HARMLESS = frozenset({"requires_grad_", "share_memory_"})


def is_renewed(m: Machine, fact: DataShared) -> bool:
    """Whether a method puts the parameters of one field on the memory of those of another, which a method of the class
    gives other memory, and no method writes either in place or hands them to anybody, such as an optimizer."""
    stores = [event for event in m.index.stores.get("data", ()) if event.site == fact.site]
    if m.unit.owner < 0 or len(stores) != 1:
        return False
    source, target = _field(m, stores[0].value), _field(m, stores[0].base)
    methods = [one for one in m.world.machines.values() if one.unit.owner == m.unit.owner]
    if not source or not target or source == target:
        return False
    kept = all(_is_left_alone(one, field) for one in methods for field in (source, target))
    return kept and any(_gives_other_memory(one, source) for one in methods)


def is_exchanged(m: Machine, field: str) -> bool:
    """Whether other methods of the class set a field of `self` to what they compute, and nobody there changes in place
    what it holds, or puts it into a list, for an optimizer: who keeps what it held keeps the values of that time."""
    exchanged = False
    for unit in m.world.program.units:
        if unit.owner < 0 or not unit.parameters or unit.owner not in m.world.lineage(m.unit.owner):
            continue
        index = m.world.index(unit)
        mine = {event.out for event in index.of(t.Attribute) if event.name == field and _is_first(unit, event.base)}
        for store in index.stores.get(field, ()):
            if not _is_first(unit, store.base):
                continue
            if store.augmented:
                return False
            made = unit.definitions[store.value] if store.value >= 0 else None
            exchanged |= unit.number != m.unit.number and isinstance(made, t.Operate | t.Call | t.Invoke)
        if any(
            _written(event) in mine or (isinstance(event, t.Make) and mine & {*t.operands(event)})
            for event in index.events
        ):
            return False
    return exchanged


def _is_first(unit: t.Unit, register: int) -> bool:
    made = unit.definitions[register] if register >= 0 else None
    return isinstance(made, t.Load) and made.name == unit.first


def _field(m: Machine, register: int) -> str:
    """The field of `self` of whose parameters a value is one, if it is one of one field."""
    found = {_root(m, whole) for whole in mixing.origins(m, register)}
    return found.pop() if len(found) == 1 else ""


def _root(m: Machine, whole: t.Invoke) -> str:
    first, _, rest = naming.text_of(m, whole.base).partition(".")
    return rest.partition(".")[0] if first == m.unit.first else ""


def _gives_other_memory(m: Machine, field: str) -> bool:
    """Whether a unit puts what it computes under the parameters of a field."""
    for event in m.index.stores.get("data", ()):
        made = m.unit.definitions[event.value] if event.value >= 0 else None
        if not event.augmented and isinstance(made, t.Operate) and _field(m, event.base) == field:
            return True
    return False


def _is_left_alone(m: Machine, field: str) -> bool:
    """Whether a unit goes through the parameters of a field, at most, and writes none of them in place."""
    for event in m.index.events:
        if isinstance(event, t.Invoke) and event.name in ("parameters", "named_parameters"):
            consumer = m.consumer_of(event.out)
            through = isinstance(consumer, t.Iterate) or (
                isinstance(consumer, t.Call) and naming.text_of(m, consumer.function) in _LOOKING
            )
            if _root(m, event) == field and not through:
                return False
        elif (written := _written(event)) >= 0 and _field(m, written) == field:
            return False
    return True


def _written(event: t.Event) -> int:
    """The register of what an event writes in place, as far as its form tells; -1 for nothing."""
    if isinstance(event, t.Invoke) and event.name.endswith("_") and event.name not in _HARMLESS:
        return event.base
    return event.target if isinstance(event, t.Augment) else event.base if isinstance(event, t.StoreItem) else -1
