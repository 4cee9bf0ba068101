"""Which fields of an object are trained: by an optimizer in another field, as the constructor has built them, or as
tensors that require grad, which it makes.

`self.net = Net(); self.opt = Adam(self.net.parameters())`: in every method, `self.opt.step()` writes `self.net`, unless
a method sets one of the two anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import ANY_ELEMENT, TENSORS, Fact, How, Kind, Object, Region, Share

if TYPE_CHECKING:
    from torchcopylint.flow.interprocedural.classes import Classes
    from torchcopylint.flow.running.machine import Machine

Trained = Mapping[str, "tuple[tuple[str, Region], ...]"]
"""By the name of an optimizer's field, the fields that hold the modules and tensors that it steps, and which parts of
them those are: all, or what stands in a field of theirs (`Adam(self.policy.actor.parameters())`)."""


def learn(m: Machine) -> Trained:
    """What a constructor that has been run leaves in the fields of `self`: whole modules and tensors, with nothing
    besides."""
    if m.unit.name != "__init__" or m.unit.owner < 0 or not m.unit.parameters:
        return {}
    me = m.number("argument", m.unit.first)
    owners: dict[int, list[str]] = {}
    optimizers: dict[str, tuple[int, ...]] = {}
    arms: dict[str, int] = {}
    for slot in m.state.slot_names(me):
        refs, name = m.state.refs_of(slot), slot[1][1:]
        if not refs or not slot[1].startswith("."):
            continue
        kinds = {m.state.object(ref).kind for ref in refs}
        if kinds == {Kind.OPTIMIZER}:
            optimizers[name] = refs
        elif len(refs) == 1 and kinds <= {Kind.DICT, Kind.LIST, Kind.TUPLE}:
            optimizers |= _entries(m, refs[0], name)
        elif (kinds <= {Kind.MODULE, Kind.UNKNOWN, *TENSORS}) if len(refs) == 1 else kinds == {Kind.MODULE}:
            arms[name] = len(refs)
            for ref in refs:
                for storage in _owned(m.state.object(ref)):
                    owners.setdefault(storage, []).append(name)
    found = {name: _by_arms(m, refs, owners, arms) for name, refs in optimizers.items()}
    return {name: names for name, names in found.items() if names}


def _owned(obj: Object) -> list[int]:
    """The storages that an object surely owns. A parameter is made of a tensor that nobody holds."""
    hows = (How.OWN, How.PARAMETER) if obj.kind in TENSORS else (How.OWN,)
    return [share.storage for share in obj.shares if share.how in hows and share.sure]


def _by_arms(
    m: Machine, optimizers: tuple[int, ...], owners: Mapping[int, list[str]], arms: Mapping[str, int]
) -> tuple[tuple[str, Region], ...]:
    """What one optimizer steps; or, of one for each arm of a condition, what all of them step: the field that each arm
    has set beside it."""
    found = {_whole(m, ref, owners) for ref in optimizers}
    parts = found.pop() if len(found) == 1 else ()
    return parts if all(arms[field] in (1, len(optimizers)) for field, _ in parts) else ()


def _entries(m: Machine, container: int, field: str) -> dict[str, tuple[int, ...]]:
    """The optimizers that stand in a container in a field, each by field and key: `opts["actor"]`, `opts[0]`."""
    slots = ((name[1], m.state.refs_of(name)) for name in m.state.slot_names(container) if name[1] != ANY_ELEMENT)
    alone = [(name, refs[0]) for name, refs in slots if len(refs) == 1]
    return {f"{field}{name}": (ref,) for name, ref in alone if m.state.object(ref).kind is Kind.OPTIMIZER}


def of_entry(m: Machine, ref: int, field: str, key: object, made: Object) -> Object:
    """An optimizer that a method takes out of a container in a field of its object, with what it steps."""
    local = m.world.local_class(m.state.object(ref).type)
    known = any(share.how is How.PARAMETERS for share in made.shares)
    if made.kind is not Kind.OPTIMIZER or known or local is None or m.world.setters(field):
        return made
    return made._replace(shares=(*made.shares, *shares_of(m, ref, local, f"{field}[{key!r}]")))


def _whole(m: Machine, optimizer: int, owners: Mapping[int, list[str]]) -> tuple[tuple[str, Region], ...]:
    found: dict[tuple[str, Region], None] = {}
    for share in m.state.object(optimizer).shares:
        if share.how is not How.PARAMETERS:
            continue
        # What stands in a field is a part of its object as well.
        above = [one for one in m.state.object(share.of).shares if one.storage in owners and one.sure]
        parts = [(name, _without_each(one.region)) for one in above for name in owners[one.storage]]
        if not parts or not share.sure:
            return ()
        found.update(dict.fromkeys(parts))
    return tuple(found)


def _without_each(region: Region) -> Region:
    """The part that a module is, of which these are the parameters one by one."""
    return region[:-1] if region and region[-1].kind == "each" else region


def shares_of(m: Machine, ref: int, owner: int, name: str) -> tuple[Share, ...]:
    """The shares that the optimizer in the field `name` of an object has in the modules of its other fields."""
    world = m.world
    parts = next((known[name] for one in world.lineage(owner) if name in (known := world.trained_by(one))), ())
    if any(_is_set_again(world, owner, one) for one in ((name, *(field for field, _ in parts)) if parts else ())):
        return ()
    slots = [(m.number("slot", (ref, f".{field}")), region) for field, region in parts]
    return tuple(Share(slot, How.PARAMETERS, -1, slot, region) for slot, region in slots)


def _is_set_again(world: Classes, owner: int, name: str) -> bool:
    lineage = world.lineage(owner)
    return any(world.unit(number).owner in lineage for number in world.setters(name))


def stays_as_made(m: Machine, obj: Object, name: str) -> bool:
    """Whether a constructor sets a field to what requires grad, a leaf or surely none, and nobody in the file sets a
    field of that name to something else, or has it require none."""
    if m.unit.name != "__init__" or obj.leaf not in (Fact.YES, Fact.NO) or obj.requires_grad is not Fact.YES:
        return False
    return not m.world.setters(name) and not any(_is_switched(m, unit, name) for unit in m.world.program.units)


_PUTTING = frozenset({"add", "append", "extend", "insert", "setdefault", "update"})


def element_stays_as_made(m: Machine, obj: Object, name: str) -> bool:
    """Whether a constructor puts a leaf that requires grad into a container that it sets a field to, and nobody in the
    file puts anything else there, or has what somebody who knows a field of that name works with require none."""
    if not stays_as_made(m, obj, name) or obj.leaf is not Fact.YES:
        return False
    return not any(_puts_other_things(m, unit, name) for unit in m.world.program.units if unit is not m.unit)


def _puts_other_things(m: Machine, unit: t.Unit, name: str) -> bool:
    """Whether a unit that reads an attribute of that name may put something into the container there, or have
    what is there require no grad. What is stored after an operation in place is what stood there."""
    index = m.world.index(unit)
    if not any(event.name == name for event in index.of(t.Attribute)):
        return False
    switched = any(e.name in ("requires_grad_", "detach_") for e in index.of(t.Invoke))
    switched = switched or any(e.name == "requires_grad" for e in index.of(t.StoreAttribute))
    bases = [e.base for e in index.of(t.StoreItem) if not e.augmented]
    bases += [e.base for e in index.of(t.Invoke) if e.name in _PUTTING]
    return switched or any(_may_hold(unit.definitions[base], name) for base in bases)


def _may_hold(event: t.Event | None, name: str) -> bool:
    """Whether what an event brings about may be an attribute of that name, or what stands in it."""
    return not isinstance(event, t.Attribute) or event.name == name


def _is_switched(m: Machine, unit: t.Unit, name: str) -> bool:
    """Whether a unit has what an attribute of that name holds require grad, or none."""
    index = m.world.index(unit)
    bases = [event.base for event in index.of(t.Invoke) if event.name in ("requires_grad_", "detach_")]
    bases += [event.base for event in index.of(t.StoreAttribute) if event.name == "requires_grad"]
    return any(isinstance(held := unit.definitions[base], t.Attribute) and held.name == name for base in bases)


def is_switched_on(m: Machine, unit: t.Unit, name: str, *, anything: bool) -> bool:
    """Whether a unit may have what an attribute of that name holds require grad, or `anything` of which nobody knows
    where it stands: `for weight in self.parameters(): weight.requires_grad = True`."""
    index = m.world.index(unit)
    switches = [(event.base, event.value) for event in index.of(t.StoreAttribute) if event.name == "requires_grad"]
    for call in index.of(t.Invoke):
        if call.name == "requires_grad_":
            switches.append((call.base, call.arguments[0].register if call.arguments else t.NO_REGISTER))
    for base, value in switches:
        told = unit.definitions[value] if value >= 0 else None
        held = unit.definitions[base] if base >= 0 else None
        if isinstance(told, t.Const) and told.value is False:
            continue
        if held.name == name if isinstance(held, t.Attribute) else anything:
            return True
    return False
