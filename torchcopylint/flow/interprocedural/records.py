"""Records: classes whose fields are annotated in the class body and set by the call itself, as in a dataclass."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow.storages import repeating, slots
from torchcopylint.flow.tape import NO_REGISTER
from torchcopylint.flow.values import kinds, memory

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torchcopylint.flow.files.world import World
    from torchcopylint.flow.model import Object, Value
    from torchcopylint.flow.running.machine import Machine
    from torchcopylint.flow.tape import Annotation
    from torchcopylint.flow.values.sites import Arguments

_TUPLES = frozenset({"NamedTuple", "typing.NamedTuple"})


def fields_of(world: World, number: int) -> dict[str, Annotation]:
    """The fields of a class of this file that has no `__init__`, in the order in which a call sets them."""
    return {} if world.method(number, "__init__") is not None else _annotated(world, number)


def _annotated(world: World, number: int) -> dict[str, Annotation]:
    """The fields that the body of a class of this file, and of those it inherits, speaks of."""
    found: dict[str, Annotation] = {}
    for current in reversed(world.lineage(number)):
        if world.is_own_class(current):
            found.update(world.program.classes[current].fields)
    return {name: annotation for name, annotation in found.items() if not annotation.name.endswith("ClassVar")}


def fill(m: Machine, number: int, ref: int, arguments: Arguments, site: int) -> None:
    """An instance of a class is made by such a call: each argument is what its field holds."""
    names = list(fields_of(m.world, number)) if arguments.positional or arguments.keywords else []
    given = dict(zip(names, arguments.positional, strict=False))
    given.update({name: value for name, value in arguments.keywords.items() if name in names})
    for name, value in given.items():
        slots.bind_slot(m, (ref, f".{name}"), value, site)
    repeating.note_twice(m, given.values(), site, m.index.calls.get(site, NO_REGISTER))


def copied(m: Machine, source: Value, keywords: Mapping[str, Value], site: int, text: str) -> Value:
    """Another instance with what the fields of one hold, but for those that are given anew: `replace(best, step=3)`."""
    obj = m.state.object(source.refs[0])
    made = memory.fresh(m, site, obj._replace(shares=(), text=text, owner="", saved=frozenset(), site=site))
    m.holding.shallow_of[made.refs[0]] = source.refs[0]
    for slot in m.state.slot_names(source.refs[0]):
        if slot[1].startswith(".") and slot[1][1:] not in keywords:
            held = slots.slot_value(m, slot)
            slots.bind_slot(m, (made.refs[0], slot[1]), held._replace(root=None), site)
    for name, value in keywords.items():
        slots.bind_slot(m, (made.refs[0], f".{name}"), value, site)
    return made


def declared(m: Machine, type_name: str, name: str) -> Object | None:
    """What the annotation in the class body says of a field, whoever sets it."""
    number = m.world.local_class(type_name)
    annotation = _annotated(m.world, number).get(name) if number is not None else None
    return kinds.from_annotation(m, annotation) if annotation is not None else None


def position(m: Machine, obj: Object, index: object) -> str | None:
    """The slot of the field that stands at an index of a named tuple, which may be counted from its end."""
    number = m.world.local_class(obj.type) if type(index) is int else None
    if number is None or not any(name in _TUPLES for _, name in m.world.bases(number)):
        return None
    names = list(fields_of(m.world, number))
    within = type(index) is int and -len(names) <= index < len(names)
    return f".{names[index]}" if within and isinstance(index, int) else None
