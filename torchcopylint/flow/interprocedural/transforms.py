"""Transforms of a file that edit the samples which a dataset of the file keeps and hands to whatever transform it has.

`self.transform(self.samples[i])` says that what is kept goes into a transform, and `class Flip` with a `__call__` that
writes its argument in place is one. Which one the dataset is given is said elsewhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import SampleEdited
from torchcopylint.flow.interprocedural import records
from torchcopylint.flow.library import subscripts
from torchcopylint.flow.model import CONTAINERS, Kind, Sure
from torchcopylint.flow.program import transform_orders
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import naming
from torchcopylint.knowledge import table

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from torchcopylint.flow.files.world import World
    from torchcopylint.flow.running.machine import Machine

_FETCHING = frozenset({"__getitem__", "__getitems__", "get"})
_SHALLOW = frozenset({"dict", "list", "tuple", "copy.copy"})
_HOLDING = _SHALLOW | {"zip"}
"""What holds elements of what it is given."""
_VIEWS = frozenset({"view", "squeeze", "unsqueeze", "transpose", "permute", "t", "narrow", "select", "get", "items"})
_KEPT = (Kind.TENSOR, Kind.ARRAY, *CONTAINERS)
MAX_STEPS = 24
"""So many events are gone back over from a value to where it comes from."""


class Handed(NamedTuple):
    """At `site`, a dataset hands to a transform, as its argument at `position`, what it keeps in the field `source`.

    `shallow` is whether it does so in a container that is new. Of a display (`(self.images[i], label)`) it is what
    stands at the place, or under the key, that `part` says.
    """

    site: int
    position: int
    source: str
    shallow: bool
    part: object = None


def found(world: World) -> dict[int, list[SampleEdited]]:
    """By the unit of each `__call__` that edits what it is given: what it edits, if a dataset keeps that."""
    handed = [
        one for m in world.machines.values() if m.unit.name in _FETCHING and m.unit.owner >= 0 for one in _given(m)
    ]
    edited: dict[int, list[SampleEdited]] = {}
    for number, m in world.machines.items() if handed else ():
        if m.unit.owner >= 0 and m.unit.name == "__call__" and len(m.unit.parameters) > 1:
            found = list(edits(m, handed))
            if found and not transform_orders.is_fed_by_others(world, m.unit.owner):
                edited[number] = found
    return edited


def _given(m: Machine) -> list[Handed]:
    """What a method that fetches a sample hands to what a field holds: to a transform."""
    me = m.unit.first
    calls: list[t.Call | t.Invoke] = [event for event in m.index.of(t.Call) if _is_one_of_a_row(m, event, me)]
    for event in m.index.of(t.Invoke):
        base = m.unit.definitions[event.base]
        own = isinstance(base, t.Load) and base.name == me and m.world.method(m.unit.owner, event.name) is None
        if own and event.arguments:
            calls.append(event)
    found = []
    for call in calls:
        for position, argument in enumerate(call.arguments):
            kept = _kept(m, argument.register, me)
            if kept is not None:
                found.append(Handed(call.site, position, *kept))
                continue
            for part, one in _parts_of(m, argument.register):
                kept = _kept(m, one, me)
                if kept is not None:
                    found.append(Handed(call.site, position, *kept, part))
    return found


def _is_one_of_a_row(m: Machine, event: t.Call, me: str) -> bool:
    """Whether a call is one of those that a field holds, one after the other: `for t in self.transforms: x = t(x)`."""
    function = m.unit.definitions[event.function] if event.function >= 0 else None
    bound = uses.bindings_before(m, function) if isinstance(function, t.Load) else []
    through = m.unit.definitions[bound[0]] if len(bound) == 1 and bound[0] >= 0 else None
    row = m.unit.definitions[through.iterable] if isinstance(through, t.Iterate) and through.iterable >= 0 else None
    owner = m.unit.definitions[row.base] if isinstance(row, t.Attribute) else None
    return isinstance(owner, t.Load) and owner.name == me


def _parts_of(m: Machine, register: int) -> Iterator[tuple[object, int]]:
    """The places or keys of the display that a value is, and what stands there: `(self.images[i], self.labels[i])`."""
    event = m.unit.definitions[register] if register >= 0 else None
    if isinstance(event, t.Load):
        bound = uses.bindings_before(m, event)
        event = m.unit.definitions[bound[0]] if len(bound) == 1 and bound[0] >= 0 else None
    if isinstance(event, t.Make) and not any(event.stars) and len(event.keys) in (0, len(event.items)):
        for place, one in enumerate(event.items):
            key = _constant(m, event.keys[place]) if event.keys else place
            if key is not None:
                yield key, one


def _constant(m: Machine, register: int) -> object:
    made = m.unit.definitions[register] if register >= 0 else None
    return made.value if isinstance(made, t.Const) else None


def _kept(
    m: Machine, register: int, me: str, position: int = -1, shallow: bool = False, steps: int = MAX_STEPS
) -> tuple[str, bool] | None:
    """The element of a field that a value is, as text, and whether in a shallow copy; `None` of anything else.

    Of a name that is bound on several arms, what one of them leads to: `if self.resize: img = self.resize(img)`.
    """
    for step in range(steps):
        event = m.unit.definitions[register] if register >= 0 else None
        match event:
            case t.Load():
                bound = uses.bindings_before(m, event)
                if not bound:
                    return None
                left = (steps - step) // 2
                for other in bound[1:]:
                    kept = _kept(m, other, me, position, shallow, left)
                    if kept is not None:
                        return kept
                register = bound[0]
            case t.Unpack():
                register, position = event.value, event.position
            case t.Make() if 0 <= position < len(event.items) and not any(event.stars):
                register, position = event.items[position], -1
            case t.Call() if len(event.arguments) == 1 and naming.text_of(m, event.function) in _SHALLOW:
                register, shallow = event.arguments[0].register, True
            case t.Invoke() if event.name == "copy" and not event.arguments:
                register, shallow = event.base, True
            case t.Attribute() if _is_field(m, event.name):
                register = event.base
            case t.Invoke() if lent := _lent(m, event, me, position, (steps - step) // 2):
                return lent, shallow
            case t.Item():
                field = m.unit.definitions[event.base]
                owner = m.unit.definitions[field.base] if isinstance(field, t.Attribute) else None
                own = isinstance(field, t.Attribute) and isinstance(owner, t.Load) and owner.name == me
                if not isinstance(field, t.Attribute) or not own or not _is_in_memory(m, field.name):
                    return None
                return f"{naming.text_of(m, event.base)}[...]", shallow
            case _:
                return None
    return None


def _is_field(m: Machine, name: str) -> bool:
    """Whether a name is that of what a record of the file holds: an annotated field, and no property."""
    known = any(name in records.fields_of(m.world, one.number) for one in m.world.program.classes)
    return known and not m.world.is_method(name)


def _is_of_sample(m: Machine, name: str) -> bool:
    """Whether a name is that of what a sample is made of: a record's, or what the constructor of a plain class of the
    file has put into its object."""
    makers = (unit for unit in m.world.program.units if unit.name == "__init__" and unit.owner >= 0)
    set_there = any(
        name in m.world.index(unit).stores and m.world.class_kind(unit.owner)[0] is Kind.INSTANCE for unit in makers
    )
    return (set_there and not m.world.is_method(name)) or _is_field(m, name)


def _lent(m: Machine, event: t.Invoke, me: str, position: int, steps: int) -> str:
    """The element of a field that a method of the dataset hands out, alone or at a position of a tuple, as text."""
    base = m.unit.definitions[event.base] if event.base >= 0 else None
    number = m.world.method(m.unit.owner, event.name) if isinstance(base, t.Load) and base.name == me else None
    summary = m.world.summary(number) if number is not None else None
    if summary is None:
        return ""
    lent = summary.lent or next((part.lent for part in summary.parts if part.slot == f"[{position}]"), "")
    field = lent.partition("[")[0].rpartition(".")[2]
    if field and _is_in_memory(m, field):
        return lent
    reader = m.world.machines.get(number) if number is not None else None
    return returned(reader, position, steps) if reader is not None else ""


def returned(m: Machine, position: int = -1, steps: int = MAX_STEPS) -> str:
    """The element of a field that a method of a dataset hands out, as text, if that is the same on all paths; of what
    has been taken apart there as well: `name, boxes = self.data[i]; return read(name), boxes`."""
    found = set()
    for event in m.index.of(t.Return):
        kept = _kept(m, event.value, m.unit.first, position, steps=steps)
        found.add(kept[0] if kept is not None and not kept[1] else "")
    return found.pop() if len(found) == 1 else ""


def _is_in_memory(m: Machine, field: str) -> bool:
    """Whether a field holds its elements: a tensor, an array, a container, or an argument of the constructor as it is.

    What another dataset fetches, and what a file hands out, is made anew at each look.
    """
    known = m.world.field_of(f"class#{m.unit.owner}", field)
    if known is not None and known.kind in _KEPT:
        return True
    return (known is None or known.kind is Kind.UNKNOWN) and _is_argument(m, field) and "data" not in field.lower()


def _is_argument(m: Machine, field: str) -> bool:
    initial = m.world.method(m.unit.owner, "__init__")
    made = m.world.machines.get(initial) if initial is not None else None
    stores = made.index.stores.get(field, []) if made is not None else []
    if made is None or len(stores) != 1 or stores[0].value < 0:
        return False
    event = made.unit.definitions[stores[0].value]
    return isinstance(event, t.Load) and event.name in {parameter.name for parameter in made.unit.parameters}


def edits(m: Machine, handed: list[Handed], skipped: int = 1) -> Iterator[SampleEdited]:
    """The writes of a transform into what it is given behind the first parameters, which are none of that."""
    names = {parameter.name: position for position, parameter in enumerate(m.unit.parameters[skipped:])}
    for event in m.index.events:
        base, value = _written(event)
        element, parameter = _part_of(m, base, names) if base >= 0 else (False, "")
        mine = [one for one in handed if parameter and one.position == names[parameter]]
        if any(one.part is not None for one in mine):
            key = _first_key(m, base, names)
            mine = [one for one in mine if one.part is None or (key is not None and one.part == key)]
        # What is a copy itself is nobody's; what stands in it may be.
        mine = [one for one in mine if not one.shallow or (element if one.part is None else _is_deeper(m, base, names))]
        write = m.writes.get(event.site)
        if not mine or any(_is_choice(m, one) for one in _items_to(m, base, names)[:-1] if one.out != base):
            continue
        if write is not None:
            if write.reads_old or write.partial or write.form == "item":
                given, sure = mine[0], max(write.sure, Sure.LIKELY)
                yield SampleEdited(event.site, naming.text_of(m, base), write.op, given.site, given.source, sure)
        elif isinstance(event, t.Augment) and (_has_elements(m, base, value) or _is_numeric(m, event)):
            given, text = mine[0], naming.text_of(m, base)
            yield SampleEdited(event.site, text, event.symbol, given.site, given.source, Sure.LIKELY)
        elif isinstance(event, t.StoreItem) and event.augmented:
            if element and _is_array_index(event.subscript) and _is_taken_plainly(m, base, names):
                given, text = mine[0], f"{naming.text_of(m, base)}[{naming.index_text(m, event.subscript)}]"
                yield SampleEdited(event.site, text, "[...] =", given.site, given.source, Sure.LIKELY)
        elif isinstance(event, t.StoreItem) and not element and _is_made_of_itself(m, event, value):
            for given in [one for one in mine if not one.shallow and one.part is None][:1]:
                text = f"{naming.text_of(m, base)}[{naming.index_text(m, event.subscript)}]"
                yield SampleEdited(event.site, text, "[...] =", given.site, given.source, Sure.LIKELY)


def _has_elements(m: Machine, base: int, value: int) -> bool:
    """`x -= x.mean()`: what has such a method is a tensor or an array, and changes in place."""
    text = naming.text_of(m, base)
    parts = uses.expression(m, value, "")
    calls = [part for part in parts if isinstance(part, t.Invoke) and naming.text_of(m, part.base) == text]
    return any(table.tensor_method(part.name) is not None for part in calls)


def _is_numeric(m: Machine, event: t.Augment) -> bool:
    """`x[None]` and `x /= y`: what has items, or a shape, and can be divided or subtracted from, changes in place.

    What has a shape does so whatever is done to it.
    """
    text = naming.text_of(m, event.target)
    shapes = [naming.text_of(m, one.base) for one in m.index.of(t.Attribute) if one.name in ("shape", "dtype", "ndim")]
    if event.symbol not in ("-=", "/="):
        return text in shapes and event.symbol in ("+=", "*=")
    items = [naming.text_of(m, one.base) for one in m.index.of(t.Item)]
    return text in items or text in shapes


def _is_array_index(subscript: t.Index) -> bool:
    """`boxes[:, 0]`: only arrays and tensors are asked for several dimensions, one of them a slice."""
    return len(subscript) > 1 and any(isinstance(one, t.Slice) for one in subscript)


def _is_taken_plainly(m: Machine, register: int, names: Collection[str]) -> bool:
    """Whether a part of a parameter was taken out by what cannot be a mask or a list of places, which make a copy."""
    return all(_is_plain(m, one) for one in _items_to(m, register, names)[:-1])


def _is_plain(m: Machine, event: t.Event) -> bool:
    if not isinstance(event, t.Item):
        return True
    return all(isinstance(one, t.Slice) or _constant(m, one) is not None for one in event.subscript)


def _is_choice(m: Machine, event: t.Event) -> bool:
    """`boxes[boxes[:, 0] > 1]`, `boxes[sample["keep"]]`: what a mask takes out is a copy."""
    index = event.subscript[0] if isinstance(event, t.Item) and len(event.subscript) == 1 else None
    if not isinstance(index, int) or index < 0:
        return False
    match m.unit.definitions[index]:
        case t.Item(subscript=(int() as key,)) if isinstance(_constant(m, key), str):
            return True
    return subscripts.is_mask(m, index)


def _is_deeper(m: Machine, register: int, names: Collection[str]) -> bool:
    return len(_items_to(m, register, names)) > 1


def _first_key(m: Machine, register: int, names: Collection[str]) -> object:
    """The place or the key of a parameter that a value has been taken out of; `None` if it is not known."""
    taken = _items_to(m, register, names)
    match taken[-1] if taken else None:
        case t.Unpack() as part:
            return part.position if part.position >= 0 else None
        case t.Item() as part if len(part.subscript) == 1 and not isinstance(part.subscript[0], t.Slice):
            return _constant(m, part.subscript[0])
    return None


def _items_to(m: Machine, register: int, names: Collection[str]) -> list[t.Item | t.Unpack | t.Iterate]:
    """What a value has been taken out of a parameter by, the last step first."""
    taken: list[t.Item | t.Unpack | t.Iterate] = []
    for _ in range(MAX_STEPS):
        event = m.unit.definitions[register] if register >= 0 else None
        match event:
            case t.Load():
                bound = uses.bindings_before(m, event)
                if len(bound) != 1:
                    return taken if not bound and event.name in names else []
                register = bound[0]
            case t.Item():
                register = event.base
                taken.append(event)
            case t.Unpack() | t.Iterate():
                register = event.value if isinstance(event, t.Unpack) else event.iterable
                taken.append(event)
            case t.Invoke() if event.name in _VIEWS or event.name in ("values", "detach"):
                register = event.base
            case t.Attribute() if _is_of_sample(m, event.name):
                register = event.base
            case _:
                return []
    return []


def _written(event: t.Event) -> tuple[int, int]:
    """What an event writes in place, and what it puts there: registers, or -1."""
    match event:
        case t.Invoke() if event.name.endswith("_") and not event.name.endswith("__"):
            return event.base, -1
        case t.Augment():
            return event.target, event.value
        case t.StoreItem():
            return event.base, event.value
    return -1, -1


def _part_of(m: Machine, register: int, names: Collection[str], steps: int = MAX_STEPS) -> tuple[bool, str]:
    """The parameter that a value is, or is an element or a view of (whether so comes first); empty if neither.

    Of a name that is bound on several arms, the one that all of them lead to.
    """
    element = False
    for step in range(steps):
        event = m.unit.definitions[register] if register >= 0 else None
        match event:
            case t.Load():
                bound = uses.bindings_before(m, event)
                if not bound:
                    return element, event.name if event.name in names else ""
                if len(bound) > 1:
                    found = {_part_of(m, one, names, (steps - step) // 2) for one in bound}
                    part, parameter = found.pop() if len(found) == 1 else (False, "")
                    return element or part, parameter
                register = bound[0]
            case t.Item():
                register, element = event.base, True
            case t.Attribute() if _is_of_sample(m, event.name):
                register, element = event.base, True
            case t.Unpack():
                made = m.unit.definitions[event.value]
                if isinstance(made, t.Make) and 0 <= event.position < len(made.items) and not any(made.stars):
                    register = made.items[event.position]
                else:
                    register, element = event.value, True
            case t.Iterate():
                register, element = event.iterable, True
            case t.Invoke() if event.name in _VIEWS or event.name in ("values", "detach"):
                register, element = event.base, element or event.name in ("values", "items", "get")
            case t.Invoke() if event.name.endswith("_") and not event.name.endswith("__"):
                register = event.base
            case t.Call() if len(event.arguments) == 1 and naming.text_of(m, event.function) in _HOLDING:
                register, element = event.arguments[0].register, True
            case _:
                return element, ""
    return element, ""


def _is_made_of_itself(m: Machine, event: t.StoreItem, value: int) -> bool:
    """`sample["x"] = sample["x"] / 255`: not by an operation that gives the same again, such as a conversion."""
    made = m.unit.definitions[value] if value >= 0 else None
    if not isinstance(made, t.Operate) or made.symbol not in ("+", "-", "*", "/"):
        return False
    texts = {naming.text_of(m, operand) for operand in made.operands}
    return f"{naming.text_of(m, event.base)}[{naming.index_text(m, event.subscript)}]" in texts
