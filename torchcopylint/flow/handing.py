"""What a function leaves of its arguments where it outlives the call: in a field or a container of another argument.

`Client(model)` keeps the model in a field, `buffer.push(obs)` puts the observation into a list, `meter.update(loss)`
adds the loss to a sum. A summary says so, and a call does the same to what the caller holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from torchcopylint.flow import (
    attributes,
    brought,
    collecting,
    devices,
    entries,
    grads,
    keeping,
    memory,
    naming,
    outer,
    runs,
    slots,
    uses,
)
from torchcopylint.flow import tape as t
from torchcopylint.flow.model import (
    ANY_ELEMENT,
    CONTAINERS,
    FIELD,
    TENSORS,
    UNKNOWN,
    Fact,
    How,
    Kind,
    Object,
    Share,
    Slot,
    Sure,
    Value,
)

if TYPE_CHECKING:
    from torchcopylint.flow.machine import Machine
    from torchcopylint.flow.sites import Arguments

MAX_KEPT = 12
"""So many arguments that one function keeps are told of."""
MAX_DEPTH = 2
"""How deep what is kept is looked into: `self.storage.append((obs, action))`."""
MAX_TERMS = 20
_ARITHMETIC = frozenset({"+", "-", "*", "/"})
_KEEPING = frozenset({How.STATE, How.VIEW, How.INDEX, How.ROW, How.DETACH, How.DATA, How.NUMPY, How.FROM_NUMPY})
"""Ways to share by which something new is kept that sits on the argument's memory."""
Paths = dict[int, tuple[str, tuple[str, ...]]]


class Kept(NamedTuple):
    """The function leaves the argument `kept`, or an alias of it (`how`), in the slot of `keeper` that `path` leads to.

    The slot is a field, or stands for the elements of a container. `kind` is that of the alias, `text` what it is
    called; `site` is where it was made, in this file, or -1. `always` is whether every call does so. `when` is the
    condition on which it is no copy, `shallow` whether it is a new dictionary of the same tensors.
    """

    keeper: str
    path: tuple[str, ...]
    kept: str
    how: How | None
    kind: Kind
    text: str
    site: int
    always: bool
    when: str = ""
    shallow: bool = False


class Added(NamedTuple):
    """The function adds the argument `added`, or what stands in it (`inside`), to the slot of `keeper`.

    Where it is `collected`, it is put into the list that stands in the slot.
    """

    keeper: str
    path: tuple[str, ...]
    added: str
    inside: bool
    collected: bool = False


# -- what a function keeps


def kept(m: Machine, paths: Paths, *, told: bool) -> tuple[Kept, ...]:
    """What a unit that has been run keeps of its arguments; `told` is whether sites mean anything to who asks."""
    found: dict[Kept, None] = {}
    outside = {} if m.unit.number == 0 or not told else outer.keepers(m)
    for keeper, (parameter, path) in {**paths, **outside}.items():
        for slot in m.state.slot_names(keeper):
            cell = m.state.cell(slot)
            if cell is None or cell.site < 0 or len(found) >= MAX_KEPT:
                continue
            element = slot[1].startswith("[")
            kind = m.state.object(keeper).kind
            if element and kind is not Kind.LIST and (kind is not Kind.DICT or slot[1] == ANY_ELEMENT):
                continue
            if not element and (len(cell.refs) != 1 or _is_set_elsewhere(m, slot[1][1:], parameter)):
                continue
            for ref in _held(m, cell.refs, MAX_DEPTH if element else 0):
                item = _kept(m, ref, (parameter, (*path, slot[1])), cell.site, paths, told=told)
                if item is not None:
                    found[item] = None
    return tuple(found)


def _kept(
    m: Machine, ref: int, place: tuple[str, tuple[str, ...]], site: int, paths: Paths, *, told: bool
) -> Kept | None:
    """What an object that stands in a place of the keeper, since a site, is of another argument."""
    share, when, obj = _of_argument(m, ref, place[0], paths), "", m.state.object(ref)
    kind, shallow = obj.kind, False
    if share is None:
        entry = entries.dict_of(m, ref, paths)
        if entry is None or paths[entry[0].storage][0] == place[0]:
            return None
        share, when, kind, shallow = entry[0], entry[1], Kind.STATE_DICT, True
    how = None if ref == share.storage else How.STATE if shallow else share.how
    source, inside = paths[share.storage]
    if inside:
        return None
    made = share.site if told and how is not None else -1
    return Kept(*place, source, how, kind, obj.text, made, not uses.on_some_paths(m, site), when, shallow)


