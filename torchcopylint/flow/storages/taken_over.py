"""One of several models takes the place of another as it is, where each is trained: `loser.net = winner.net`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import ModulePaired
from torchcopylint.flow.model import Kind, Sure
from torchcopylint.flow.tapes import item_stores
from torchcopylint.flow.values import kinds, naming

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

_PICKING = frozenset({"max", "min", "next", "choice", "pop"})
"""Functions and methods that pick one of several."""


def found(m: Machine) -> Iterator[ModulePaired]:
    """Where a unit sets a field of one element of something to that of another, or one entry of a list of models to
    another one, and some function trains them one by one."""
    for event in m.index.of(t.StoreAttribute):
        source = m.unit.definitions[event.value] if event.value >= 0 and not event.augmented else None
        if not isinstance(source, t.Attribute) or source.name != event.name:
            continue
        one, other = _element(m, event.base), _element(m, source.base)
        if one and other and one != other and _is_model(m, event.value, event.name) and not _go_back(m, event):
            site = _trained(m, event.name)
            if site >= 0:
                yield _pair(m, event.site, f"{one}.{event.name}", f"{other}.{event.name}", site)
    for item in m.index.of(t.StoreItem):
        source = m.unit.definitions[item.value] if item.value >= 0 and not item.augmented else None
        if not isinstance(source, t.Item) or not _is_model(m, item.value):
            continue
        into, out = naming.text_of(m, item.base), naming.text_of(m, source.base)
        keys = [naming.index_text(m, index) for index in (item.subscript, source.subscript)]
        site = _trained_element(m, into) if into == out and keys[0] != keys[1] and "..." not in keys else -1
        if site >= 0 and not _swaps(m, item, source):
            yield _pair(m, item.site, f"{into}[{keys[0]}]", f"{out}[{keys[1]}]", site)


def _pair(m: Machine, bound: int, name: str, source: str, site: int) -> ModulePaired:
    return ModulePaired(site, name, source, bound, "trained", Sure.LIKELY)


def _element(m: Machine, register: int) -> str:
    """The name of something that the unit has taken out of several: by a loop, by its place, or as the best of them."""
    load = m.unit.definitions[register] if register >= 0 else None
    if not isinstance(load, t.Load) or load.name == m.unit.first:
        return ""
    binds = [bind.value for bind in m.index.binds.get(load.name, ())]
    return load.name.partition("#")[0] if binds and all(_is_picked(m, value) for value in binds) else ""


def _is_picked(m: Machine, register: int) -> bool:
    event = m.unit.definitions[register] if register >= 0 else None
    if isinstance(event, t.Unpack):
        return _is_picked(m, event.value) or isinstance(m.unit.definitions[event.value], t.Make | t.Load)
    if isinstance(event, t.Call | t.Invoke):
        name = event.name if isinstance(event, t.Invoke) else naming.text_of(m, event.function)
        return name.rpartition(".")[2] in _PICKING
    return isinstance(event, t.Iterate | t.Item)


def _is_model(m: Machine, register: int, field: str | None = None) -> bool:
    """Whether a value is a model, by what is known of it or, of what nothing is known, by its name, if it has one.

    What is asked for its parameters, one after the other, is one.
    """
    objects = [m.state.object(ref) for ref in m.value(register).refs if m.state.get(ref) is not None]
    if any(obj.kind is not Kind.UNKNOWN for obj in objects):
        return all(obj.kind is Kind.MODULE for obj in objects)
    return field is None or kinds.named_model(field)


def _go_back(m: Machine, event: t.StoreAttribute) -> bool:
    """Whether the other is set as well, as where two change places, or to a copy of what it gives away."""
    stores = [one for one in m.index.of(t.StoreAttribute) if one.name == event.name]
    return len(stores) > 1


def _swaps(m: Machine, item: t.StoreItem, source: t.Item) -> bool:
    """Whether the entry that another one is set to is set, too, under its key or by a loop over several."""
    key = naming.index_text(m, source.subscript)
    base = naming.text_of(m, source.base)
    others = [one for one in m.index.of(t.StoreItem) if one is not item and naming.text_of(m, one.base) == base]
    return any(
        naming.index_text(m, one.subscript) == key or key in map(repr, item_stores.keys_in_turn(m, one))
        for one in others
    )


def _trained(m: Machine, field: str) -> int:
    """Where some function asks what stands in such a field, of whatever object, for its parameters."""
    for unit in m.world.program.units:
        for event in m.world.index(unit).of(t.Invoke):
            base = unit.definitions[event.base] if event.name == "parameters" and event.base >= 0 else None
            if isinstance(base, t.Attribute) and base.name == field:
                return event.site
    return -1


def _trained_element(m: Machine, container: str) -> int:
    """Where the unit, or another method of its class, asks the elements of a list for their parameters, one by one."""
    for unit in m.world.program.units:
        if unit.number != m.unit.number and (unit.owner != m.unit.owner or unit.owner < 0):
            continue
        machine = m if unit.number == m.unit.number else m.world.machines.get(unit.number)
        for event in m.world.index(unit).of(t.Invoke) if machine is not None else ():
            base = unit.definitions[event.base] if event.name == "parameters" and event.base >= 0 else None
            if machine is not None and isinstance(base, t.Item) and naming.text_of(machine, base.base) == container:
                return event.site
            if machine is not None and isinstance(base, t.Load) and _goes_through(machine, base.name, container):
                return event.site
    return -1


def _goes_through(m: Machine, name: str, container: str) -> bool:
    """Whether a name is bound by a loop over a list, alone or beside others."""
    for bind in m.index.binds.get(name, ()):
        event = m.unit.definitions[bind.value] if bind.value >= 0 else None
        if isinstance(event, t.Unpack):
            event = m.unit.definitions[event.value]
        if isinstance(event, t.Iterate):
            over = m.unit.definitions[event.iterable]
            sources = [one.register for one in over.arguments] if isinstance(over, t.Call) else [event.iterable]
            if any(naming.text_of(m, source) == container for source in sources):
                return True
    return False
