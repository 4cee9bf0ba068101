"""What a function adds of its arguments to a sum, or puts into a list, that outlives the call.

`meter.update(loss)` adds the loss to a sum in a field, `log(history, rec=rec)` puts what it is passed by name into the
lists of a dictionary, and a closure adds to a name of the function around it. A summary says so, and a call does the
same to what the caller holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from torchcopylint.base.finding import Role
from torchcopylint.flow import tape as t
from torchcopylint.flow.autograd import grads
from torchcopylint.flow.facts import Inside
from torchcopylint.flow.graphs import runs
from torchcopylint.flow.interprocedural import handing
from torchcopylint.flow.model import ANY_ELEMENT, CONTAINERS, FIELD, TENSORS, UNKNOWN, Kind, Object, Slot, Sure, Value
from torchcopylint.flow.storages import slots
from torchcopylint.flow.tapes import outer, uses
from torchcopylint.flow.values import inside as places
from torchcopylint.flow.values import memory, naming

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

MAX_TERMS = 20
_ARITHMETIC = frozenset({"+", "-", "*", "/"})
_Store = t.StoreAttribute | t.StoreItem
Place = tuple[str, tuple[str, ...]]


class Added(NamedTuple):
    """The function adds the argument `added`, or what stands in it (`inside`), to the slot of `keeper`.

    The slot is the one that `path` leads to; without a path, `keeper` is a name from outside of the function, which is
    a sum itself. Where the argument is `collected`, it is put into the list that stands in the slot. `at` is where, for
    the file that the function is in.
    """

    keeper: str
    path: tuple[str, ...]
    added: str
    inside: bool
    collected: bool = False
    at: Inside | None = None


# -- what a function adds


def added(m: Machine, *, told: bool) -> tuple[Added, ...]:
    """The sums to which a unit adds an argument as it is, scaled at most: `self.sum += loss * n`. `told` is whether
    sites mean anything to who asks."""
    if not m.unit.parameters:
        return ()
    found: dict[Added, None] = {}
    stores: list[_Store] = [*m.index.of(t.StoreAttribute), *m.index.of(t.StoreItem)]
    for event in stores:
        place = _place(m, event)
        if place is None or (place[1][-1] == ANY_ELEMENT and m.world.has_sums_of_its_own):
            # What stands in the container may be of that class.
            continue
        found.update(dict.fromkeys(_sums(m, event, place)))
    for bound in m.index.of(t.Bind):
        if bound.name not in m.unit.bound and not bound.name.startswith("%") and m.unit.kind == "function":
            found.update(dict.fromkeys(_sums(m, bound, (outer.named(bound.name), ()))))
    found.update(dict.fromkeys(_collected(m)))
    return tuple(dict.fromkeys(found if told else (one._replace(at=None) for one in found)))


def _sums(m: Machine, event: _Store | t.Bind, place: Place) -> Iterator[Added]:
    """What is added to a place where it is set to what it held and something more."""
    made = m.unit.definitions[event.value] if event.value >= 0 else None
    if not isinstance(made, t.Augment | t.Operate) or made.symbol.rstrip("=") != "+":
        return
    if isinstance(made, t.Augment):
        terms = [made.value]
    else:
        own = [register for register in made.operands if _reads(m, register, event)]
        terms = [register for register in made.operands if register not in own] if own else []
    for name, inside in (found for register in terms for found in _terms(m, register)):
        if name != place[0]:
            yield Added(*place, name, inside, at=places.innermost(m, event.site, Role.KEPT))


def _collected(m: Machine) -> Iterator[Added]:
    """The lists into which a unit puts what stands in an argument: `self.series[name].append(value)`.

    Or, where the list is one of several, the argument itself, alone or with others.
    """
    for event in m.index.of(t.Invoke):
        if event.name == "append" and len(event.arguments) == 1:
            place = _list_kept(m, m.unit.definitions[event.base] if event.base >= 0 else None)
            if place is None:
                continue
            item = event.arguments[0].register
            made = m.unit.definitions[item] if item >= 0 else None
            items = t.operands(made) if isinstance(made, t.Make) else (item,)
            for name, inside in (term for one in items for term in _terms(m, one)):
                if name != place[0] and (inside or place[1][-1] == ANY_ELEMENT):
                    at = places.innermost(m, event.site, Role.KEPT)
                    yield Added(*place, name, inside, collected=True, at=at)


def _list_kept(m: Machine, event: t.Event | None) -> Place | None:
    """The argument, and the slots that lead from it to the list that an expression is: `self.rows`, `history[name]`."""
    element = isinstance(event, t.Item) or (isinstance(event, t.Invoke) and event.name == "setdefault")
    if isinstance(event, t.Item | t.Invoke) and element:
        event = m.unit.definitions[event.base] if event.base >= 0 else None
    steps = (ANY_ELEMENT,) if element else ()
    if element and (keeper := _argument(m, event)):
        return (keeper, steps)
    if not isinstance(event, t.Attribute) or not (keeper := _argument(m, m.unit.definitions[event.base])):
        return None
    return (keeper, (f".{event.name}", *steps))


def _place(m: Machine, event: _Store) -> Place | None:
    """The argument, and the slots that lead from it to what an event sets: a field, an item, an item of a field."""
    base = m.unit.definitions[event.base] if event.base >= 0 else None
    if keeper := _argument(m, base):
        return (keeper, (f".{event.name}",) if isinstance(event, t.StoreAttribute) else (ANY_ELEMENT,))
    if isinstance(event, t.StoreItem) and isinstance(base, t.Attribute):
        keeper = _argument(m, m.unit.definitions[base.base] if base.base >= 0 else None)
        return (keeper, (f".{base.name}", ANY_ELEMENT)) if keeper else None
    return None


def _argument(m: Machine, event: t.Event | None) -> str:
    """The parameter that an expression is, as the unit was given it; empty if it is none."""
    if event.__class__ is not t.Load or not any(one.name == event.name for one in m.unit.parameters):
        return ""
    own = m.unit.owner >= 0 and event.name == m.unit.first
    return event.name if own or not uses.bindings_before(m, event) else ""


def _reads(m: Machine, register: int, event: _Store | t.Bind) -> bool:
    """Whether a register holds what the place has held that an event sets."""
    made = m.unit.definitions[register] if register >= 0 else None
    if isinstance(event, t.Bind):
        return isinstance(made, t.Load) and made.name == event.name
    if isinstance(event, t.StoreAttribute):
        same = isinstance(made, t.Attribute) and made.name == event.name
        return same and isinstance(made, t.Attribute) and _is_one(m, made.base, event.base)
    if isinstance(made, t.Invoke) and made.name == "get" and made.arguments:
        text = naming.text_of(m, made.arguments[0].register)
    elif isinstance(made, t.Item):
        text = naming.index_text(m, made.subscript)
    else:
        return False
    return _is_one(m, made.base, event.base) and text == naming.index_text(m, event.subscript) and "..." not in text


def _is_one(m: Machine, one: int, other: int) -> bool:
    """Whether two registers hold the same name, or the same field, as the user wrote it."""
    text = naming.text_of(m, one)
    return "..." not in text and text == naming.text_of(m, other)


def _terms(m: Machine, register: int) -> list[tuple[str, bool]]:
    """The parameters that a term is made of by arithmetic alone, and whether it is something in them."""
    found: list[tuple[str, bool]] = []
    pending = [(register, False)]
    names = {parameter.name for parameter in m.unit.parameters[1 if m.unit.owner >= 0 else 0 :]}
    for _ in range(MAX_TERMS):
        if not pending:
            break
        current, inside = pending.pop()
        event = m.unit.definitions[current] if current >= 0 else None
        if isinstance(event, t.Operate) and event.symbol in _ARITHMETIC:
            pending += [(operand, inside) for operand in event.operands]
        elif isinstance(event, t.Load):
            bound = uses.bindings_before(m, event)
            if not bound and event.name in names:
                found.append((event.name, inside))
            elif len(bound) == 1 and uses.from_iteration(m, bound[0]):
                pending.append((_iterated(m, bound[0]), True))
        elif isinstance(event, t.Invoke) and event.name in ("items", "values") and inside:
            pending.append((event.base, True))
    return found


def _iterated(m: Machine, register: int) -> int:
    event = m.unit.definitions[register]
    while isinstance(event, t.Unpack):
        event = m.unit.definitions[event.value]
    return event.iterable if isinstance(event, t.Iterate) else t.NO_REGISTER


# -- what a call makes of it


def add(m: Machine, unit: int, items: tuple[Added, ...], bound: dict[str, Value], site: int) -> None:
    """A call of a unit adds its arguments, also those that it gathers, to the sums and lists that it keeps."""
    for item in items:
        places.note(m, site, Role.KEPT, item.at)
    for item in items if m.runs.sites or (items and m.world.runs_over_returned(m.unit)) else ():
        given = bound.get(item.added, UNKNOWN)
        values = _elements(m, given) if item.inside else [given]
        # Of several, what carries a graph is told of.
        values = sorted(values, key=lambda one: runs.carries(m, one.refs))
        values = [v for v in values if any(m.state.object(ref).kind in (*TENSORS, Kind.UNKNOWN) for ref in v.refs)]
        for value in values:
            text = naming.key_text(m, value.root) or m.state.object(value.refs[0]).text
            places.note(m, site, Role.KEPT, item.at, value, text)
        if not item.path:
            _to_name(m, unit, item.keeper, values, site)
            continue
        keeper = handing.keeper_of(m, bound, item.keeper, item.path[:-1])
        if keeper is None:
            continue
        slot: Slot = (keeper, item.path[-1])
        for value in values:
            if item.collected:
                listed = _list_of(m, slot, site)
                if listed is not None:
                    handing.collect(m, listed, [value], site)
                continue
            place = f"{m.state.object(keeper).text}{'' if item.path[-1].startswith('[') else item.path[-1]}"
            # The call may leave the same value in a field as well: the sum is told of where it is added to.
            places.note(m, site, Role.KEPT, item.at, value, place)
            made = _sum(m, slots.slot_value(m, slot), value, place, site, f"sum {item.path}")
            slots.bind_slot(m, slot, made, site)


def _to_name(m: Machine, unit: int, keeper: str, values: list[Value], site: int) -> None:
    """The function adds values to a name of what is around it: the caller's own name, or one that only it can see."""
    key = outer.key_of(m, unit, keeper)
    for value in values if key is not None else []:
        assert key is not None
        cell = m.state.cell(key)
        total = Value(cell.refs, cell.kind, cell.const, cell.marks, key) if cell is not None else UNKNOWN
        memory.bind(m, key, _sum(m, total, value, outer.told(keeper), site, f"sum {keeper}"), site)


