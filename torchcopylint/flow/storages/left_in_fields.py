"""What a method leaves of one field of its object in another, as if it were to stay there: `self.best = self.x`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import FieldsTwins
from torchcopylint.flow.model import ANY_ELEMENT, BUFFERS, CONTAINERS, Kind
from torchcopylint.flow.storages import aliasing, keeping, twin_fields

if TYPE_CHECKING:
    from torchcopylint.flow.model import Cell
    from torchcopylint.flow.running.machine import Machine

_IN_PLACE = frozenset({"method", "augmented", "item", "out", "call"})
_TAKING = frozenset({"get", "pop", "popleft"})


def found(m: Machine) -> Iterator[FieldsTwins]:
    """The pairs of fields of which the second holds, when a method ends, what the first has held since before.

    Only if something says that the second was to keep what was there: the two are operands of one operation, it is set
    where one number is less than another, or some method puts it back. And if nobody sets the first anew, or the method
    writes it in place itself.
    """
    if m.unit.owner < 0 or not m.unit.parameters or m.unit.name == "__init__" or not m.fields.initial:
        return
    me = m.number("argument", m.unit.first)
    fields = {m.number("slot", slot): name for name, slot in m.fields.initial.items() if slot[0] == me}
    for slot in m.state.slot_names(me):
        cell = m.state.cell(slot)
        for ref, site in _left_in(m, cell, slot[1][1:]) if cell is not None and slot[1].startswith(".") else ():
            source, other = fields.get(ref, ""), slot[1][1:]
            if source and source != other and _still_holds(m, (me, f".{source}"), ref):
                fact = _as_snapshot(m, source, other, ref, site)
                if fact is not None:
                    yield fact


def _left_in(m: Machine, cell: Cell, field: str) -> Iterator[tuple[int, int]]:
    """What the method has put into a field, on some path, or into an entry of what it has there; and where."""
    stores = [store for store in m.index.stores.get(field, ()) if not store.augmented]
    for ref in cell.refs:
        if m.state.object(ref).kind not in CONTAINERS:
            sites = [store.site for store in stores if m.value(store.value).refs == (ref,)]
            if sites and not cell.plain:
                yield ref, sites[-1]
            continue
        for slot in m.state.slot_names(ref):
            inner = m.state.cell(slot)
            # What is put into a list one after the other is told where that is.
            if inner is not None and inner.site >= 0 and len(inner.refs) == 1 and slot[1] != ANY_ELEMENT:
                yield inner.refs[0], inner.site


def _still_holds(m: Machine, slot: tuple[int, str], ref: int) -> bool:
    cell = m.state.cell(slot)
    return cell is not None and cell.refs == (ref,)


def _as_snapshot(m: Machine, source: str, other: str, ref: int, site: int) -> FieldsTwins | None:
    obj = m.state.object(ref)
    if obj.kind not in BUFFERS or obj.kind is Kind.PARAMETER:
        return None
    record = aliasing.is_on_record(m, site)
    back = any(_puts_back(m, unit, source, other) for unit in _units(m))
    if not (record or back or twin_fields.meet(m, {source, other}, site)):
        return None
    writes = [write.site for write in m.writes.values() if ref in write.storages and write.form in _IN_PLACE]
    if _is_set_anew(m, source, other) and not (writes if record else [one for one in writes if one > site]):
        return None
    return FieldsTwins(site, source, other, True, obj.sure)


def _units(m: Machine) -> Iterator[t.Unit]:
    return (unit for unit in m.world.program.units if unit.name != "__init__")


def _is_set_anew(m: Machine, source: str, other: str) -> bool:
    """Whether some method sets a field to anything but what the other has kept."""
    return any(
        not store.augmented
        and not keeping.is_strangers(m, unit, store.base)
        and not _comes_from(unit, store.value, other)
        for unit in _units(m)
        for store in m.world.index(unit).stores.get(source, ())
    )


def _puts_back(m: Machine, unit: t.Unit, source: str, other: str) -> bool:
    stores = m.world.index(unit).stores.get(source, ())
    return any(
        _comes_from(unit, store.value, other) for store in stores if not keeping.is_strangers(m, unit, store.base)
    )


def _comes_from(unit: t.Unit, register: int, field: str) -> bool:
    """Whether a value is what a field holds, or an entry of that."""
    for _ in range(3):
        event = unit.definitions[register] if register >= 0 else None
        if isinstance(event, t.Attribute):
            return event.name == field
        if not isinstance(event, t.Item) and not (isinstance(event, t.Invoke) and event.name in _TAKING):
            return False
        register = event.base
    return False
