"""Methods of lists, dictionaries, iterators and state dicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torchcopylint.flow import tape as t
from torchcopylint.flow.autograd import unknowns
from torchcopylint.flow.graphs import gathered, runs
from torchcopylint.flow.model import (
    ANY_ELEMENT,
    BUFFERS,
    CONTAINERS,
    LAZY_FORMS,
    LOCAL,
    UNKNOWN,
    Fact,
    How,
    Kind,
    Object,
    Part,
    Sure,
    Value,
)
from torchcopylint.flow.program import wholes
from torchcopylint.flow.running.machine import Machine
from torchcopylint.flow.storages import brought, collecting, lost, own_entries, queues, repeating, slots
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import kinds, memory, naming
from torchcopylint.flow.values.sites import Arguments

SHALLOW = "shallow"
"""Flag of a state dict that is a shallow copy: other keys and values may come, the tensors are the model's."""
ZIP, NUMBERED, NAMED, VALUES = LAZY_FORMS
_ADDING = {"append": 1, "add": 1, "appendleft": 1, "insert": 2, "put": 1}
_SHIFTING = frozenset({"insert", "pop", "remove", "sort", "reverse"})
_EXTENDING = frozenset({"extend", "extendleft"})
_TAKING = frozenset({"pop", "popleft", "popitem"})


_BETWEEN_THREADS = {"put": "append", "put_nowait": "append", "get": "pop", "get_nowait": "pop"}
"""What the methods of a queue between threads do to a list."""


def call_method(m: Machine, base: Value, event: t.Invoke, arguments: Arguments) -> Value:
    """The result of a method of one container."""
    ref = base.refs[0]
    obj = m.state.object(ref)
    name = event.name
    if name in _SHIFTING and obj.kind is Kind.LIST:
        _shift(m, ref, event.site)
    if obj.type == kinds.QUEUE:
        if name in queues.PUTTING and len(arguments.positional) > 1:
            queues.put(m, ref, arguments.at(1), event.site, naming.spelling(m, event.arguments[0].register))
        return unknowns.call_unknown(m, Arguments(arguments.positional[1:], arguments.keywords), event.site, name)
    if obj.type == kinds.OF_THREADS:
        name = _BETWEEN_THREADS.get(name, name)
    if name in _ADDING and len(arguments.positional) > _ADDING[name]:
        item = arguments.positional[_ADDING[name]]
        register = event.arguments[_ADDING[name] - 1].register
        text = naming.text_of(m, event.base)
        lasting = runs.stands_in_field(m, event.base) or runs.stands_around(m, event.base, item)
        part, added = brought.by(m, item, naming.spelling(m, register), register)
        runs.accumulate(m, event.site, base, part, text, added, "collected", lasting=lasting)
        runs.note_outside(m, event.site, event.base, part, added)
        if name == "append":
            gathered.note(m, event.site, event.base, part, added, "figures")
        collecting.put(m, (ref, ANY_ELEMENT), item, event.site, "append")
        return Value(kind=Kind.NONE)
    if name in _EXTENDING and len(arguments.positional) > 1:
        wholes.note_grown(m, base, arguments.positional[1], event.site)
        collecting.note_field(m, (ref, ANY_ELEMENT), arguments.positional[1], event.site)
        for source in arguments.positional[1].refs:
            repeating.note_extended_again(m, ref, source, event.site)
            copy_elements(m, source, ref, event.site)
        return Value(kind=Kind.NONE)
    if name in _TAKING:
        key = arguments.at(1).const if obj.kind in (Kind.DICT, Kind.STATE_DICT) else None
        taken = slots.element(m, base, key, event.site, naming.text_of(m, event.out))
        if isinstance(key, str) and obj.kind is Kind.DICT:
            m.state.put((ref, f"[{key!r}]"), None)
        return taken
    if obj.kind in (Kind.DICT, Kind.STATE_DICT):
        return _dict_method(m, base, ref, obj, event, arguments)
    if name == "copy":
        made = memory.fresh(m, event.site, Object(obj.kind, obj.sure, text=naming.text_of(m, event.out)))
        copy_elements(m, ref, made.refs[0], event.site)
        return made
    if name in ("index", "count"):
        return Value(kind=Kind.NUMBER)
    if name == "clear":
        slots.clear(m, ref)
    if name in ("clear", "sort", "reverse", "remove"):
        return Value(kind=Kind.NONE)
    return unknowns.call_unknown(m, Arguments(arguments.positional[1:], arguments.keywords), event.site, name)