def _held(m: Machine, refs: Iterable[int], depth: int) -> Iterator[int]:
    for ref in refs:
        yield ref
        if depth and m.state.object(ref).kind in (Kind.TUPLE, Kind.LIST, Kind.DICT):
            for slot in m.state.slot_names(ref):
                yield from _held(m, m.state.refs_of(slot), depth - 1)


def _of_argument(m: Machine, ref: int, keeper: str, paths: Paths) -> Share | None:
    """The one share by which an object surely sits on another argument than the one that keeps it."""
    obj = m.state.object(ref)
    shares = [share for share in obj.shares if share.storage in paths]
    if len(shares) != 1 or not shares[0].sure or shares[0].when or len(obj.shares) > 1:
        return None
    same = ref == shares[0].storage
    return shares[0] if paths[shares[0].storage][0] != keeper and (same or shares[0].how in _KEEPING) else None


def _is_set_elsewhere(m: Machine, name: str, keeper: str) -> bool:
    """Whether another unit of the file sets a field of that name, so that it may hold something else by then.

    Where the `keeper` is a method's own object, what a class that has nothing to do with its class sets in its own
    objects is another field.
    """
    others = [m.world.program.units[unit] for unit in m.world.setters(name) if unit != m.unit.number]
    own = m.unit.owner >= 0 and keeper == m.unit.first
    return any(
        event.name == name and not event.augmented and not (own and keeping.is_strangers(m, unit, event.base))
        for unit in others
        for event in m.world.index(unit).of(t.StoreAttribute)
    )


def added(m: Machine) -> tuple[Added, ...]:
    """The sums in fields to which a unit adds an argument as it is, scaled at most: `self.sum += loss * n`."""
    if m.unit.owner < 0 or not m.unit.parameters:
        return ()
    found: dict[Added, None] = {}
    stores: list[t.StoreAttribute | t.StoreItem] = [*m.index.of(t.StoreAttribute), *m.index.of(t.StoreItem)]
    for event in stores:
        made = m.unit.definitions[event.value] if event.value >= 0 else None
        place = _place(m, event)
        if place is None or not isinstance(made, t.Augment | t.Operate) or made.symbol.rstrip("=") != "+":
            continue
        if len(place) > 1 and m.world.has_sums_of_its_own:
            # What stands in the container may be of that class.
            continue
        if isinstance(made, t.Augment):
            terms = [made.value]
        else:
            own = [register for register in made.operands if _reads(m, register, event)]
            terms = [register for register in made.operands if register not in own] if own else []
        for name, inside in (found for register in terms for found in _terms(m, register)):
            found[Added(m.unit.first, place, name, inside)] = None
    found.update(dict.fromkeys(_collected(m)))
    return tuple(found)


def _collected(m: Machine) -> Iterator[Added]:
    """The lists in fields into which a unit puts what stands in an argument: `self.series[name].append(value)`.

    Or, where the list is one of several in a field, the argument itself, alone or with others.
    """
    for event in m.index.of(t.Invoke):
        if event.name == "append" and len(event.arguments) == 1:
            place = _list_in_field(m, m.unit.definitions[event.base] if event.base >= 0 else None)
            item = event.arguments[0].register
            made = m.unit.definitions[item] if item >= 0 else None
            items = t.operands(made) if isinstance(made, t.Make) else (item,)
            for name, inside in (term for one in items for term in _terms(m, one)) if place else ():
                if inside or len(place) > 1:
                    yield Added(m.unit.first, place, name, inside, collected=True)


