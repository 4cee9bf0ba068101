"""Registers, names and slots as the user wrote them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import ASKED, BY_NAME, NAMELESS, Cell, Key, Slot
from torchcopylint.flow.values import identity

if TYPE_CHECKING:
    from torchcopylint.flow.facts import Link
    from torchcopylint.flow.running.machine import Machine

_HOLDING_THE_SAME = frozenset({"builtins.dict", "builtins.list", "builtins.tuple", "builtins.zip", "collections.deque"})


def text_of(m: Machine, register: int) -> str:
    """A register's expression as the user wrote it, as far as names, attributes and plain indices go."""
    texts = m.index.texts
    text = texts.get(register)
    if text is None:
        text = texts[register] = _text_of(m, register)
    return text


def _text_of(m: Machine, register: int) -> str:
    if not 0 <= register < len(m.unit.definitions):
        return "..."
    event = m.unit.definitions[register]
    if event.__class__ is t.Load:
        return event.name.partition("#")[0] if not event.name.startswith("%") else "..."
    if event.__class__ is t.Attribute:
        return f"{text_of(m, event.base)}.{event.name}"
    if event.__class__ is t.Item:
        return f"{text_of(m, event.base)}[{index_text(m, event.subscript)}]"
    if event.__class__ is t.Unpack:
        return f"{text_of(m, event.value)}[{event.position if event.position >= 0 else '...'}]"
    if event.__class__ is t.Import:
        # In a function of another file, what it takes from its module.
        return event.dotted.rpartition("#")[2].rpartition(".")[2] or "..."
    if event.__class__ is t.Const:
        return repr(event.value) if event.value is not ... else "..."
    if event.__class__ is t.Operate and len(event.operands) == 1:
        return event.symbol + text_of(m, event.operands[0])
    if event.__class__ is t.Invoke:
        return f"{text_of(m, event.base)}.{event.name}({'...' if event.arguments else ''})"
    if isinstance(event, t.Call):
        return f"{text_of(m, event.function)}({'...' if event.arguments else ''})"
    return "..."


def spelling(m: Machine, register: int) -> str:
    """Like `text_of`, with arithmetic written out: for messages about what has no name."""
    if not 0 <= register < len(m.unit.definitions):
        return "..."
    event = m.unit.definitions[register]
    if event.__class__ is t.Operate and len(event.operands) == 2:
        left, right = (spelling(m, operand) for operand in event.operands)
        return f"{left} {event.symbol} {right}"
    if event.__class__ is t.Invoke:
        base = spelling(m, event.base)
        if isinstance(m.unit.definitions[event.base], t.Operate):
            base = f"({base})"
        return f"{base}.{event.name}({'...' if event.arguments else ''})"
    return text_of(m, register)


def formula(m: Machine, register: int) -> str:
    """Like `text_of`, with arithmetic in brackets: two that are equal are computed alike."""
    event = m.unit.definitions[register] if 0 <= register < len(m.unit.definitions) else None
    if isinstance(event, t.Operate) and len(event.operands) == 2:
        left, right = (_size(m, operand) or formula(m, operand) for operand in event.operands)
        return f"({left} {event.symbol} {right})"
    return text_of(m, register)


def _size(m: Machine, register: int) -> str:
    """How the size of a dimension is asked for, of what has a name: `len(x)`, `x.size(0)`, `x.shape[0]`."""
    event = m.unit.definitions[register] if 0 <= register < len(m.unit.definitions) else None
    if isinstance(event, t.Call) and len(event.arguments) == 1 and m.dotted_of(event) == "builtins.len":
        asked, way = event.arguments[0].register, "len({})"
    elif isinstance(event, t.Invoke) and event.name == "size" and len(event.arguments) == 1:
        asked, way = event.base, f"{{}}.shape[{m.value(event.arguments[0].register).const}]"
    elif isinstance(event, t.Item) and len(event.subscript) == 1 and isinstance(event.subscript[0], int):
        shape = m.unit.definitions[event.base]
        if not isinstance(shape, t.Attribute) or shape.name != "shape":
            return ""
        asked, way = shape.base, f"{{}}.shape[{m.value(event.subscript[0]).const}]"
    else:
        return ""
    text = text_of(m, asked)
    return way.format(text) if text.replace(".", "").isidentifier() and "None" not in way else ""


def field_set(m: Machine, register: int) -> str:
    """The field that a value is stored in at once (`self.rows = [...] * 3`), or an empty text; what is made of its
    elements holds the same ones (`self.sums = dict(zip(names, [...] * 3))`)."""
    event = m.consumer_of(register)
    while isinstance(event, t.Call | t.Invoke) and m.dotted_of(event) in _HOLDING_THE_SAME:
        event = m.consumer_of(event.out)
    return f"{text_of(m, event.base)}.{event.name}" if isinstance(event, t.StoreAttribute) else ""


def field_stored(m: Machine, register: int) -> str:
    """The field that what a comprehension makes is stored in, or an empty text: the comprehension uses it before."""
    stores = (event for event in m.index.of(t.StoreAttribute) if event.value == register)
    return next((f"{text_of(m, event.base)}.{event.name}" for event in stores), "")


def is_same_place(m: Machine, event: t.Bind | t.StoreAttribute | t.StoreItem, source: t.Event | None) -> bool:
    """Whether an event takes what a name, a field or an item holds that another one sets."""
    if isinstance(event, t.Bind):
        return isinstance(source, t.Load) and source.name == event.name
    if isinstance(event, t.StoreItem):
        if not isinstance(source, t.Item) or text_of(m, source.base) != text_of(m, event.base):
            return False
        return index_text(m, source.subscript) == index_text(m, event.subscript)
    if not isinstance(source, t.Attribute) or source.name != event.name:
        return False
    return text_of(m, source.base) == text_of(m, event.base)


def index_text(m: Machine, index: t.Index) -> str:
    """What stands in square brackets, as the user wrote it."""
    return ", ".join(_part_text(m, part) for part in index)


def _part_text(m: Machine, part: int | t.Slice) -> str:
    if isinstance(part, t.Slice):
        bounds = ["" if r == t.NO_REGISTER else text_of(m, r) for r in (part.lower, part.upper)]
        step = "" if part.step == t.NO_REGISTER else f":{text_of(m, part.step)}"
        return ":".join(bounds) + step
    return text_of(m, part)


def key_text(m: Machine, key: Key | None) -> str:
    """A name or slot as the user would write it; an empty text for what only the tape has a name for."""
    if isinstance(key, str):
        # `%1` stands for what a conditional expression has picked.
        return key.partition("#")[0] if not key.startswith("%") else ""
    if key.__class__ is tuple:
        owner = m.state.object(key[0]).text or "..."
        return owner + key[1].replace(ASKED, "[").replace(BY_NAME, "[")
    return ""


def is_asked(m: Machine, one: str, other: str, links: Sequence[Link]) -> bool:
    """Whether a unit asks if two places, which came to share by some links, stand for one thing: `if out is not x:`."""
    return one != other and any(
        {text_of(m, register) for register in question.registers} == {one, other} and identity.answers(question, links)
        for question in m.index.identities
    )


def place_of(m: Machine, slot: Slot, cell: Cell) -> Key:
    """The place that an element is read through: the slot, or, if its container has no name, where it came from."""
    if cell.origin is not None and m.state.object(slot[0]).text == NAMELESS:
        before = m.state.cell(cell.origin)
        if before is not None and before.refs == cell.refs:
            return cell.origin
    return slot
