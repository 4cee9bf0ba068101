"""Modules without parameters that require grad: what they make of something without a graph has none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import BY_OTHERS, LOCAL, Fact, How, Kind, Object, Sure
from torchcopylint.flow.program.mapping import VMAP
from torchcopylint.flow.values.kinds import MODULE_BASES, PARAMETER_NAMES
from torchcopylint.knowledge import table

if TYPE_CHECKING:
    from torchcopylint.flow.files.world import World
    from torchcopylint.flow.running.machine import Machine

_PLAIN = frozenset({Kind.NUMBER, Kind.STRING, Kind.NONE, Kind.OTHER})
_BARE = frozenset({"torch.nn.Module", "torch.nn.modules.Module"})
MAX_SHARES = 6
"""So many views and conversions are gone back over."""
_REGISTERING = frozenset(["register_parameter", "add_module", "register_module", "setattr", "__setattr__", "__dict__"])
"""Names that say that a class sets fields that may be parameters in other ways than by assignment."""


def is_hollow(world: World, number: int) -> bool:
    """Whether the instances of a class hold nothing but numbers, texts, plain tensors, parameters without a gradient,
    and layers of torch without parameters, so that they train nothing.

    A field that is set to a parameter of the constructor holds a number if that is what the default is.
    """
    if not world.is_own_class(number):
        facts = world.outside.class_facts(number)
        return facts is not None and facts.hollow
    below = _is_below_hollow(world, number)
    if not below and [name for _, name in world.bases(number)] not in [[base] for base in _BARE]:
        return False
    fields = world.fields(number)
    if not (fields or below) or not all(
        obj.kind is Kind.UNKNOWN or _is_plain(world, number, obj) for obj in fields.values()
    ):
        return False
    units = [unit for unit in world.program.units if unit.owner == number]
    named = (event for unit in units for event in world.index(unit).named)
    if any(event.name in _REGISTERING and not isinstance(event, t.Attribute) for event in named):
        return False
    unknown = [name for name, obj in fields.items() if not _is_plain(world, number, obj)]
    buffers = _buffers(units)
    unknown = [name for name in unknown if name not in buffers and not _is_mapped(world, units, name)]
    return not unknown or _worked_with(units).isdisjoint(unknown)


def _is_below_hollow(world: World, number: int) -> bool:
    """Whether a class has one base, a known class that has no parameters itself."""
    bases = [parent for parent, _ in world.bases(number)]
    parent = bases[0] if len(bases) == 1 else None
    return parent is not None and number not in world.lineage(parent) and sets_none(world, parent)


def has_no_parameters(world: World, number: int) -> bool:
    """Whether the instances of a class surely have no parameters: it sets nothing, or nothing that could be one.

    Who names a base class, whose `forward` is there to be overridden, means one of those that inherit from it.
    """
    return sets_none(world, number) and not _is_overridden(world, number)


def _is_overridden(world: World, number: int) -> bool:
    forward = world.method(number, "forward")
    if forward is None or world.is_own(forward):
        return forward is not None and is_stub(world.unit(forward))
    summary = world.summary(forward)
    return summary is not None and summary.unknown


def sets_none(world: World, number: int) -> bool:
    """Whether what a class itself, and those above it, do to their instances gives these no parameters."""
    if not world.is_own_class(number):
        facts = world.outside.class_facts(number)
        return facts is not None and facts.hollow
    return world.holds_nothing(number) or is_hollow(world, number)


def has_buffers(world: World, number: int) -> bool:
    """Whether a class of this file, or one above it, registers buffers by their names."""
    lineage = world.lineage(number)
    return bool(_buffers([unit for unit in world.program.units if unit.owner in lineage]))


def is_made_of_others(world: World, number: int) -> bool:
    """Whether a class makes no parameter and no layer itself: what its instances train is what they were handed."""
    if world.is_own_class(number):
        bases, fields = [name for _, name in world.bases(number)], world.fields(number)
    else:
        facts = world.outside.class_facts(number)
        if facts is None:
            return False
        bases, fields = [base.name for base in facts.bases], facts.fields
    handed = [obj for obj in fields.values() if obj.kind in (Kind.UNKNOWN, Kind.MODULE)]
    plain = all(obj.kind in (*_PLAIN, Kind.UNKNOWN, Kind.MODULE) for obj in fields.values())
    return bool(handed) and plain and set(bases) <= _BARE and not any(_may_train(world, obj) for obj in handed)


def comes_through_known(m: Machine, obj: Object) -> bool:
    """Whether no network is behind a value, or one that this file defines or this unit makes, with layers of its own.

    One that comes from elsewhere may be frozen, have no parameters, be of another framework, or pick integers.
    """
    return not is_of_others(m, obj)


def is_of_others(m: Machine, obj: Object) -> bool:
    """Whether networks that come from elsewhere alone have computed a value, or what it was taken from: in this unit,
    or in a function that has returned it."""
    for _ in range(MAX_SHARES):
        networks = [
            m.state.object(ref)
            for number in obj.graph & m.needed.by_modules.keys()
            for ref in m.needed.by_modules[number].refs
        ]
        if networks or BY_OTHERS in obj.flags:
            return not any(_is_known(m.world, network) for network in networks)
        above = [share.of for share in obj.shares if share.how is not How.OWN]
        if not above:
            break
        obj = m.state.object(above[0])
    return False


def _is_known(world: World, network: Object) -> bool:
    """Whether a network is one that this file defines, or a unit makes, with layers of its own."""
    local = world.local_class(network.type)
    return (
        network.sure >= Sure.LIKELY
        and (network.type not in ("", *MODULE_BASES) or network.owner in ("", LOCAL))
        and not (local is not None and is_made_of_others(world, local))
        and not (local is not None and shows_no_parameter(world, local))
    )


def shows_no_parameter(world: World, number: int) -> bool:
    """Whether a class of another file, of which all ancestors are known, has no field that is known for a parameter or
    a layer: a transform that keeps its filters as buffers, most likely."""
    if world.is_own_class(number):
        return False
    for one in world.lineage(number):
        if world.is_own_class(one):
            return False
        facts = world.outside.class_facts(one)
        unknown = [name for parent, name in world.bases(one) if parent is None and name not in (*_BARE, "object")]
        if facts is None or unknown or any(o.kind in (Kind.PARAMETER, Kind.MODULE) for o in facts.fields.values()):
            return False
    return True


def _may_train(world: World, obj: Object) -> bool:
    local = world.local_class(obj.type)
    return bool(obj.type) and (local is None or not has_no_parameters(world, local))


def _worked_with(units: list[t.Unit]) -> set[str]:
    """The fields that some unit calls, hands to a call first, or takes a method, a field or an element of.

    What is only counted with, or says a size or a device, is neither a module nor a parameter.
    """
    found = set(PARAMETER_NAMES)
    for unit in units:
        for event in unit.definitions:
            if isinstance(event, t.Call):
                registers = [event.function, *(argument.register for argument in event.arguments[:1])]
            elif isinstance(event, t.Attribute | t.Item | t.Invoke):
                registers = [event.base]
            else:
                continue
            made = [unit.definitions[register] for register in registers if register >= 0]
            found |= {one.name for one in made if isinstance(one, t.Attribute) and not _is_of_other(unit, one)}
            if isinstance(event, t.Invoke) and made and isinstance(made[0], t.Load) and made[0].name == unit.first:
                # `self.layer(x)` calls what stands in the field.
                found.add(event.name)
    return found


def _is_of_other(unit: t.Unit, event: t.Attribute) -> bool:
    """Whether an attribute is one of a name that is not the receiver of its method: `torch.device`."""
    base = unit.definitions[event.base] if event.base >= 0 else None
    return isinstance(base, t.Load) and base.name != unit.first


def _buffers(units: list[t.Unit]) -> set[str]:
    """The fields that a class registers as buffers by name: what is put there later is one as well."""
    calls = [(u, e) for u in units for e in u.definitions if isinstance(e, t.Invoke) and e.name == "register_buffer"]
    names = [unit.definitions[event.arguments[0].register] for unit, event in calls if event.arguments]
    return {one.value for one in names if isinstance(one, t.Const) and isinstance(one.value, str)}


def _is_mapped(world: World, units: list[t.Unit], name: str) -> bool:
    """Whether a field holds what `vmap` has made of a function, or nothing yet."""
    stores = [(unit, e) for unit in units for e in world.index(unit).of(t.StoreAttribute) if e.name == name]
    made = [(world.machines.get(unit.number), unit.definitions[e.value]) for unit, e in stores if e.value >= 0]
    called = [m is not None and isinstance(e, t.Call | t.Invoke) and m.dotted_of(e) in VMAP for m, e in made]
    empty = [isinstance(e, t.Const) and e.value is None for _, e in made]
    return len(made) == len(stores) and any(called) and all(a or b for a, b in zip(called, empty, strict=True))


def _is_plain(world: World, number: int, obj: Object) -> bool:
    if obj.kind in _PLAIN or (obj.kind is Kind.TENSOR and obj.requires_grad <= 0):
        return True
    if obj.kind is Kind.PARAMETER:
        # Statistics that are registered as parameters, to be saved: `nn.Parameter(zeros, requires_grad=False)`.
        return obj.requires_grad is Fact.NO
    layer = table.module_class(obj.type) if obj.kind is Kind.MODULE and obj.type else None
    if layer is not None:
        return not layer.parameters and not layer.nested and not layer.container
    initial = world.method(number, "__init__")
    if obj.kind is not Kind.UNKNOWN or initial is None:
        return False
    unit = world.unit(initial)
    outer = world.program.units[unit.parent].definitions if unit.parent >= 0 else ()
    made = next((e for e in outer if isinstance(e, t.Function) and e.unit == initial), None)
    default = dict(made.defaults).get(obj.text, t.NO_REGISTER) if made is not None else t.NO_REGISTER
    constant = outer[default] if default != t.NO_REGISTER else None
    if isinstance(constant, t.Make):
        # A shape: `shape=()`.
        return all(item >= 0 and isinstance(outer[item], t.Const) for item in constant.items)
    return isinstance(constant, t.Const) and isinstance(constant.value, int | float | str)


def is_stub(unit: t.Unit) -> bool:
    """Whether a body does nothing: an abstract method, whose overrides are elsewhere."""
    idle = (t.Const, t.Load, t.Discard, t.Raise, t.Call, t.Attribute, t.Invoke)
    ends = not unit.tape or isinstance(unit.tape[-1], t.Raise | t.Discard | t.Const)
    return ends and len(unit.tape) <= 6 and all(isinstance(event, idle) for event in unit.tape)
