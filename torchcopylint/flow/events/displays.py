"""What displays make: lists, tuples, dictionaries, comprehensions, and texts."""

from __future__ import annotations

from torchcopylint.flow import tape as t
from torchcopylint.flow.library import containers
from torchcopylint.flow.model import (
    ANY_ELEMENT,
    EMPTY,
    Kind,
    Object,
    Slot,
    Sure,
    Value,
)
from torchcopylint.flow.program import generators, wholes
from torchcopylint.flow.running.machine import Machine, handles
from torchcopylint.flow.storages import collecting, kept_while_trained, reading, repeating, slots
from torchcopylint.flow.values import imports, memory, naming
from torchcopylint.knowledge import table

MAX_ITEMS = 64
"""Longer displays hold elements that are not told apart."""


@handles(t.Text)
def _text(m: Machine, event: t.Text) -> None:
    for register in event.parts:
        reading.read(m, m.value(register), event.site, "text")
    m.set(event.out, Value(kind=Kind.STRING))


_DISPLAYED = {
    "tuple": Kind.TUPLE,
    "list": Kind.LIST,
    "set": Kind.SET,
    "dict": Kind.DICT,
    "iterator": Kind.ITERATOR,
}


@handles(t.Make)
def _make(m: Machine, event: t.Make) -> None:
    flags = frozenset() if event.items else frozenset({EMPTY})
    made = memory.fresh(m, event.site, Object(_DISPLAYED[event.kind], Sure.PROVEN, text="...", flags=flags))
    ref = made.refs[0]
    apart = len(event.items) <= MAX_ITEMS and not any(event.stars) and event.kind in ("tuple", "list")
    for position, register in enumerate(event.items):
        value = m.value(register)
        kept_while_trained.note_use(m, value, event.site, "store")
        if event.stars[position]:
            _spread(m, ref, value, event)
        elif event.kind == "dict":
            key = m.value(event.keys[position]).const
            slot = f"[{key!r}]" if isinstance(key, str | int) else ANY_ELEMENT
            slots.bind_slot(m, (ref, slot), value, event.site, weak=slot == ANY_ELEMENT)
        else:
            slot = f"[{position}]" if apart else ANY_ELEMENT
            slots.bind_slot(m, (ref, slot), value, event.site, weak=not apart)
    if event.kind == "dict" and event.stars[:1] == (True,) and sum(event.stars) == 1:
        spread = m.value(event.items[0]).refs
        if len(spread) == 1 and m.state.object(spread[0]).kind in (Kind.DICT, Kind.UNKNOWN):
            containers.note_copy(m, ref, spread[0])
    _note_repeated(m, event)
    if event.kind != "dict":
        held = [m.value(register) for register in event.items] if any(event.stars) else []
        wholes.note_put_together(m, list(zip(held, event.stars, strict=False)), made)
    m.set(event.out, made)


def _note_repeated(m: Machine, event: t.Make) -> None:
    """A display names one tensor or array more than once: `[zero, zero]`, `{"sum": zero, "count": zero}`.

    What is given to names at once, `q, k = x, x`, gets two names, each of which may be bound anew, and what a function
    of torch is handed (`torch.stack([x, x])`) is no container afterwards.
    """
    if len(event.items) < 2 or event.kind == "set" or any(event.stars):
        return
    user = m.consumer_of(event.out)
    if user.__class__ is t.Unpack or (
        (user.__class__ is t.Call or user.__class__ is t.Invoke) and _is_of_library(m, user)
    ):
        return
    repeating.note_twice(m, map(m.value, event.items), event.site, event.out)


def _is_of_library(m: Machine, call: t.Call | t.Invoke) -> bool:
    """Whether a call is of a function that the tables know: it looks at what it is handed, and keeps no container."""
    name = imports.ahead(m, call)
    return bool(name) and table.function(table.canonical(name)) is not None


def _spread(m: Machine, ref: int, value: Value, event: t.Make) -> None:
    for source in value.refs:
        obj = m.state.object(source)
        if obj.kind is Kind.STATE_DICT and event.kind == "dict":
            # `{**model.state_dict()}` holds the same tensors as the model.
            m.state.set_object(ref, obj._replace(text="{...}", flags=obj.flags | {"shallow"}))
            return
        for slot in m.state.slot_names(source):
            cell = m.state.cell(slot)
            if cell is not None:
                held = Value(cell.refs, cell.kind, cell.const, cell.marks)
                name = slot[1] if event.kind == "dict" else ANY_ELEMENT
                slots.bind_slot(m, (ref, name), held, event.site, weak=name == ANY_ELEMENT)


@handles(t.Collect)
def _collect(m: Machine, event: t.Collect) -> None:
    item = m.value(event.item)
    repeating.note_within(m, event)
    for ref in m.value(event.container).refs:
        own = _own_variable(m, event)
        fixed = isinstance(item.root, tuple) and not own and _is_fixed(m, item.root) and not _is_chosen(m, item)
        if fixed or (_from_outside(m, item) and not repeating.is_an_element(m, item, event.site)):
            container = naming.field_stored(m, event.container) or naming.text_of(m, event.container)
            call = m.index.given.get(event.container)
            if call is not None and m.dotted_of(call) in repeating.LAYERS:
                # What is put into a list of layers is one.
                memory.refine(m, item, Kind.MODULE, Sure.LIKELY)
            repeating.note_repeated(m, item, event.site, "comprehension", container, event.container)
        collecting.put(m, (ref, ANY_ELEMENT), item._replace(root=own or None), event.site, "append")
    generators.note_expression(m, event)


def _own_variable(m: Machine, event: t.Collect) -> str:
    """The name of the comprehension's own variable, if that is what it collects: another thing at every turn."""
    made = m.unit.definitions[event.item] if event.item >= 0 else None
    return made.name if isinstance(made, t.Load) and repeating.is_of_each_turn(m, made.name, event.site) else ""


def _is_fixed(m: Machine, slot: Slot) -> bool:
    """Whether a slot is the same one at every turn of a comprehension: a field, or an item by a constant."""
    by_name = slot[1].startswith((".", "['"))
    return (by_name or slot[1][1:-1].isdigit()) and not _is_turns(m, slot[0])


def _is_chosen(m: Machine, item: Value) -> bool:
    """Whether something is a part that a name or an expression picks, each turn another one: `self.values[i]`."""
    parts = [part for ref in item.refs for share in m.state.object(ref).shares for part in share.region[-1:]]
    return any(part.kind in ("name", "?") for part in parts)


def _is_turns(m: Machine, ref: int, depth: int = 3) -> bool:
    """Whether an object is the turn's own: what the comprehension's variable holds, or a field of that, or what a call
    has just returned, which nobody holds."""
    if not any(ref in m.state.refs_of(key) for key in m.state.holders.get(ref, ())):
        return True
    for key in m.state.holders.get(ref, ()):
        if isinstance(key, str) and "#" in key:
            return True
        if isinstance(key, tuple) and depth and _is_turns(m, key[0], depth - 1):
            return True
    return False


def _from_outside(m: Machine, item: Value) -> bool:
    """Whether a comprehension's item is what a name from outside of it holds, the same at every turn, and no part."""
    named = isinstance(item.root, str) and "#" not in item.root and not item.root.startswith("%")
    return named and item.root is not None and m.state.refs_of(item.root) == item.refs
