"""Parts of modules that are set after an optimizer was built elsewhere: by a function, or by another method."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from torchcopylint.base.finding import Role
from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import Inside, OptimizerHeld, PartReplaced
from torchcopylint.flow.model import ARGUMENT, LOCAL, Fact, How, Kind, Object, Part, Region, Slot, Sure, Value
from torchcopylint.flow.program import ownership, wholes
from torchcopylint.flow.storages import aliasing
from torchcopylint.flow.tapes import exclusion, uses
from torchcopylint.flow.values import inside, naming

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchcopylint.flow.facts import Relation
    from torchcopylint.flow.running.machine import Machine
    from torchcopylint.flow.tapes.index import UnitIndex

_NOT_TOLD = frozenset({"__init__", "forward", "__call__"})
"""Functions of which no caller is told that they set parts: they begin with them, or make them when first needed."""


MAX_DEPTH = 3
"""How deep a new module is looked into for what it was made of."""


class Replaced(NamedTuple):
    """A function sets `part` of a module that it is handed as `parameter`, or of what is found `within` that, whichever
    way it goes. `text` is how the part is called, behind the name of the module; `at` is where, for the file that the
    function is in."""

    parameter: str
    part: Part
    sure: Sure
    within: Region = ()
    text: str = ""
    at: Inside | None = None


def of(m: Machine, *, told: bool) -> tuple[Replaced, ...]:
    """What a unit that has been run replaces of its arguments; `told` is whether sites mean anything to who asks."""
    if m.unit.name in _NOT_TOLD:
        return ()
    found: dict[Replaced, None] = {}
    for site, (base, part, text, sure) in m.owners.replaced.items():
        if uses.on_some_paths(m, site) and not exclusion.is_told_by_itself(m, site, text):
            continue
        for owner, within in _handed(m, base):
            name = m.state.object(owner).text
            if text.startswith(name):
                at = inside.innermost(m, site, Role.KEPT) if told else None
                found[Replaced(name, part, sure, within, text.removeprefix(name), at)] = None
        field = _field_of_plain(m, base) if part.kind == "field" else ""
        if field and not any(one.part == part for one in found):
            at = inside.innermost(m, site, Role.KEPT) if told else None
            way = (Part("field", field),)
            found[Replaced(m.unit.first, part, sure, way, f".{field}.{part.value}", at)] = None
    return tuple(found)


def _field_of_plain(m: Machine, base: int) -> str:
    """The field of a plain object of the file that holds a module: `self.net.fc = nn.Linear(2, 2)`. Where there is an
    optimizer in another field, that is a matter of the class."""
    if m.unit.owner < 0 or m.world.class_kind(m.unit.owner)[0] is not Kind.INSTANCE:
        return ""
    held = any(one.kind is Kind.OPTIMIZER for one in m.world.fields(m.unit.owner).values())
    return "" if held else aliasing.field_of(m, frozenset({base}))


def _handed(m: Machine, base: int) -> Iterator[tuple[int, Region]]:
    """The parameter that a module is, or that it is found in, and where there."""
    obj = m.state.object(base)
    inside = [(s.storage, s.region) for s in obj.shares if s.how is How.FIELD and s.sure and s.region]
    for owner, within in [(base, ()), *inside]:
        one = m.state.object(owner)
        if one.owner in (ARGUMENT, "self") and owner == m.number("argument", one.text):
            yield owner, within


def by_call(m: Machine, items: tuple[Replaced, ...], bound: dict[str, Value], site: int) -> None:
    """A call replaces parts of the modules that it is given; of several, the first is told."""
    first: tuple[str, int, Sure] | None = None
    for item in items:
        inside.note(m, site, Role.KEPT, item.at)
        value = bound.get(item.parameter)
        if value is None or len(value.refs) != 1:
            continue
        ref, within = _module_in(m, value.refs[0], item.within)
        if m.state.object(ref).kind is Kind.MODULE:
            text = f"{m.state.object(value.refs[0]).text}{item.text}"
            ownership.note_part(m, ref, item.part, text, item.sure, site, frozenset(), within)
            first = first or m.owners.lateness.get(site)
            m.owners.lateness.update({site: first} if first else {})


def _module_in(m: Machine, ref: int, within: Region) -> tuple[int, Region]:
    """The module that a plain object holds (`pruner.model`), and the way from there; a module itself as it is."""
    while within and within[0].kind == "field" and m.state.object(ref).kind is Kind.INSTANCE:
        held = m.state.refs_of((ref, f".{within[0].value}"))
        if len(held) != 1:
            break
        ref, within = held[0], within[1:]
    return ref, within


def found(m: Machine) -> Iterator[Relation]:
    """What a unit that has been run says of parts and optimizers in fields of `self`."""
    if m.unit.owner < 0 or not m.unit.parameters:
        return
    if m.unit.name == "__init__":
        yield from _held(m)
        return
    me = m.number("argument", m.unit.first)
    for site, (base, part, text, sure) in sorted(m.owners.replaced.items()):
        field = aliasing.field_of(m, frozenset({base})) or _field_of_whole(m, base)
        new = part.kind == "field" and base == me and _is_made_here(m, (me, f".{part.value}"))
        if (field or (new and not _tells_optimizer(m))) and (
            exclusion.is_told_by_kind(m, site) or exclusion.is_told_by_itself(m, site, text)
        ):
            yield PartReplaced(site, text, field, m.unit.name, m.unit.qualname, sure)
    yield from _leaves_replaced(m, me)


def _leaves_replaced(m: Machine, me: int) -> Iterator[PartReplaced]:
    """The tensors that a unit makes itself and puts into fields of `self`: where a leaf was that an optimizer steps on,
    none is, or another one."""
    if _tells_optimizer(m):
        return
    for store in m.index.of(t.StoreAttribute):
        slot = (me, f".{store.name}")
        made = m.value(store.value).refs
        if store.augmented or m.value(store.base).refs != (me,) or m.state.refs_of(slot) != m.value(store.value).refs:
            continue
        tensors = [m.state.object(ref) for ref in _tensors_in(m, made[0])] if len(made) == 1 else []
        sure = min((one.sure for one in tensors), default=Sure.NOT)
        if sure and _is_made_here(m, slot) and not uses.on_some_paths(m, store.site):
            text = f"{naming.text_of(m, store.base)}.{store.name}"
            yield PartReplaced(store.site, text, "", m.unit.name, m.unit.qualname, sure, leaf=True)


def _tensors_in(m: Machine, ref: int) -> tuple[int, ...]:
    """A tensor itself, or those of a list or tuple that holds nothing else."""
    obj = m.state.object(ref)
    held = (ref,) if obj.kind not in (Kind.LIST, Kind.TUPLE) else tuple(_parts_of(m, (ref,), 1))
    return held if all(m.state.object(one).kind is Kind.TENSOR for one in held) else ()


def _field_of_whole(m: Machine, base: int) -> str:
    """The field of `self` with the module that something is a layer of: `for layer in self.model.modules()`."""
    wholes = {share.storage for share in m.state.object(base).shares if share.how is How.FIELD}
    return aliasing.field_of(m, frozenset(wholes)) if len(wholes) == 1 else ""


def _tells_optimizer(m: Machine) -> bool:
    return any(event.__class__ is t.Attribute and event.name == "param_groups" for event in m.unit.definitions)


def _is_made_here(m: Machine, slot: Slot) -> bool:
    """Whether a field holds what the unit has made itself: no wrapper of what it held before, and nothing handed in.

    A parameter is another one than before, whatever it was made of.
    """
    objects = [m.state.object(ref) for ref in m.state.refs_of(slot)]
    if len(objects) != 1 or objects[0].kind is Kind.PARAMETER:
        return len(objects) == 1
    parts = [objects[0], *(m.state.object(ref) for ref in _parts_of(m, m.state.refs_of(slot), MAX_DEPTH))]
    sources = {s.storage for part in parts for s in part.shares if s.how is not How.FIELD}
    return all(m.state.object(storage).owner in ("", LOCAL) for storage in sources)


def _parts_of(m: Machine, refs: tuple[int, ...], depth: int) -> Iterator[int]:
    """What a new module was made of: `nn.Sequential(self.net, head)`."""
    for ref in refs if depth else ():
        for slot in m.state.slot_names(ref):
            inner = m.state.refs_of(slot)
            yield from inner
            yield from _parts_of(m, inner, depth - 1)


def _held(m: Machine) -> Iterator[OptimizerHeld]:
    """The optimizers that a constructor leaves in fields, over the modules in other fields, and nobody exchanges."""
    me = m.number("argument", m.unit.first)
    calls = uses.own_calls(m)
    set_here = _set_by_constructors(m, calls)
    held = [(slot, m.state.cell(slot), m.state.refs_of(slot)) for slot in m.state.slot_names(me)]
    held = [found for found in held if found[0][1][1:] in set_here]
    single = [(slot[1][1:], cell.site, m.state.object(refs[0])) for slot, cell, refs in held if cell and len(refs) == 1]
    optimizer_ref = {slot[1][1:]: refs[0] for slot, _, refs in held if len(refs) == 1}
    for name, site, optimizer in single:
        renewed = _renewed(m, name) if optimizer.kind is Kind.OPTIMIZER else None
        adding = _adding_groups(m) if renewed is not None else None
        if renewed is None or adding is None:
            continue
        renewed += adding
        moved = {share.storage for share in optimizer.shares if share.how is How.PARAMETERS}
        for over, _, module in single:
            own = {share.storage for share in module.shares if share.how is How.OWN}
            if module.kind is Kind.MODULE and own and own <= moved:
                yield OptimizerHeld(site, name, over, calls, module.sure, frozenset(), renewed)
        parts = frozenset(over for over, bound, part in single if bound < site and _knows(m, optimizer_ref[name], part))
        leaves = frozenset(
            over
            for over, bound, _ in single
            if bound < site and _knows_leaves(m, optimizer_ref[name], _tensors_in(m, optimizer_ref[over]))
        )
        if parts or leaves:
            yield OptimizerHeld(site, name, "", calls, optimizer.sure, parts, renewed, leaves)


def _set_by_constructors(m: Machine, calls: frozenset[str]) -> frozenset[str]:
    """The fields that the constructors of a class set, with the methods that they call.

    What else is there was set by a constructor in another file, and that may call methods that this class overrides.
    """
    methods = [m.world.method(m.unit.owner, name) for name in calls]
    methods += [m.world.method(number, "__init__") for number in m.world.lineage(m.unit.owner)]
    units = [m.world.unit(number) for number in methods if number is not None and m.world.is_own(number)]
    return frozenset[str]().union(*(_sets(m.world.index(unit)) for unit in units))


def _knows(m: Machine, optimizer: int, part: Object) -> bool:
    """Whether an optimizer was built over a module or parameter, or what it is a part of."""
    built = m.owners.optimizers.get(optimizer | 1)
    trained = part.kind in (Kind.MODULE, Kind.PARAMETER) and built is not None
    return trained and wholes.meet(m, wholes.parts_of(part), built.parts if built is not None else ())


def _knows_leaves(m: Machine, optimizer: int, refs: tuple[int, ...]) -> bool:
    """Whether an optimizer was built over some tensors, which are leaves, and parameters of no module."""
    built = m.owners.optimizers.get(optimizer | 1)
    tensors = [m.state.object(ref) for ref in refs]
    trained = [one for one in tensors if one.leaf is Fact.YES and one.requires_grad is Fact.YES]
    return (
        bool(refs)
        and built is not None
        and len(trained) == len(tensors)
        and all(wholes.meet(m, wholes.parts_of(one), built.parts) for one in trained)
    )


def _renewed(m: Machine, name: str) -> tuple[tuple[str, frozenset[str]], ...] | None:
    """The other methods that set a field of that name, by class and name, each with all fields that it sets.

    `None` if somebody sets it who is no method of a class that has to do with this one.

    What has nothing to do with this class, or is a part of the constructor, does not count.
    """
    classes = {info.number for info in m.world.program.classes}
    family = {n for n in classes if n in m.world.lineage(m.unit.owner) or m.unit.owner in m.world.lineage(n)}
    setters = [m.world.unit(number) for number in m.world.setters(name)]
    setters = [unit for unit in setters if not _only_begins(m, unit)]
    if any(unit.owner < 0 for unit in setters):
        return None
    mine = [unit for unit in setters if unit.owner in family]
    return tuple((unit.qualname, _sets(m.world.index(unit)) | _sets_within(m, unit)) for unit in mine)


def _sets_within(m: Machine, unit: t.Unit) -> frozenset[str]:
    """The fields with a module of which a unit sets parts by a method of it: `self.net.grow(3)`."""
    found = set()
    for call in m.world.index(unit).of(t.Invoke):
        base = unit.definitions[call.base]
        if isinstance(base, t.Attribute):
            called = [info.methods[call.name] for info in m.world.program.classes if call.name in info.methods]
            summaries = [m.world.summary(number) for number in called]
            if any(summary is not None and summary.replaced for summary in summaries):
                found.add(base.name)
    return frozenset(found)


def _only_begins(m: Machine, unit: t.Unit) -> bool:
    """Whether a method is a part of the constructor: its own, that nobody else in the file calls."""
    invokes = ((u, e) for u in m.world.program.units for e in m.world.index(u).of(t.Invoke))
    callers = [caller for caller, event in invokes if event.name == unit.name]
    return bool(callers) and all(c.name == "__init__" and c.owner == unit.owner == m.unit.owner for c in callers)


def _adding_groups(m: Machine) -> tuple[tuple[str, frozenset[str]], ...] | None:
    """The methods of the class that give an optimizer more parameters, each with what it sets itself. `None` if others
    in the file do so as well: they may do it for any method."""
    found = []
    for unit in m.world.program.units:
        index = m.world.index(unit)
        if any(event.name == "add_param_group" for event in index.of(t.Invoke)):
            if unit.owner != m.unit.owner or unit.name == "__init__":
                return None
            found.append((unit.qualname, _sets(index)))
    return tuple(found)


def _sets(index: UnitIndex) -> frozenset[str]:
    """The names of the attributes that a unit sets, or puts something into under a key."""
    tables = (index.unit.definitions[event.base] for event in index.of(t.StoreItem))
    return frozenset(event.name for event in index.of(t.StoreAttribute)) | {
        made.name for made in tables if isinstance(made, t.Attribute)
    }
