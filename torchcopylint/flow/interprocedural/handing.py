"""What a function leaves of its arguments where it outlives the call: in a field or a container of another argument.

`Client(model)` keeps the model in a field, `buffer.push(obs)` puts the observation into a list, `meter.update(loss)`
adds the loss to a sum. A summary says so, and a call does the same to what the caller holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from torchcopylint.base.finding import Role
from torchcopylint.flow.autograd import frozen
from torchcopylint.flow.facts import Inside
from torchcopylint.flow.graphs import runs
from torchcopylint.flow.interprocedural import attributes
from torchcopylint.flow.model import (
    ANY_ELEMENT,
    CONTAINERS,
    FIELD,
    LOCAL,
    PLACEHOLDER,
    UNKNOWN,
    Fact,
    How,
    Kind,
    Object,
    Part,
    Share,
    Slot,
    Sure,
    Value,
)
from torchcopylint.flow.storages import brought, collecting, slots
from torchcopylint.flow.tapes import entries, outer, uses
from torchcopylint.flow.values import devices, inside, memory, naming

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

MAX_KEPT = 12
"""So many arguments that one function keeps are told of."""
MAX_DEPTH = 2
"""How deep what is kept is looked into: `self.storage.append((obs, action))`."""
_KEEPING = frozenset({How.STATE, How.VIEW, How.INDEX, How.ROW, How.DETACH, How.DATA, How.NUMPY, How.FROM_NUMPY})
"""Ways to share by which something new is kept that sits on the argument's memory."""
Paths = dict[int, tuple[str, tuple[str, ...]]]