def _list_in_field(m: Machine, event: t.Event | None) -> tuple[str, ...]:
    """The slots that lead from `self` to the list that an expression is; empty if it is none of a field."""
    element = isinstance(event, t.Item) or (isinstance(event, t.Invoke) and event.name == "setdefault")
    if isinstance(event, t.Item | t.Invoke) and element:
        event = m.unit.definitions[event.base] if event.base >= 0 else None
    if not isinstance(event, t.Attribute) or not _is_self(m, m.unit.definitions[event.base]):
        return ()
    return (f".{event.name}", ANY_ELEMENT) if element else (f".{event.name}",)


def _place(m: Machine, event: t.StoreAttribute | t.StoreItem) -> tuple[str, ...] | None:
    """The slots that lead from `self` to what an event sets, if it sets a field of it or an item of a field."""
    base = m.unit.definitions[event.base] if event.base >= 0 else None
    if isinstance(event, t.StoreAttribute):
        return (f".{event.name}",) if _is_self(m, base) else None
    if isinstance(base, t.Attribute) and _is_self(m, m.unit.definitions[base.base] if base.base >= 0 else None):
        return (f".{base.name}", "[*]")
    return None


def _is_self(m: Machine, event: t.Event | None) -> bool:
    return isinstance(event, t.Load) and event.name == m.unit.first


def _reads(m: Machine, register: int, event: t.StoreAttribute | t.StoreItem) -> bool:
    made = m.unit.definitions[register] if register >= 0 else None
    same = isinstance(event, t.StoreAttribute) and isinstance(made, t.Attribute) and made.name == event.name
    return same and isinstance(made, t.Attribute) and _is_self(m, m.unit.definitions[made.base])


def _terms(m: Machine, register: int) -> list[tuple[str, bool]]:
    """The parameters that a term is made of by arithmetic alone, and whether it is something in them."""
    found: list[tuple[str, bool]] = []
    pending = [(register, False)]
    names = {parameter.name for parameter in m.unit.parameters[1:]}
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


def take(m: Machine, unit: int, items: tuple[Kept, ...], bound: dict[str, Value], site: int) -> None:
    """A call of a unit leaves its arguments where that keeps them."""
    collected: dict[int, list[Value]] = {}
    for item in items:
        if outer.is_outer(item.keeper):
            bound = {**bound, item.keeper: outer.value_of(m, unit, item.keeper)}
        keeper = _keeper(m, bound, item.keeper, item.path[:-1])
        value = bound.get(item.kept, UNKNOWN)
        if keeper is None or not value.refs or (item.when and devices.is_away(m, value)):
            continue
        if item.how is not None:
            value = _alias(m, item, value, keeper, site)
        if item.path[-1] == ANY_ELEMENT:
            collected.setdefault(keeper, []).append(value)
        else:
            _keep_in_field(m, (keeper, item.path[-1]), value, site, always=item.always)
    for keeper, values in collected.items():
        _collect(m, keeper, values, site)


def _alias(m: Machine, item: Kept, value: Value, keeper: int, site: int) -> Value:
    """What a function makes of an argument and keeps; made inside of the function, if that is of this file."""
    made = Object(item.kind, Sure.LIKELY, text=f"{m.state.object(keeper).text}{item.path[-1]}")
    if item.how in (How.STATE, How.DETACH):
        made = made._replace(leaf=Fact.YES, requires_grad=Fact.NO)
    if item.shallow:
        made = made._replace(flags=made.flags | {"shallow"})
    at = item.site if item.site >= 0 else site
    tag, how = f"kept by {site}", item.how or How.VIEW
    return memory.alias(m, value._replace(root=None), at, how, made, when=item.when, tag=tag)


def _collect(m: Machine, keeper: int, values: list[Value], site: int) -> None:
    """Values are put into a container together, as a tuple if they are several."""
    obj = m.state.object(keeper)
    if obj.kind is Kind.LIST:
        # Other methods of the object that it belongs to hand out what stands in it.
        m.state.set_object(keeper, obj._replace(owner=FIELD))
    for value in values:
        text = naming.key_text(m, value.root) or m.state.object(value.refs[0]).text
        part, text = brought.by(m, value, text)
        runs.accumulate(m, site, Value((keeper,), obj.kind), part, obj.text, text, "collected")
    together = values[0]
    if len(values) > 1:
        together = memory.fresh(m, site, Object(Kind.TUPLE, Sure.PROVEN, text="..."), "kept together")
        for position, value in enumerate(values):
            slots.bind_slot(m, (together.refs[0], f"[{position}]"), value, site)
    collecting.put(m, (keeper, ANY_ELEMENT), together, site, "append")