def _dict_method(m: Machine, base: Value, ref: int, obj: Object, event: t.Invoke, arguments: Arguments) -> Value:
    name = event.name
    text = naming.text_of(m, event.out)
    if name == "items":
        return lazily(m, event.site, NAMED, lazily(m, event.site, VALUES, base, tag="values"))
    if name == "values":
        return lazily(m, event.site, VALUES, base)
    if name == "keys":
        return iterator(m, event.site, Value(kind=Kind.STRING))
    if name in ("get", "setdefault"):
        return _with_default(m, base, obj, event, arguments)
    if name == "copy":
        if obj.kind is Kind.STATE_DICT:
            return shallow_copy(m, base, event.site, text)
        made = memory.fresh(m, event.site, Object(Kind.DICT, obj.sure, text=text))
        copy_elements(m, ref, made.refs[0], event.site)
        note_copy(m, made.refs[0], ref)
        return made
    if name == lost.UPDATE:
        if obj.kind is Kind.STATE_DICT and SHALLOW not in obj.flags:
            lost.note_state_item(m, event, obj)
        for source in arguments.positional[1:2]:
            for held in source.refs:
                copy_elements(m, held, ref, event.site)
        for key, value in arguments.keywords.items():
            slots.bind_slot(m, (ref, f"[{key!r}]"), value, event.site)
        return Value(kind=Kind.NONE)
    if name == "clear":
        slots.clear(m, ref)
        return Value(kind=Kind.NONE)
    return unknowns.call_unknown(m, Arguments(arguments.positional[1:], arguments.keywords), event.site, name)


def _with_default(m: Machine, base: Value, obj: Object, event: t.Invoke, arguments: Arguments) -> Value:
    """`d.get(key, default)` and `d.setdefault(key, default)`."""
    text, key = naming.text_of(m, event.out), arguments.at(1).const
    slot = (base.refs[0], f"[{key!r}]" if isinstance(key, str | int) else ANY_ELEMENT)
    default = arguments.positional[2] if len(arguments.positional) > 2 else UNKNOWN
    if event.name == "setdefault" and default != UNKNOWN:
        collecting.note_field(m, slot, default, event.site)
        repeating.note_put_again(m, m.state.cell(slot), default, event.site, text)
        if m.state.cell(slot) is None:
            slots.bind_slot(m, slot, default, event.site)
    elif default.refs and obj.owner in ("", LOCAL) and {m.state.object(one).kind for one in default.refs} <= BUFFERS:
        places = [slot, (base.refs[0], ANY_ELEMENT)]
        held = [slots.slot_value(m, place) for place in places if m.state.cell(place) is not None]
        return slots.join_values([*held[:1], default])
    if event.arguments:
        # An entry goes by its place, whatever it is taken out by.
        text = f"{naming.text_of(m, event.base)}[{naming.spelling(m, event.arguments[0].register)}]"
    return slots.element(m, base, key, event.site, text)


def note_copy(m: Machine, made: int, source: int) -> None:
    """A dictionary is made as a copy of another one: of that, keys may stand in it that nobody here has named."""
    obj = m.state.object(source)
    if obj.kind is Kind.UNKNOWN or obj.owner not in ("", LOCAL):
        m.holding.shallow_of[made] = source


