"""What a call calls, where that is one function of the file for sure, and which functions it passes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import LOCAL, Kind, Sure
from torchcopylint.flow.references import ClassReference, FunctionReference, Super
from torchcopylint.flow.tape import Dotted
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import imports

if TYPE_CHECKING:
    from torchcopylint.flow.files.world import World
    from torchcopylint.flow.running.machine import Machine

NOTHING_KNOWN: Mapping[str, int] = {}


def function_in(m: Machine, register: int, known: Mapping[str, int]) -> int | None:
    """The function of the file that a register holds; `known` are the parameters of which it is known what they are."""
    made = m.unit.definitions[register] if register >= 0 else None
    if made.__class__ is t.Load and made.name in known:
        return known[made.name]
    reference = m.value(register).const
    number = reference.unit if reference.__class__ is FunctionReference else None
    return number if number is not None and _is_ready(m.world, number) else None


def handed_out(m: Machine, register: int) -> list[int]:
    """The functions of the file of which one is what a register holds, because a function of the file, or a method of
    this object, hands out one or the other: `update = self.pick(kind)`."""
    made = m.unit.definitions[register] if register >= 0 else None
    if isinstance(made, t.Load):
        bound = uses.bindings_before(m, made)
        made = m.unit.definitions[bound[0]] if len(bound) == 1 and bound[0] >= 0 else None
    picking: int | None = None
    if isinstance(made, t.Call):
        reference = m.value(made.function).const
        picking = reference.unit if isinstance(reference, FunctionReference) else None
    elif isinstance(made, t.Invoke):
        me = m.unit.definitions[made.base] if made.base >= 0 else None
        of_self = isinstance(me, t.Load) and m.unit.owner >= 0 and me.name == m.unit.first
        picking = m.world.method(m.unit.owner, made.name) if of_self else None
    machine = m.world.machines.get(picking) if picking is not None else None
    constants = [value.const for value in machine.results.returned] if machine is not None else []
    return [one.unit for one in constants if isinstance(one, FunctionReference)]


def passed_functions(
    m: Machine, event: t.Call | t.Invoke | t.Attribute, known: Mapping[str, int] = NOTHING_KNOWN
) -> list[int]:
    """The functions of the file that a call passes, and the methods, with their objects: `run(net, log.keep)`."""
    given = event.arguments if (event.__class__ is t.Call or event.__class__ is t.Invoke) else ()
    found = [function_in(m, one.register, known) for one in given if not one.stars]
    made = [m.unit.definitions[one.register] for one in given if not one.stars and one.register >= 0]
    methods = [_method(m, one.base, one.name, -1) for one in made if one.__class__ is t.Attribute]
    return [number for number in found if number is not None] + [one.number for one in methods if one is not None]


class Called(NamedTuple):
    """What a call surely calls: a function of the file, the register of its object, or -1, and the class that this
    surely is of. A call of a class `constructs`: it calls the constructor with what it makes. A method that is called
    `above` (`super().__init__(x)`) has the object of the method that calls it."""

    number: int
    base: int = t.NO_REGISTER
    receiver: int = -1
    constructs: bool = False
    above: bool = False


def may_lead(m: Machine, event: t.Call | t.Invoke | t.Attribute) -> bool:
    """A quick look at whether a call may call something of the file: what it is called on is known for that."""
    if isinstance(event, t.Call):
        return True
    base = m.value(event.base)
    return base.const is not None or (len(base.refs) == 1 and m.state.object(base.refs[0]).type != "")


def called(
    m: Machine, event: t.Call | t.Invoke | t.Attribute, known: Mapping[str, int] = NOTHING_KNOWN, receiver: int = -1
) -> Called | None:
    """What a call surely calls: a property, a method, a constructor, a function of the module, or none of the file's.

    `receiver` is the class that the object of the unit, if it is a method, surely is of.
    """
    if isinstance(event, t.Call):
        number = function_in(m, event.function, known)
        if number is not None:
            return Called(number)
        const = m.value(event.function).const
        if const.__class__ is ClassReference:
            return _constructor(m, event, const.number)
        method = uses.method_named(m, event.function)
        if method is not None:
            return _method(m, method.base, method.name, receiver)
        return _method(m, event.function, "__call__", receiver)
    const = m.value(event.base).const
    if const.__class__ is ClassReference:
        return _of_class(m, event, const.number) if isinstance(event, t.Invoke) else None
    if const.__class__ is Super:
        return _above(m, event.name, const.number, receiver) if isinstance(event, t.Invoke) else None
    if isinstance(const, Dotted):
        # `helpers.step(model)`
        reference = imports.member(m, const, event.name).const if event.__class__ is t.Invoke else None
        return _ready(m.world, Called(reference.unit)) if reference.__class__ is FunctionReference else None
    return _method(m, event.base, event.name, receiver, looked_at=event.__class__ is t.Attribute)


def _constructor(m: Machine, event: t.Call, number: int) -> Called | None:
    """The constructor of a class that is no module, of which all is known."""
    found = m.world.method(number, "__init__")
    if found is None or m.world.instance(number).kind is not Kind.INSTANCE:
        return None
    return _ready(m.world, Called(found, event.out, number, True))


def _of_class(m: Machine, event: t.Invoke, number: int) -> Called | None:
    """A static method, or one of the class, that is called by way of the class."""
    found = m.world.method(number, event.name)
    decorators = m.world.decorators(found) if found is not None else ()
    if found is None or not {"staticmethod", "classmethod"} & set(decorators):
        return None
    return _ready(m.world, Called(found, event.base if "classmethod" in decorators else t.NO_REGISTER))


def _above(m: Machine, name: str, number: int, receiver: int) -> Called | None:
    """The constructor of a class above the one in whose constructor it is called. What other methods add to those that
    they override, they add knowing what these do."""
    found = m.world.method_above(number, name) if name == "__init__" else None
    return _ready(m.world, Called(found, t.NO_REGISTER, receiver, above=True)) if found is not None else None


def _method(m: Machine, base: int, name: str, receiver: int, *, looked_at: bool = False) -> Called | None:
    """The method of that name of the object of a register, or, if it is `looked_at`, the property."""
    world = m.world
    refs = m.value(base).refs
    if len(refs) != 1:
        return None
    obj = m.state.object(refs[0])
    owner = world.local_class(obj.type)
    if owner is None or obj.kind not in (Kind.INSTANCE, Kind.MODULE):
        return None
    if obj.kind is Kind.MODULE and name in ("forward", "__call__"):
        # What a network returns has a graph over all of it.
        if not world.has_no_parameters(owner):
            return None
        name = "forward"
    made = m.unit.definitions[base] if base >= 0 else None
    of_self = made.__class__ is t.Load and made.name == m.unit.first and m.unit.owner >= 0
    exact = receiver if of_self else owner if obj.owner in ("", LOCAL) and obj.sure is Sure.PROVEN else -1
    number = world.method(exact if exact >= 0 else owner, name)
    if number is None and not looked_at and name != "__call__":
        # `self.score(x)`, where a field holds a function of the file.
        number = held_in_field(world, owner, name)
        return _ready(world, Called(number)) if number is not None else None
    if number is None or (exact < 0 and world.overriding(number)):
        return None
    decorators = world.decorators(number)
    if ("property" in decorators) is not looked_at:
        return None
    return _ready(world, Called(number, t.NO_REGISTER if "staticmethod" in decorators else base, exact))


def held_in_field(world: World, owner: int, name: str) -> int | None:
    """The function of the file that a field of a class surely holds."""
    held = (world.held_functions.get((current, name, "")) for current in world.lineage(owner))
    return next((function.unit for function in held if isinstance(function, FunctionReference)), None)


def _ready(world: World, found: Called) -> Called | None:
    return found if _is_ready(world, found.number) else None


def _is_ready(world: World, number: int) -> bool:
    return world.is_own(number) and number in world.machines
