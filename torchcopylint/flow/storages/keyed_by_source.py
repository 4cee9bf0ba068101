"""Fields with a dictionary of what is kept of parameters, each under the parameter itself: `self.slow[p] = p.data`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import How
from torchcopylint.flow.storages.field_uses import field_of
from torchcopylint.flow.tapes import uses

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

_VALUES = frozenset({How.DATA, How.DETACH})


def name_of(m: Machine, field: str) -> str:
    """What the keys of the dictionary in a field are called."""
    return f"{m.unit.first}.{field}.keys()"


def fields(m: Machine) -> frozenset[str]:
    """The fields in which the unit keeps, under a parameter, the memory of that very parameter by reference."""
    stores = [
        (_field_of_store(m, store.base), store.subscript[0], store.value)
        for store in m.index.of(t.StoreItem)
        if len(store.subscript) == 1 and not store.augmented
    ]
    stores += [(_field_of_display(m, one.container), one.key, one.item) for one in m.index.of(t.Collect)]
    return frozenset(
        field for field, key, value in stores if field and isinstance(key, int) and _is_of_key(m, key, value)
    )


def _field_of_store(m: Machine, register: int) -> str:
    base = m.unit.definitions[register] if register >= 0 else None
    return base.name if isinstance(base, t.Attribute) and uses.is_self(m, base.base) else ""


def _field_of_display(m: Machine, register: int) -> str:
    """The field that a dictionary is put into which a comprehension fills."""
    store = m.consumer_of(register)
    return store.name if isinstance(store, t.StoreAttribute) and uses.is_self(m, store.base) else ""


def _is_of_key(m: Machine, key: int, value: int) -> bool:
    keys, held = m.value(key).refs, m.value(value).refs if value >= 0 else ()
    shares = [share for ref in held for share in m.state.object(ref).shares]
    return bool(keys) and bool(shares) and all(share.how in _VALUES and share.of in keys for share in shares)


def met(m: Machine, one: int, other: int) -> str:
    """The field of whose dictionary one register holds a key and another the value under it: `for p, s in
    self.slow.items()`."""
    first, second = _unpacked(m, one), _unpacked(m, other)
    if first is None or second is None or first.value != second.value or {first.position, second.position} != {0, 1}:
        return ""
    head = m.unit.definitions[first.value]
    items = m.unit.definitions[head.iterable] if isinstance(head, t.Iterate) else None
    return field_of(m, items.base) if isinstance(items, t.Invoke) and items.name == "items" else ""


def _unpacked(m: Machine, register: int) -> t.Unpack | None:
    event = m.unit.definitions[register] if register >= 0 else None
    if isinstance(event, t.Load):
        bound = uses.bindings_before(m, event)
        event = m.unit.definitions[bound[-1]] if bound else None
    return event if isinstance(event, t.Unpack) else None