def shallow_copy(m: Machine, base: Value, site: int, text: str) -> Value:
    """Another dictionary of the same tensors."""
    obj = m.state.object(base.refs[0])
    made = Object(Kind.STATE_DICT, obj.sure, type=obj.type, text=text, flags=obj.flags | {SHALLOW}, config=obj.config)
    return memory.alias(m, base, site, How.STATE, made)


def element_of(m: Machine, base: Value, ref: int, site: int, text: str) -> Value:
    """Any element of a container."""
    obj = m.state.object(ref)
    if obj.kind is Kind.STATE_DICT:
        one = Object(Kind.TENSOR, Sure.PROVEN, leaf=Fact.YES, requires_grad=Fact.NO, text=text, flags=obj.flags)
        one = one._replace(config=obj.config)
        return memory.alias(m, base, site, How.STATE, one, region=(Part("each"),), tag="value")
    return slots.element(m, base, None, site, text)


def copy_elements(
    m: Machine, source: int, target: int, site: int, without: Callable[[int], bool] | None = None
) -> None:
    """The elements of one container are elements of another as well, but for those at places that are left out."""
    slots.moved_from_end(m, target)
    obj = m.state.object(source)
    if obj.kind is Kind.STATE_DICT and m.state.object(target).kind is Kind.DICT:
        one = element_of(m, Value((source,)), source, site, f"{obj.text}[...]")
        slots.bind_slot(m, (target, ANY_ELEMENT), one, site, weak=True)
    keyed = m.state.object(target).kind is Kind.DICT
    for slot in m.state.slot_names(source):
        cell = m.state.cell(slot)
        if cell is not None and slot[1].startswith("[") and not own_entries.is_from_end(slot[1]):
            if without is not None and own_entries.is_place(slot[1]) and without(int(slot[1][1:-1])):
                continue
            held = Value(cell.refs, cell.kind, cell.const, cell.marks)
            name = slot[1] if keyed else ANY_ELEMENT
            slots.bind_slot(m, (target, name), held, site, weak=name == ANY_ELEMENT)


def _known_length(m: Machine, ref: int) -> int | None:
    """How many elements a list or tuple has, if each of them is known by its position."""
    names = {slot[1] for slot in m.state.slot_names(ref) if slot[1].startswith("[")}
    return len(names) if names == {f"[{position}]" for position in range(len(names))} else None


def position(m: Machine, ref: int, key: object) -> object:
    """A constant index of a list or tuple, counted from its beginning; `None` if that cannot be said."""
    if not isinstance(key, int) or key >= 0:
        return key
    length = _known_length(m, ref)
    return key + length if length is not None and key + length >= 0 else None


def from_end(m: Machine, ref: int, key: object) -> Value | None:
    """What stands at a place that is counted from the end of a list which a loop has filled, so that nobody knows how
    many there are: the same at every look, until something is put in."""
    if not isinstance(key, int) or key >= 0 or position(m, ref, key) is not None:
        return None
    slot = (ref, f"[{key}]")
    return slots.slot_value(m, slot) if m.state.cell(slot) is not None else slots.own_entry(m, slot)


def part_of(m: Machine, base: Value, bounds: t.Slice, site: int, text: str) -> Value:
    """A slice of a list or tuple: a new one, of the same elements."""
    ref = base.refs[0]
    obj = m.state.object(ref)
    made = memory.fresh(m, site, Object(obj.kind, obj.sure, text=text))
    numbers = [m.value(register).const if register >= 0 else None for register in bounds]
    whole = [number for number in numbers if isinstance(number, int)]
    length = _known_length(m, ref)
    if numbers[0] in whole and numbers[0] > 0 and _holds_one(m, ref):
        # `losses[1:]`: whatever else may stand there, it is not the one that is known.
        return made
    if length is None or len(whole) != sum(register >= 0 for register in bounds):
        copy_elements(m, ref, made.refs[0], site, _left_out(numbers))
        return made
    for position, index in enumerate(range(length)[_slice(bounds, whole)]):
        cell = m.state.cell((ref, f"[{index}]"))
        assert cell is not None
        held = Value(cell.refs, cell.kind, cell.const, cell.marks)
        slots.bind_slot(m, (made.refs[0], f"[{position}]"), held, site)
    return made