def _sum(m: Machine, total: Value, value: Value, place: str, site: int, tag: str) -> Value:
    text = naming.key_text(m, value.root) or m.state.object(value.refs[0]).text
    runs.accumulate(m, site, total, value, place, text, "sum")
    made = grads.result_of(m, Object(Kind.TENSOR, Sure.LIKELY, text=place), [total, value], True)
    return memory.fresh(m, site, made, tag)


def _list_of(m: Machine, slot: Slot, site: int) -> int | None:
    """The list in a slot; where the program has put none there yet, a call that fills it does so."""
    held = slots.slot_value(m, slot)
    if len(held.refs) == 1 and m.state.object(held.refs[0]).kind is Kind.LIST:
        return held.refs[0]
    if slot[1] != ANY_ELEMENT or any(m.state.object(ref).kind is not Kind.UNKNOWN for ref in held.refs):
        return None
    made = Object(Kind.LIST, Sure.LIKELY, text=f"{m.state.object(slot[0]).text}[...]", owner=FIELD)
    value = memory.fresh(m, site, made, "list in a field")
    slots.bind_slot(m, slot, value, site)
    return value.refs[0]


def _elements(m: Machine, value: Value) -> list[Value]:
    return [
        slots.slot_value(m, slot)
        for ref in value.refs
        if m.state.object(ref).kind in CONTAINERS
        for slot in m.state.slot_names(ref)
        if slot[1].startswith("[")
    ]
