"""Methods that hand out what stands in a container of their object under a key, and that their arguments alone tell:
`return self.buffers[name, shape]`. Who asks twice for the same gets the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.interprocedural.attributes import attribute
from torchcopylint.flow.interprocedural.classes import SELF
from torchcopylint.flow.model import ASKED, BUFFERS, BY_NAME, CONTAINERS, LOCAL, Kind, Object, Sure
from torchcopylint.flow.program import memos
from torchcopylint.flow.storages import keeping, slots
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from torchcopylint.flow.model import Slot, Value
    from torchcopylint.flow.running.machine import Machine

_CHANGES = frozenset({"append", "clear", "extend", "insert", "pop", "popitem", "remove", "setdefault", "update"})
_LOOKS = frozenset({"get", "setdefault"})
MAX_EXPRESSION = 40
"""Of a longer expression it is not asked what it hangs on."""
_NAME = "\0"
"""Stands before a name in a key that is spelt out, if it hangs on what that holds."""
MAX_RESULTS = 2
"""What is made there on one path, and what stands there on another."""


def of(m: Machine) -> str:
    """The field of `self` that has, in a container, all that a method returns, or, behind a dot, that is that.

    If the method puts something there only on some paths, where nothing is as yet, and nobody else does; else nothing.
    """
    if m.unit.owner < 0 or not m.unit.parameters:
        return ""
    returned = [event.value for event in m.index.of(t.Return) if event.value >= 0]
    fields = {_field_of(m, register) for register in returned}
    field = fields.pop() if len(fields) == 1 else ""
    stores = [store.site for store in _stores(m, m.unit, field)]
    stores += [store.site for store in m.index.stores.get(field[1:], ()) if not store.augmented]
    caught = {event.site for tried in m.index.of(t.Try) for arm in tried.handlers for event in t.events(arm)}
    if not field or any(not uses.on_some_paths(m, site) and site not in caught for site in stores):
        return ""
    itself = field.startswith(".")
    return field if (stores or not itself) and _is_filled_here_alone(m, field[itself:], itself) else ""


def _field_of(m: Machine, register: int) -> str:
    """The field in whose container a value stands, under a key that is made of parameters."""
    event = m.unit.definitions[register]
    if isinstance(event, t.Load):
        binds = [bind.value for bind in m.index.binds.get(event.name, ()) if bind.value >= 0]
        looks = {_looked_up(m, m.unit.definitions[value]) for value in binds} - {""}
        stores = [store for store in m.index.of(t.StoreItem) if naming.text_of(m, store.value) == event.name]
        put = {_own_field(m, store.base) for store in stores if _is_key(m, store.subscript)}
        found = looks | put
        return found.pop() if len(found) == 1 and looks else ""
    return _looked_up(m, event)


def _looked_up(m: Machine, event: t.Event | None) -> str:
    if isinstance(event, t.Item):
        return _own_field(m, event.base) if _is_key(m, event.subscript) else ""
    if isinstance(event, t.Invoke) and event.name in _LOOKS and event.arguments:
        return _own_field(m, event.base) if _is_key(m, (event.arguments[0].register,)) else ""
    if isinstance(event, t.Attribute) and (name := _own_field(m, event.out)):
        return f".{name}"
    return ""


def _own_field(m: Machine, register: int) -> str:
    event = m.unit.definitions[register] if register >= 0 else None
    base = m.unit.definitions[event.base] if isinstance(event, t.Attribute) else None
    own = isinstance(base, t.Load) and base.name == m.unit.first
    return event.name if own and isinstance(event, t.Attribute) else ""


def _is_key(m: Machine, subscript: t.Index) -> bool:
    """Whether a key hangs on parameters, and on fields that only constructors set, so that it is told by them."""
    pending: list[int] = []
    for part in subscript:
        if isinstance(part, t.Slice):
            return False
        pending.append(part)
    names: set[str] = set()
    handed = {parameter.name for parameter in m.unit.parameters[1:]}
    told = False
    for _ in range(MAX_EXPRESSION):
        if not pending:
            return told
        event = m.unit.definitions[register] if (register := pending.pop()) >= 0 else None
        if isinstance(event, t.Load):
            binds = m.index.binds.get(event.name, ())
            told = told or event.name in handed
            if event.name == m.unit.first or len(binds) > 1 or (binds and event.name in handed):
                return False
            if binds and event.name not in names:
                names.add(event.name)
                pending.append(binds[0].value)
        elif isinstance(event, t.Attribute) and _own_field(m, register):
            if m.world.setters(event.name):
                return False
        elif isinstance(event, t.Attribute | t.Call | t.Invoke | t.Make | t.Text | t.Operate):
            pending += [register for register in t.operands(event) if register >= 0]
        elif isinstance(event, t.Item) and not any(isinstance(part, t.Slice) for part in event.subscript):
            pending += [event.base, *(part for part in event.subscript if isinstance(part, int))]
        elif not isinstance(event, t.Const):
            return False
    return False


def _stores(m: Machine, unit: t.Unit, field: str) -> Iterator[t.StoreItem]:
    for event in m.world.index(unit).of(t.StoreItem):
        made = unit.definitions[event.base]
        if isinstance(made, t.Attribute) and made.name == field and not event.augmented:
            yield event


def _is_filled_here_alone(m: Machine, field: str, itself: bool) -> bool:
    """Whether only the unit puts something into a field of that name, in the whole file, beside constructors; or sets
    it, if the field itself is meant."""
    if m.world.setters(field) - {m.unit.number} or itself:
        return itself and m.world.setters(field) == {m.unit.number}
    for unit in m.world.program.units:
        if unit.name == "__init__" or unit.number == m.unit.number:
            continue
        index = m.world.index(unit)
        changed = [event.base for event in index.of(t.Invoke) if event.name in _CHANGES]
        changed += [event.base for event in index.of(t.DeleteItem)]
        changed += [store.base for store in _stores(m, unit, field)]
        made = [unit.definitions[register] for register in changed if register >= 0]
        fields = [event for event in made if isinstance(event, t.Attribute) and event.name == field]
        if not all(keeping.is_strangers(m, unit, event.base) for event in fields):
            return False
    return True


def take(m: Machine, field: str, owner: Value | None, result: Value, site: int) -> Value:
    """The result of the call of such a method: of one object, the same under arguments that read the same."""
    if not field or owner is None or len(owner.refs) != 1 or len(result.refs) > MAX_RESULTS:
        return result
    key = _asked_for(m, site)
    unknown = all(m.state.object(ref).kind is Kind.UNKNOWN for ref in result.refs)
    if key is None or (unknown and m.state.object(owner.refs[0]).owner == SELF):
        # Of its own, a method knows what it has been lent, whatever that is.
        return result
    if field.startswith("."):
        return _itself(m, (owner.refs[0], field), result)
    held = attribute(m, owner, field, site, m.state.object(owner.refs[0]).text)
    if len(held.refs) != 1 or m.state.object(held.refs[0]).kind not in (*CONTAINERS, Kind.UNKNOWN):
        return result
    # What no name tells is the same for who calls the unit, too.
    step = f"{ASKED}{key}]" if _NAME not in key else f"{BY_NAME}{key.replace(_NAME, '')}]"
    return at(m, (held.refs[0], step), _like(m, result))


def _itself(m: Machine, slot: Slot, result: Value) -> Value:
    """What a field holds once the method has been called."""
    cell = m.state.cell(slot)
    if cell is not None and (len(cell.refs) != 1 or m.state.object(cell.refs[0]).kind not in (*BUFFERS, Kind.MODULE)):
        m.state.put(slot, None)
    return slots.slot_value(m, slot, _like(m, result))


def of_function(m: Machine, unit: int, name: str, result: Value, site: int) -> Value:
    """The result of a call of a function: if that is memoised, the same under arguments that read the same."""
    if len(result.refs) != 1 or not memos.is_memoised(m, unit):
        return result
    obj = m.state.object(result.refs[0])
    key, like = _asked_for(m, site), _like(m, result)
    if key is None or like is None:
        return result
    ref = m.number("memo", unit)
    if m.state.get(ref) is None:
        m.state.make(ref, Object(Kind.DICT, Sure.PROVEN, owner=LOCAL, text=name))
    held = slots.slot_value(m, (ref, f"[{key}]"), like)
    # A network that is made once is there to be trained.
    owner = obj.owner if obj.kind in BUFFERS else LOCAL
    if len(held.refs) == 1 and m.state.object(held.refs[0]).owner != owner:
        kept = m.state.object(held.refs[0])
        # It comes from the memo by this call, wherever it was made.
        shares = tuple(share._replace(site=site) if share.site < 0 else share for share in kept.shares)
        m.state.set_object(held.refs[0], kept._replace(owner=owner, text=obj.text, shares=shares))
    return held._replace(root=None)


def at(m: Machine, slot: Slot, like: Object | None = None) -> Value:
    """What stands at such a place."""
    first = m.state.cell(slot) is None
    held = slots.slot_value(m, slot, like)
    if first:
        m.state.set_object(held.refs[0], m.state.object(held.refs[0])._replace(text=naming.key_text(m, slot)))
    return held


def is_told(step: str) -> bool:
    """Whether a place in a container, by its key, is that of something which a call has asked for by itself."""
    return step.startswith(ASKED)


def _like(m: Machine, result: Value) -> Object | None:
    """What is known of a result, for another object."""
    found = [m.state.object(ref) for ref in result.refs]
    obj = next((one for one in found if one.kind is not Kind.UNKNOWN), None)
    if obj is None or obj.kind not in (*BUFFERS, Kind.MODULE, Kind.UNKNOWN):
        return None
    return obj._replace(shares=(), graph=frozenset(), saved=frozenset())


def _asked_for(m: Machine, site: int) -> str | None:
    """What a call asks for, as text, if its arguments tell; nothing if each turn of a loop may ask anew."""
    call = m.unit.definitions[m.index.calls[site]] if site in m.index.calls else None
    if not isinstance(call, t.Call | t.Invoke) or any(argument.stars for argument in call.arguments):
        return None
    texts = [
        f"{argument.keyword}={_spelt(m, argument.register)}" if argument.keyword else _spelt(m, argument.register)
        for argument in call.arguments
    ]
    return None if any("..." in text for text in texts) else ", ".join(texts)


_SIZES = frozenset({"shape", "dtype", "device", "ndim", "layout"})
_MEASURES = frozenset({"size", "dim", "numel", "len", "tuple", "list"})


def _spelt(m: Machine, register: int, *, whatever: bool = False) -> str:
    """A value as it is spelt, if that says what it is: a constant, or what is bound once. Of what a loop binds anew,
    size, kind and place are the same on each turn: `whatever` is whether nothing else is asked."""
    event = m.unit.definitions[register] if register >= 0 else None
    if isinstance(event, t.Const):
        return repr(event.value)
    if isinstance(event, t.Load):
        binds = m.index.binds.get(event.name, ())
        once = not binds or (len(binds) == 1 and not uses.loops_around(m, binds[0].site))
        name = event.name.partition("#")[0]
        return name if whatever else f"{_NAME}{name}" if once else "..."
    if isinstance(event, t.Attribute):
        if event.name in m.index.stores:
            return "..."
        return f"{_spelt(m, event.base, whatever=whatever or event.name in _SIZES)}.{event.name}"
    if isinstance(event, t.Make) and event.kind == "tuple":
        return f"({', '.join(_spelt(m, item, whatever=whatever) for item in event.items)})"
    if isinstance(event, t.Item) and all(isinstance(part, int) for part in event.subscript):
        parts = [_spelt(m, part) for part in event.subscript if isinstance(part, int)]
        return f"{_spelt(m, event.base, whatever=whatever)}[{', '.join(parts)}]"
    if isinstance(event, t.Invoke) and event.name in _MEASURES:
        parts = [_spelt(m, argument.register) for argument in event.arguments]
        return f"{_spelt(m, event.base, whatever=True)}.{event.name}({', '.join(parts)})"
    if isinstance(event, t.Call) and naming.text_of(m, event.function) in _MEASURES:
        sized = whatever or naming.text_of(m, event.function) == "len"
        parts = [_spelt(m, argument.register, whatever=sized) for argument in event.arguments]
        return f"{naming.text_of(m, event.function)}({', '.join(parts)})"
    return "..."