def _left_out(numbers: Sequence[object]) -> Callable[[int], bool]:
    """Whether a slice of a list, with those bounds that are known, surely leaves out what stands at a place."""
    lower, upper, step = (number if isinstance(number, int) else None for number in numbers)
    upward = numbers[2] is None or (step is not None and step > 0)

    def is_left_out(place: int) -> bool:
        before = lower is not None and 0 <= place < lower
        return upward and (before or (upper is not None and 0 <= upper <= place))

    return is_left_out


def _holds_one(m: Machine, ref: int) -> bool:
    """Whether a list holds one thing that is known, which was put there once."""
    held = {inner for slot in m.state.slot_names(ref) for inner in m.state.refs_of(slot)}
    putting = [event for event in m.index.of(t.Invoke) if event.name in _ADDING and m.value(event.base).refs == (ref,)]
    extended = any(event.name in _EXTENDING and ref in m.value(event.base).refs for event in m.index.of(t.Invoke))
    once = len(putting) == 1 and not extended and not uses.loops_around(m, putting[0].site)
    return once and len(held) == 1 and not ref & 1


def _slice(bounds: t.Slice, numbers: list[int]) -> slice:
    given = iter(numbers)
    lower, upper, step = (next(given) if register >= 0 else None for register in bounds)
    return slice(lower, upper, step or None)


def _shift(m: Machine, ref: int, site: int) -> None:
    """The elements of a list change places: each may now be at any position."""
    slots.moved_from_end(m, ref)
    for slot in m.state.slot_names(ref):
        cell = m.state.cell(slot)
        if cell is not None and slot[1].startswith("[") and slot[1] != ANY_ELEMENT:
            held = Value(cell.refs, cell.kind, cell.const, cell.marks)
            slots.bind_slot(m, (ref, ANY_ELEMENT), held, site, weak=True)
            m.state.put(slot, None)


def iterator(m: Machine, site: int, item: Value, tag: str = "iterator", kind: Kind = Kind.ITERATOR) -> Value:
    """An iterator, or another container, over items that are all like one."""
    made = memory.fresh(m, site, Object(kind, Sure.PROVEN, text="..."), tag)
    slots.bind_slot(m, (made.refs[0], ANY_ELEMENT), item._replace(root=None), site)
    return made


def lazily(m: Machine, site: int, form: str, *sources: Value, tag: str = "lazy") -> Value:
    """An iterator whose items are made turn by turn from its sources: see `iteration`."""
    made = memory.fresh(m, site, Object(Kind.ITERATOR, Sure.PROVEN, type=form, text="..."), tag)
    for position, source in enumerate(sources):
        slots.bind_slot(m, (made.refs[0], f".{position}"), source, site)
    return made


def column(m: Machine, ref: int, position: int, site: int, text: str) -> Value | None:
    """One of the tuples that `zip(*rows)` is taken apart into: what stands at that position of each row.

    `None` if there is a row of which nobody knows what stands in it: what is taken for a tuple may become an array.
    """
    rows = [slots.slot_value(m, slot) for slot in m.state.slot_names(ref)]
    if not rows or any(m.state.object(one).kind not in CONTAINERS for row in rows for one in row.refs or (ref,)):
        return None
    made = memory.fresh(m, site, Object(Kind.TUPLE, Sure.PROVEN, text=text), f"column {position}")
    for place, row in m.each(enumerate(rows)):
        items = [slots.element(m, row._replace(refs=(one,)), position, site, text) for one in row.refs]
        # One row may stand for all that a loop has put there.
        slot = ANY_ELEMENT if len(rows) == 1 else f"[{place}]"
        slots.bind_slot(m, (made.refs[0], slot), slots.join_values(items)._replace(root=None), site)
    return made
