"""Methods that lend an element of what their object keeps: `return self.cache[key]`, alone or with others.

Whoever writes it, edits that.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from torchcopylint.flow.interprocedural.classes import SELF
from torchcopylint.flow.model import ANY_ELEMENT, BUFFERS, CONTAINERS, FIELD, LOCAL, How, Kind, Object, Sure, Value
from torchcopylint.flow.storages import slots
from torchcopylint.flow.values import memory, naming

_LENT_BY = frozenset({How.NUMPY, How.DETACH, How.VIEW})

if TYPE_CHECKING:
    from torchcopylint.flow.model import Slot
    from torchcopylint.flow.running.machine import Machine


def of(m: Machine) -> str:
    """What the method that has been run lends, as text: `self.cache[...]`. Empty if it may return something else."""
    return element(m, [value for value in m.results.returned if value.refs or value.kind is not Kind.NONE])


def by(m: Machine) -> How | None:
    """The way to the same memory by which a method that has been run lends an alias of an element: `.numpy()`."""
    found = {_lent_by(m, ref) for value in m.results.returned for ref in value.refs}
    return found.pop() if len(found) == 1 else None


def _lent_by(m: Machine, ref: int) -> How | None:
    shares = m.state.object(ref).shares
    plain = len(shares) == 1 and shares[0].how in _LENT_BY and shares[0].sure and not shares[0].when
    return shares[0].how if plain and shares[0].of == shares[0].storage else None


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
    if _lent_by(m, ref) is not None:
        ref = m.state.object(ref).shares[0].storage
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


def take(m: Machine, lent: str, owner: Value | None, result: Value, site: int, way: How | None = None) -> Value:
    """The result of a call of a method of the same object, which lends it: nobody who holds it holds it alone. Of
    another object, it is what the unit has seen put there. `way` is how it sits on the memory of what is there."""
    if not lent or owner is None or len(owner.refs) != 1:
        return result
    holder = m.state.object(owner.refs[0])
    field = lent.partition("[")[0].rpartition(".")[2]
    if holder.owner != SELF:
        found = _put_here(m, (owner.refs[0], f".{field}"), site, lent) if way is None else None
        if found is not None:
            return found
        if holder.owner in ("", LOCAL) or not _is_container(m, holder.type, field):
            return result
    text = lent if holder.owner == SELF else f"{holder.text}.{field}[...]"
    if way is not None:
        return _by_way(m, result, text, way, site)
    for ref in result.refs:
        obj = m.state.object(ref)
        if obj.owner != FIELD:
            m.state.set_object(ref, obj._replace(owner=FIELD, text=text))
    return result


def _is_container(m: Machine, owner: str, field: str) -> bool:
    """Whether a class keeps a list or dictionary in a field: other things make what is asked of them."""
    known = m.world.field_of(owner, field)
    return known is not None and known.kind in CONTAINERS


def _by_way(m: Machine, result: Value, text: str, way: How, site: int) -> Value:
    """An alias of what is lent, which nobody here holds."""
    if len(result.refs) != 1:
        return result
    obj = m.state.object(result.refs[0])
    if obj.kind not in BUFFERS:
        return result
    lent = Object(Kind.TENSOR, min(obj.sure, Sure.LIKELY), dtype=obj.dtype, owner=FIELD, text=text)
    base = memory.fresh(m, site, lent, "lent")
    return memory.alias(m, base, site, way, obj._replace(shares=()), tag="lent by")._replace(root=None)


def _put_here(m: Machine, field: Slot, site: int, text: str) -> Value | None:
    """The elements of a list or dictionary in a field of an object, as far as the unit knows them."""
    refs = m.state.refs_of(field)
    kind = m.state.object(refs[0]).kind if len(refs) == 1 else Kind.UNKNOWN
    if kind not in (Kind.LIST, Kind.DICT) or not m.state.slot_names(refs[0]):
        return None
    found = slots.element(m, Value(refs, kind), None, site, text)
    return found if found.refs and all(m.state.object(ref).kind is not Kind.UNKNOWN for ref in found.refs) else None


def is_lent(m: Machine, obj: Object) -> bool:
    """Whether something of which nothing is known is what a method of the object has lent of a container of its own."""
    field, bracket, _ = obj.text.partition("[...]")
    if obj.kind is not Kind.UNKNOWN or obj.owner != FIELD or obj.text != f"{field}[...]" or field.count(".") != 1:
        return False
    return bool(bracket) and _is_container(m, f"class#{m.unit.owner}", field.partition(".")[2])
