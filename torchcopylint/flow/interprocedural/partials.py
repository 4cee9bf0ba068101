"""`functools.partial`: a call that is made later, with some of its arguments given already."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import PARTIAL, PARTIAL_OF, UNKNOWN, Kind, Object, Sure, Value
from torchcopylint.flow.references import ClassReference, FunctionReference
from torchcopylint.flow.storages import slots
from torchcopylint.flow.tape import Dotted
from torchcopylint.flow.values import memory
from torchcopylint.flow.values.sites import Arguments

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torchcopylint.flow.interprocedural.classes import Classes
    from torchcopylint.flow.running.machine import Machine

TYPE, _FUNCTION = PARTIAL, PARTIAL_OF
METHOD = "torch.nn.Module."
"""Before the name of a method, as what such a call is of."""
BY_REFERENCE = frozenset({"named_parameters", "parameters", "state_dict"})
"""The methods that hand out what their object goes on holding."""
_KEYWORD = ".keywords."
_POSITION = ".args."


class Default(NamedTuple):
    """What a parameter calls if nobody passes it something else: a class, a function, or one with constants for some
    of its keywords."""

    function: Dotted | ClassReference | FunctionReference
    keywords: tuple[tuple[str, object], ...] = ()


def make(m: Machine, arguments: Arguments, site: int, name: str) -> Value:
    """`partial(function, *args, **kwargs)`: an object that keeps them all."""
    if not arguments.positional or "**" in arguments.keywords:
        return memory.unknown(m, site, f"{name}(...)")
    made = memory.fresh(m, site, Object(Kind.OTHER, Sure.PROVEN, type=TYPE, text=f"{name}(...)"))
    ref = made.refs[0]
    given = {_FUNCTION: arguments.positional[0]}
    given |= {f"{_POSITION}{position}": value for position, value in enumerate(arguments.positional[1:])}
    given |= {f"{_KEYWORD}{key}": value for key, value in arguments.keywords.items()}
    for name_of, value in given.items():
        # What the last turn of a loop has made here is an older one by now.
        older = tuple(held | 1 if held == ref else held for held in value.refs)
        slots.bind_slot(m, (ref, name_of), value._replace(refs=older, root=None), site)
    return made


def bound(m: Machine, base: Value, name: str, site: int, text: str) -> Value:
    """A method of a module or optimizer that is not called yet: `model.state_dict`. It keeps its object."""
    made = memory.fresh(m, site, Object(Kind.OTHER, Sure.PROVEN, type=TYPE, text=f"{text}.{name}"), "bound")
    slots.bind_slot(m, (made.refs[0], _FUNCTION), Value(kind=Kind.FUNCTION, const=Dotted(f"{METHOD}{name}")), site)
    slots.bind_slot(m, (made.refs[0], f"{_POSITION}0"), base, site)
    return made


def called(m: Machine, function: Value, arguments: Arguments) -> tuple[Value, Arguments] | None:
    """What a call of such an object calls, and with what; `None` of anything else, and of what earlier turns of a loop
    have left: `f = partial(f, x)` would be made of itself."""
    if len(function.refs) != 1 or function.refs[0] & 1 or m.state.object(function.refs[0]).type != TYPE:
        return None
    ref = function.refs[0]
    if m.state.cell((ref, _FUNCTION)) is None or ref in m.state.refs_of((ref, _FUNCTION)):
        return None
    names = [slot[1] for slot in m.state.slot_names(ref)]
    given = sum(name.startswith(_POSITION) for name in names)
    positional = [_as_it_is(m, (ref, f"{_POSITION}{position}")) for position in range(given)]
    keywords = {name.removeprefix(_KEYWORD): _as_it_is(m, (ref, name)) for name in names if name.startswith(_KEYWORD)}
    merged = Arguments([*positional, *arguments.positional], {**keywords, **arguments.keywords})
    return slots.slot_value(m, (ref, _FUNCTION)), merged


def given(m: Machine, function: Value) -> list[Value]:
    """What a `partial` puts before the arguments that it is called with; nothing of another function."""
    unpacked = called(m, function, Arguments([], {}))
    return [*unpacked[1].positional] if unpacked is not None else []


def _as_it_is(m: Machine, slot: tuple[int, str]) -> Value:
    """What such an object was given, as it is by now: who hands over a buffer for later calls fills it for each."""
    return slots.slot_value(m, slot)._replace(marks=frozenset())


def default_of(m: Machine, value: Value) -> Default | None:
    """What the default of a parameter calls, if that is known by its name, and by constants."""
    if isinstance(value.const, Dotted | ClassReference | FunctionReference):
        return Default(value.const)
    merged = called(m, value, Arguments([], {}))
    if merged is None or merged[1].positional:
        return None
    function, given = merged
    known = all(not one.refs and one.const is not None for one in given.keywords.values())
    if not known or not isinstance(function.const, Dotted | ClassReference | FunctionReference):
        return None
    return Default(function.const, tuple((key, one.const) for key, one in given.keywords.items()))


Calls: TypeAlias = "Mapping[str, Sequence[t.Call | t.Invoke]]"
"""The calls of a file, by the last name of what they call."""


def calls_of(world: Classes) -> Calls:
    """Every call of a file."""
    found: dict[str, list[t.Call | t.Invoke]] = {}
    for unit in world.program.units:
        calls: list[t.Call | t.Invoke] = [*world.index(unit).of(t.Call), *world.index(unit).of(t.Invoke)]
        for event in calls:
            found.setdefault(_called(unit, event), []).append(event)
    return found


def may_be_passed(world: Classes, calls: Calls, unit: t.Unit, position: int) -> bool:
    """Whether a call in the file may pass something for the parameter at a position: one by the name of the function,
    of its class or of one below that, or one that tells nothing of its arguments."""
    names = {unit.name}
    if unit.owner >= 0 and unit.name == "__init__":
        names |= {info.name for info in world.program.classes if unit.owner in world.lineage(info.number)}
    own, parameter = int(unit.owner >= 0), unit.parameters[position].name
    for event in (event for name in names for event in calls.get(name, ())):
        plain = [one for one in event.arguments if not one.keyword]
        if len(plain) > position - own or any(one.keyword == parameter or one.stars for one in event.arguments):
            return True
    return False


def _called(unit: t.Unit, event: t.Call | t.Invoke) -> str:
    """The last name of what an event calls."""
    if isinstance(event, t.Invoke):
        return event.name
    made = unit.definitions[event.function] if event.function >= 0 else None
    return made.name if isinstance(made, t.Load | t.Attribute) else ""


def from_default(m: Machine, default: Default, name: str) -> Value:
    """The parameter of that name, as its default is."""
    function = Value(kind=Kind.FUNCTION, const=default.function)
    if not default.keywords:
        return function
    ref = m.number("argument", name)
    m.state.set_object(ref, Object(Kind.OTHER, Sure.LIKELY, type=TYPE, text=name))
    slots.bind_slot(m, (ref, _FUNCTION), function, -1)
    for key, constant in default.keywords:
        slots.bind_slot(m, (ref, f"{_KEYWORD}{key}"), UNKNOWN._replace(const=constant), -1)
    return Value((ref,), Kind.OTHER)
