"""Methods that lend an element of what their object keeps: `return self.cache[key]`, alone or with others.

Whoever writes it, edits that.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from torchcopylint.flow.interprocedural.classes import SELF
from torchcopylint.flow.model import ANY_ELEMENT, CONTAINERS, FIELD, Kind, Value
from torchcopylint.flow.storages import slots
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from torchcopylint.flow.model import Object, Slot
    from torchcopylint.flow.running.machine import Machine


def of(m: Machine) -> str:
    """What the method that has been run lends, as text: `self.cache[...]`. Empty if it may return something else."""
    return element(m, [value for value in m.returned if value.refs or value.kind is not Kind.NONE])


def element(m: Machine, values: Iterable[Value]) -> str:
    """The element of a field of `self` that each of some values is, as text; empty if they are not all one."""
    found = {_element(m, value) for value in values} if m.unit.owner >= 0 else set()
    return found.pop() if len(found) == 1 else ""


def _element(m: Machine, value: Value) -> str:
    """The element of a container in a field of `self` that a value is: it was taken from there, or put there."""
    if not value.refs:
        return ""
    owners = {_place_of(m, ref) for ref in value.refs}
    return owners.pop() if len(owners) == 1 else ""


def _place_of(m: Machine, ref: int) -> str:
    obj = m.state.object(ref)
    own = [key for key, cell in m.state.holders_of(obj.shares[0].storage) if ref in cell.refs] if obj.shares else []
    kept = [key for key in own if isinstance(key, tuple) and key[1].startswith("[") and _is_kept(m, key)]
    text = naming.key_text(m, kept[0]) if kept else obj.text if obj.owner == FIELD else ""
    field, bracket, _ = text.partition("[")
    me = m.unit.first
    return f"{field}[...]" if bracket and field.count(".") == 1 and field.startswith(f"{me}.") else ""


def _is_kept(m: Machine, slot: Slot) -> bool:
    """Whether a place is in a container that a field of the object has held since before the method."""
    return m.state.object(slot[0]).owner == FIELD and slot[1] == ANY_ELEMENT


def take(m: Machine, lent: str, owner: Value | None, result: Value, site: int) -> Value:
    """The result of a call of a method of the same object, which lends it: nobody who holds it holds it alone. Of
    another object, it is what the unit has seen put there."""
    if not lent or owner is None or len(owner.refs) != 1:
        return result
    if m.state.object(owner.refs[0]).owner != SELF:
        return _put_here(m, (owner.refs[0], f".{lent.partition('[')[0].rpartition('.')[2]}"), site, lent) or result
    for ref in result.refs:
        obj = m.state.object(ref)
        if obj.owner != FIELD:
            m.state.set_object(ref, obj._replace(owner=FIELD, text=lent))
    return result


def _put_here(m: Machine, field: Slot, site: int, text: str) -> Value | None:
    """The elements of a list in a field of an object, as far as the unit knows them."""
    refs = m.state.refs_of(field)
    if len(refs) != 1 or m.state.object(refs[0]).kind is not Kind.LIST or not m.state.slot_names(refs[0]):
        return None
    found = slots.element(m, Value(refs, Kind.LIST), None, site, text)
    return found if found.refs and all(m.state.object(ref).kind is not Kind.UNKNOWN for ref in found.refs) else None


def is_lent(m: Machine, obj: Object) -> bool:
    """Whether something of which nothing is known is what a method of the object has lent of a container of its own."""
    field, bracket, _ = obj.text.partition("[...]")
    if obj.kind is not Kind.UNKNOWN or obj.owner != FIELD or obj.text != f"{field}[...]" or field.count(".") != 1:
        return False
    known = m.world.field_of(f"class#{m.unit.owner}", field.partition(".")[2])
    return bool(bracket) and known is not None and known.kind in CONTAINERS
