"""Containers that a loop goes through and fills anew: afterwards, nothing is left in them of what they held."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import ARGUMENT, CONTAINERS, Kind, Value
from torchcopylint.flow.storages import slots
from torchcopylint.flow.tapes import uses

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

_PLAIN = frozenset({"item", "tolist"})


def after(m: Machine, loop: t.Loop) -> None:
    """Once a loop has ended, each element is what its turn has stored under its own key, as far as each turn does so
    and none leaves the loop."""
    head = loop.body[0] if loop.body else None
    stores = m.index.put_back.get(head.site, ()) if isinstance(head, t.Iterate) else ()
    if not stores or any(isinstance(event, t.Break | t.Continue) for event in t.events(loop.body)):
        return
    for store in stores:
        if store not in loop.body or store.augmented:
            continue
        value = _of_each_turn(m, _stored(m, store))
        for ref in m.value(store.base).refs:
            obj = m.state.object(ref)
            if obj.kind in CONTAINERS and not ref & 1:
                _fill(m, ref, value, store.site)
            handed = obj.owner == ARGUMENT and ref == m.number("argument", obj.text)
            if handed and not value.refs and value.kind is not Kind.UNKNOWN and not uses.on_some_paths(m, loop.site):
                m.fields.renewed[obj.text] = value.kind


def _stored(m: Machine, store: t.StoreItem) -> Value:
    """What is stored: a number, if that is all that it can be, whatever it is taken from."""
    made = m.unit.definitions[store.value]
    plain = isinstance(made, t.Invoke) and made.name in _PLAIN and not made.arguments
    return Value(kind=Kind.NUMBER) if plain else m.value(store.value)


def _of_each_turn(m: Machine, value: Value) -> Value:
    """What the turns have stored: the newest object, or one that an earlier turn has made."""
    older = {ref | 1 for ref in value.refs if m.state.get(ref | 1) is not None}
    return value._replace(refs=tuple(sorted({*value.refs, *older})))


def of(m: Machine) -> tuple[tuple[str, Kind], ...]:
    """The parameters of a unit that has been run whose elements it sets to what is no tensor, and their kinds."""
    return tuple(m.fields.renewed.items())


def by_call(m: Machine, renewed: tuple[tuple[str, Kind], ...], bound: dict[str, Value], site: int) -> None:
    """A call fills containers that it is given anew."""
    for parameter, kind in renewed:
        value = bound.get(parameter, Value())
        if len(value.refs) == 1 and not value.refs[0] & 1 and m.state.object(value.refs[0]).kind in CONTAINERS:
            _fill(m, value.refs[0], Value(kind=kind), site)


def _fill(m: Machine, ref: int, value: Value, site: int) -> None:
    for slot in m.state.slot_names(ref):
        if slot[1].startswith("["):
            slots.bind_slot(m, slot, value, site)