class Kept(NamedTuple):
    """The function leaves the argument `kept`, or an alias of it (`how`), in the slot of `keeper` that `path` leads to.

    The slot is a field, or stands for the elements of a container. `kind` is that of the alias, `text` what it is
    called; `site` is where it was made, in this file, or -1. `always` is whether every call does so. `when` is the
    condition on which it is no copy, `shallow` whether it is a new dictionary of the same tensors. `at` is where it is
    put there, for the file that the function is in.
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
    at: Inside | None = None


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
            if element and kind not in (Kind.LIST, Kind.DICT):
                continue
            if not element and len(cell.refs) != 1:
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
    listed = _parameters_in(m, ref, paths) if share is None else None
    if listed is not None:
        share = listed
    elif share is None:
        entry = entries.dict_of(m, ref, paths)
        if entry is None or paths[entry[0].storage][0] == place[0]:
            return None
        share, when, kind, shallow = entry[0], entry[1], Kind.STATE_DICT, True
    how = None if ref == share.storage else How.STATE if shallow else share.how
    if how in (How.VIEW, How.INDEX, How.ROW) and obj.requires_grad is Fact.NO:
        # A view of what was detached, or one that was made with recording off.
        how = How.DETACH
    source, path = paths[share.storage]
    if path:
        return None
    made = share.site if told and how is not None else -1
    at = inside.innermost(m, site, Role.KEPT) if told else None
    return Kept(*place, source, how, kind, obj.text, made, not uses.on_some_paths(m, site), when, shallow, at)


def _parameters_in(m: Machine, ref: int, paths: Paths) -> Share | None:
    """How the elements of a list or dictionary are an argument's parameters, if that is all that stands there:
    `self.named = dict(model.named_parameters())`."""
    slots_of = m.state.slot_names(ref) if m.state.object(ref).kind in (Kind.LIST, Kind.DICT) else ()
    held = m.state.refs_of(slots_of[0]) if len(slots_of) == 1 and slots_of[0][1] == ANY_ELEMENT else ()
    found = [m.state.object(one) for one in held]
    if not found or any(obj.kind is not Kind.PARAMETER or len(obj.shares) != 1 for obj in found):
        return None
    shares = {obj.shares[0]._replace(of=-1, site=-1, sure=True, region=()) for obj in found}
    alike = len(shares) == 1 and found[0].shares[0].how is How.PARAMETERS and not found[0].shares[0].when
    return found[0].shares[0] if alike and found[0].shares[0].storage in paths else None


def _held(m: Machine, refs: Iterable[int], depth: int) -> Iterator[int]:
    for ref in refs:
        yield ref
        obj = m.state.object(ref)
        made = obj.kind is Kind.INSTANCE and obj.owner in ("", LOCAL)
        if depth and (made or obj.kind in (Kind.TUPLE, Kind.LIST, Kind.DICT)):
            for slot in m.state.slot_names(ref):
                yield from _held(m, m.state.refs_of(slot), depth - 1)


def _of_argument(m: Machine, ref: int, keeper: str, paths: Paths) -> Share | None:
    """The one share by which an object surely sits on another argument than the one that keeps it."""
    obj = m.state.object(ref)
    every = obj.shares
    if obj.kind is Kind.MODULE and ref in paths:
        # A layer that is handed over is a part of who keeps it by now.
        every = tuple(share for share in every if share.storage == ref or paths.get(share.storage, ("",))[0] != keeper)
    shares = [share for share in every if share.storage in paths]
    if len(shares) != 1 or not shares[0].sure or shares[0].when or len(every) > 1:
        return None
    same = ref == shares[0].storage
    return shares[0] if paths[shares[0].storage][0] != keeper and (same or shares[0].how in _KEEPING) else None


# -- what a call makes of it


def take(m: Machine, unit: int, items: tuple[Kept, ...], bound: dict[str, Value], site: int) -> None:
    """A call of a unit leaves its arguments where that keeps them."""
    collected: dict[int, list[tuple[Value, str]]] = {}
    # What goes into a container as well as into a field is told of where the container gets it.
    for item in sorted(items, key=lambda one: one.path[-1] != ANY_ELEMENT):
        if outer.is_outer(item.keeper):
            held = outer.list_of if item.path == (ANY_ELEMENT,) else outer.value_of
            bound = {**bound, item.keeper: held(m, unit, item.keeper)}
        keeper = keeper_of(m, bound, item.keeper, item.path[:-1])
        value = bound.get(item.kept, UNKNOWN)
        inside.note(m, site, Role.KEPT, item.at)
        if keeper is None or not value.refs or (item.when and devices.is_away(m, value)):
            continue
        text = naming.key_text(m, value.root) or m.state.object(value.refs[0]).text
        inside.note(m, site, Role.KEPT, item.at, value, text)
        if item.how is not None:
            value = _alias(m, item, value, keeper, site)
        if item.path[-1] == ANY_ELEMENT:
            collected.setdefault(keeper, []).append((value, text))
        else:
            _keep_in_field(m, (keeper, item.path[-1]), value, site, always=item.always)
    for keeper, held_there in collected.items():
        values, names = zip(*held_there, strict=True)
        collect(m, keeper, list(values), site, names)


def _alias(m: Machine, item: Kept, value: Value, keeper: int, site: int) -> Value:
    """What a function makes of an argument and keeps; made inside of the function, if that is of this file."""
    made = Object(item.kind, Sure.LIKELY, text=f"{m.state.object(keeper).text}{item.path[-1]}")
    if item.how is How.PARAMETERS and item.kind in CONTAINERS:
        return _list_of_parameters(m, made, value, site)
    if item.how in (How.STATE, How.DETACH):
        made = made._replace(leaf=Fact.YES, requires_grad=Fact.NO)
    if item.how in (How.VIEW, How.INDEX, How.ROW) and len(value.refs) == 1:
        # A view hangs on the graph of what it is a view of.
        of = m.state.object(value.refs[0])
        leaf = Fact.NO if of.requires_grad > 0 else Fact.UNKNOWN
        made = made._replace(requires_grad=of.requires_grad, leaf=leaf, graph=of.graph)
    if item.shallow:
        made = made._replace(flags=made.flags | {"shallow"})
    at = item.site if item.site >= 0 else site
    tag, how = f"kept by {site}", item.how or How.VIEW
    return memory.alias(m, value._replace(root=None), at, how, made, when=item.when, tag=tag)


def _list_of_parameters(m: Machine, made: Object, module: Value, site: int) -> Value:
    """A list or dictionary of all parameters of a module."""
    trained = Fact.UNKNOWN if any(frozen.is_switched(m, ref) for ref in module.refs) else Fact.LIKELY
    if any(m.state.object(ref).requires_grad is Fact.NO for ref in module.refs):
        trained = Fact.NO
    one = Object(Kind.PARAMETER, Sure.LIKELY, leaf=Fact.YES, requires_grad=trained, flags=frozenset({PLACEHOLDER}))
    one = one._replace(text=f"a parameter of {m.state.object(module.refs[0]).text}")
    tag = f"kept by {site} {made.text}"
    each = memory.alias(
        m, module._replace(root=None), site, How.PARAMETERS, one, region=(Part("each"),), tag=f"{tag}[*]"
    )
    shared = m.state.object(each.refs[0])
    m.state.set_object(each.refs[0], shared._replace(shares=tuple(s._replace(sure=True) for s in shared.shares)))
    held = memory.fresh(m, site, made._replace(owner=FIELD), tag)
    slots.bind_slot(m, (held.refs[0], ANY_ELEMENT), each._replace(root=None), site)
    return held


def collect(m: Machine, keeper: int, values: list[Value], site: int, names: Sequence[str] = ()) -> None:
    """Values, of the `names` that the caller has for them, are put into a container, as a tuple if they are several."""
    obj = m.state.object(keeper)
    if obj.kind is Kind.LIST:
        # Other methods of the object that it belongs to hand out what stands in it.
        m.state.set_object(keeper, obj._replace(owner=FIELD))
    for position, value in enumerate(values):
        text = names[position] if names else naming.key_text(m, value.root) or m.state.object(value.refs[0]).text
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


def keeper_of(m: Machine, bound: dict[str, Value], parameter: str, path: tuple[str, ...]) -> int | None:
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