def _keep_in_field(m: Machine, slot: Slot, value: Value, site: int, *, always: bool) -> None:
    obj = m.state.object(slot[0])
    if obj.kind is Kind.MODULE:
        slots.register_module(m, slot[0], obj, slot[1][1:], value, site)
    slots.bind_slot(m, slot, value._replace(root=None), site, weak=not always)


def rest(unit: t.Unit, bound: dict[str, Value], arguments: Arguments) -> dict[str, list[Value]]:
    """What a call passes beside the plain parameters, by the name of the parameter that gathers it."""
    plain = sum(parameter.kind == "plain" for parameter in unit.parameters)
    named = [value for key, value in arguments.keywords.items() if key not in bound]
    beside = {"star": list(arguments.positional[plain:]), "stars": named}
    return {parameter.name: beside[parameter.kind] for parameter in unit.parameters if parameter.kind in beside}


def with_rest(
    m: Machine, unit: t.Unit, items: tuple[Kept, ...], bound: dict[str, Value], arguments: Arguments, site: int
) -> dict[str, Value]:
    """The arguments of a call by name, with the tuple of those that a function gathers and keeps: `push(*args)`."""
    gathered = {parameter.name for parameter in unit.parameters if parameter.kind == "star"}
    wanted = {item.kept for item in items if item.how is None} & gathered
    if not wanted or "*" in arguments.keywords:
        return bound
    held = rest(unit, bound, arguments)
    for name in wanted:
        made = memory.fresh(m, site, Object(Kind.TUPLE, Sure.PROVEN, text="..."), f"rest {name}")
        for position, value in enumerate(held[name]):
            slots.bind_slot(m, (made.refs[0], f"[{position}]"), value, site)
        bound = {**bound, name: made}
    return bound


def add(
    m: Machine, items: tuple[Added, ...], bound: dict[str, Value], gathered: dict[str, list[Value]], site: int
) -> None:
    """A call adds its arguments, also those that the function gets `gathered`, to the sums and lists that it keeps."""
    if not m.runs.sites:
        return
    for item in items:
        given = bound.get(item.added, UNKNOWN)
        keeper = _keeper(m, bound, item.keeper, item.path[:-1])
        if keeper is None:
            continue
        values = gathered.get(item.added, _elements(m, given)) if item.inside else [given]
        # Of several, what carries a graph is told of.
        for value in sorted(values, key=lambda one: runs.carries(m, one.refs)):
            if not any(m.state.object(ref).kind in (*TENSORS, Kind.UNKNOWN) for ref in value.refs):
                continue
            if item.collected:
                listed = _list_of(m, (keeper, item.path[-1]), site)
                if listed is not None:
                    _collect(m, listed, [value], site)
                continue
            slot: Slot = (keeper, item.path[-1])
            text = naming.key_text(m, value.root) or m.state.object(value.refs[0]).text
            total = slots.slot_value(m, slot)
            place = f"{m.state.object(keeper).text}{'' if item.path[-1].startswith('[') else item.path[-1]}"
            runs.accumulate(m, site, total, value, place, text, "sum")
            made = grads.result_of(m, Object(Kind.TENSOR, Sure.LIKELY, text=place), [total, value], True)
            slots.bind_slot(m, slot, memory.fresh(m, site, made, f"sum {item.path}"), site)


def _keeper(m: Machine, bound: dict[str, Value], parameter: str, path: tuple[str, ...]) -> int | None:
    """The object of the caller's that keeps an argument, if it is known which one."""
    value = bound.get(parameter, UNKNOWN)
    for step in path:
        if len(value.refs) != 1:
            return None
        if step.startswith("."):
            value = attributes.attribute(m, value, step[1:], -1, m.state.object(value.refs[0]).text)
        else:
            value = slots.slot_value(m, (value.refs[0], step))
    return value.refs[0] if len(value.refs) == 1 else None


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
