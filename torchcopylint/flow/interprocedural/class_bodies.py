"""Tensors that the body of a class binds: attributes of the class, which each of its objects has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import BUFFERS, GLOBAL, TENSORS, UNKNOWN, How, Kind, Object, Share, Sure, Value
from torchcopylint.flow.references import ClassReference
from torchcopylint.flow.storages import slots

if TYPE_CHECKING:
    from torchcopylint.flow.files.world import World
    from torchcopylint.flow.model import Slot
    from torchcopylint.flow.running.machine import Machine

_HELD = TENSORS | {Kind.LIST, Kind.DICT}


def makes_attributes(world: World, info: t.ClassInfo) -> bool:
    """Whether the body of a class calls something for what it binds, so that its attributes may be tensors."""
    body = world.program.units[info.body]
    bound = (body.definitions[event.value] for event in world.index(body).of(t.Bind) if event.value >= 0)
    return any(isinstance(made, t.Call | t.Invoke) for made in bound)


def attribute(world: World, type_name: str, name: str, kinds: frozenset[Kind] = TENSORS) -> Object | None:
    """The tensor (or what is of some other kinds) that the body of a class binds to a name, and nobody in the file sets
    on an object."""
    local = world.local_class(type_name)
    for current in world.lineage(local) if local is not None and not world.setters(name) else ():
        if not world.is_own_class(current):
            return None
        body = world.program.classes[current].body
        if name in world.program.units[body].bound:
            found = world.left_in(body, name)
            return found if found is not None and found.kind in kinds else None
    return None


def _is_made_for_each(world: World, number: int, name: str) -> bool:
    """Whether the body of a class says how each object gets an attribute of its own: `total: Tensor =
    field(default_factory=zeros)`, `field(init=False)`. The annotation is that of what the objects have."""
    unit = world.program.units[world.program.classes[number].body]
    for bind in world.index(unit).binds.get(name, ()):
        made = unit.definitions[bind.value] if bind.value >= 0 else None
        told = {one.keyword for one in made.arguments} if isinstance(made, t.Call | t.Invoke) else set()
        if told & _FACTORIES and "default" not in told:
            return True
    return False


_FACTORIES = frozenset({"default_factory", "factory", "init"})
"""What `dataclasses.field`, and the like of attrs and pydantic, are told for that."""


def is_common(m: Machine, storage: int) -> bool:
    """Whether a storage is that of a tensor or an array which the body of the class has made, once for all objects, and
    which nobody in the file asks the class for."""
    places = [(name, slot) for name, slot in m.fields.initial.items() if m.number("slot", slot) == storage]
    if len(places) != 1 or m.unit.owner < 0 or m.unit.name == "__init__":
        return False
    name, slot = places[0]
    constructors = (m.world.method(number, "__init__") for number in m.world.lineage(m.unit.owner))
    given = (m.world.index(m.world.unit(unit)).of(t.StoreAttribute) for unit in constructors if unit is not None)
    return (
        m.state.object(slot[0]).owner == "self"
        and attribute(m.world, f"class#{m.unit.owner}", name, BUFFERS) is not None
        and not any(_is_made_for_each(m.world, number, name) for number in m.world.lineage(m.unit.owner))
        and not any(event.name == name for events in given for event in events)
        and not _is_asked_of_class(m.world, name)
    )


def _is_asked_of_class(world: World, name: str) -> bool:
    """Whether somebody in the file asks a class, by its name, for an attribute: then it is there for all."""
    for unit in world.program.units:
        for event in world.index(unit).named:
            if event.__class__ is t.Attribute and event.name == name and event.base >= 0:
                base = unit.definitions[event.base]
                by = base.name if isinstance(base, t.Load | t.Attribute) else ""
                if by in ("cls", "__class__") or by[:1].isupper() or isinstance(base, t.Call):
                    return True
    return False


def display(world: World, type_name: str, name: str) -> Object | None:
    """The list of numbers that the body of a class spells out under a name, `ORDER = [0, 2, 1]`, if nobody in the file
    sets that on an object."""
    local = world.local_class(type_name)
    for current in world.lineage(local) if local is not None and not world.setters(name) else ():
        if not world.is_own_class(current):
            return None
        body = world.program.units[world.program.classes[current].body]
        if name in body.bound:
            binds = world.index(body).binds.get(name, ())
            made = body.definitions[binds[0].value] if len(binds) == 1 and binds[0].value >= 0 else None
            if not isinstance(made, t.Make) or made.kind != "list":
                return None
            numbers = all(isinstance(body.definitions[item], t.Const) for item in made.items)
            return Object(Kind.LIST, Sure.PROVEN) if numbers else None
    return None


def by_name(m: Machine, number: int, name: str, text: str) -> Value:
    """Such an attribute by the name of its class, `Head.reference`, or what the unit has put there."""
    slot = _slot(m, number, name)
    if m.state.cell(slot) is None:
        known = attribute(m.world, f"class#{number}", name, _HELD)
        if known is None:
            return UNKNOWN
        ref = m.number("of class", (number, name))
        if m.state.get(ref) is None:
            shares = (Share(ref, How.OWN, -1, ref),)
            m.state.set_object(ref, known._replace(shares=shares, text=f"{text}.{name}", owner=GLOBAL))
        if known.kind in TENSORS:
            return Value((ref,), known.kind)
        slots.bind_slot(m, slot, Value((ref,), known.kind), -1)
    return slots.slot_value(m, slot)._replace(root=None)


def of_instance(m: Machine, value: Value) -> Value:
    """The class of an object, which makes another one like it: `type(self)(self.x)`. Not where a class below its own is
    made in another way."""
    found = {m.world.local_class(m.state.object(ref).type) for ref in value.refs}
    number = found.pop() if len(found) == 1 else None
    initial = m.world.method(number, "__init__") if number is not None else None
    if number is None or (initial is not None and m.world.overriding(initial)):
        return Value(kind=Kind.OTHER)
    return Value(kind=Kind.CLASS, const=ClassReference(number))


def store(m: Machine, number: int, name: str, value: Value, site: int) -> None:
    """An attribute of a class is set by the name of the class: `Head.last = x`."""
    slots.bind_slot(m, _slot(m, number, name), value, site)


def _slot(m: Machine, number: int, name: str) -> Slot:
    """Where an attribute of a class stands."""
    return (m.number("class", number), f".{name}")
