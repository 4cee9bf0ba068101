"""What a function takes out of `*args` and `**kwargs` by constants: parameters like others, which it does not name.

`def step(*args): x, y = args` takes `x` and `y`, `def step(**kwargs): x = kwargs["x"]` takes `x` by its name. So the
function is lowered as if it said so, and who calls it passes them as it would pass any other. What it takes without
binding it to a name, or on some paths only, has the name that it is taken by: `kwargs['x']`.
"""

from __future__ import annotations

from typing import NamedTuple

from torchcopylint.flow import tape as t

MAX_PARTS = 16
"""A function that takes more is as it was."""
_TAKING = frozenset({"get", "pop"})
_LOOKING = frozenset({"get", "items", "keys", "values", "copy"})
"""Methods that leave a dictionary as it is."""


class _Taken(NamedTuple):
    """What is taken out of a gathering parameter: where from, into which registers, and whether it may be missing."""

    key: int | str
    registers: tuple[int, ...]
    optional: bool


def apart(unit: t.Unit) -> t.Unit:
    """A unit with a parameter of its own for each thing that it takes out of what its calls pass beside the others."""
    for parameter in unit.parameters:
        if parameter.kind == "plain" or (parameter == unit.parameters[0] and unit.owner >= 0):
            continue
        found = _taken(unit, parameter)
        if found is not None and 0 < len(found[0]) <= MAX_PARTS:
            unit = _with_parts(unit, parameter, found[0], kept=found[1])
    return unit


def _taken(unit: t.Unit, parameter: t.Parameter) -> tuple[list[_Taken], bool] | None:
    """What a unit takes out of a gathering parameter, and whether it uses that in other ways; `None` if it changes it,
    or leaves open what it takes."""
    loads: set[int] = set()
    registers: dict[int | str, list[int]] = {}
    optional: set[int | str] = set()
    others = False
    for event in t.events(unit.tape):
        if (event.__class__ is t.Bind or event.__class__ is t.Delete) and event.name == parameter.name:
            return None
        if event.__class__ is t.Load and event.name == parameter.name:
            loads.add(event.out)
        elif not loads.isdisjoint(t.operands(event)):
            key = _key(unit, event, parameter, loads)
            if key is None and _changes(event, loads):
                return None
            others = others or key is None
            if key is not None and isinstance(event, t.Unpack | t.Item | t.Invoke):
                registers.setdefault(key, []).append(event.out)
                optional |= {key} if isinstance(event, t.Invoke) else set()
    if parameter.kind == "star":
        length = max((key for key in registers if isinstance(key, int)), default=-1) + 1
        return [_Taken(place, tuple(registers.get(place, ())), False) for place in range(length)], others
    return [_Taken(key, tuple(outs), key in optional) for key, outs in registers.items()], others


def _key(unit: t.Unit, event: t.Event, parameter: t.Parameter, loads: set[int]) -> int | str | None:
    """The constant by which an event takes something out of a gathering parameter."""
    star = parameter.kind == "star"
    if isinstance(event, t.Unpack) and star:
        return event.position if event.position >= 0 else None
    if isinstance(event, t.Item) and event.base in loads and len(event.subscript) == 1:
        register = event.subscript[0]
    elif isinstance(event, t.Invoke) and event.base in loads and event.name in _TAKING and not star:
        given = [argument.register for argument in event.arguments if not (argument.keyword or argument.stars)]
        if not 0 < len(given) == len(event.arguments) < 3 or any(
            not isinstance(made := unit.definitions[one], t.Const) or made.value is not None for one in given[1:]
        ):
            return None
        register = given[0]
    else:
        return None
    made = unit.definitions[register] if isinstance(register, int) and register >= 0 else None
    value = made.value if isinstance(made, t.Const) else None
    if star:
        return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
    return value if isinstance(value, str) else None


def _changes(event: t.Event, loads: set[int]) -> bool:
    """Whether an event changes a gathering parameter, or takes from it what cannot be told."""
    if isinstance(event, t.Invoke) and event.base in loads:
        return event.name not in _LOOKING
    stores = isinstance(event, t.StoreItem | t.DeleteItem) and event.base in loads
    return stores or isinstance(event, t.Unpack) or (isinstance(event, t.Augment) and event.target in loads)


def _with_parts(unit: t.Unit, parameter: t.Parameter, found: list[_Taken], *, kept: bool) -> t.Unit:
    """A unit that takes some things as parameters of their own; the one that gathers them is kept with them if it is
    used in other ways."""
    definitions, uses = list(unit.definitions), dict(unit.uses)
    names, dropped = {}, set[int]()
    made: list[t.Parameter] = []
    taken = {one.name for one in unit.parameters}
    for one in found:
        bind = _only_name(unit, one, taken) if not kept else None
        name = bind.name if bind is not None else f"{parameter.name}[{one.key!r}]"
        taken.add(name)
        if bind is not None:
            dropped |= {id(bind), *(id(unit.definitions[register]) for register in one.registers)}
            uses[name] = uses.pop(f"{name}@{bind.site}", frozenset())
        names.update(dict.fromkeys(one.registers, name))
        key = one.key if isinstance(one.key, str) else ""
        annotation = bind.annotation if bind is not None and bind.annotation is not None else parameter.annotation
        made.append(t.Parameter(name, "plain", annotation, one.optional, bool(key), key, parameter.name))
    tape = _rewritten(unit.tape, names, dropped, definitions)
    parameters: list[t.Parameter] = []
    for other in unit.parameters:
        parameters += made if other is parameter else []
        parameters += [other] if other is not parameter or kept else []
    return unit._replace(
        parameters=tuple(parameters),
        bound=unit.bound | {one.name for one in made},
        tape=tape,
        definitions=tuple(definitions),
        uses=uses,
    )


def _only_name(unit: t.Unit, one: _Taken, taken: set[str]) -> t.Bind | None:
    """What binds a thing, once and for all, to the only name that it has: on every path, and before all else."""
    binds = [event for event in t.events(unit.tape) if isinstance(event, t.Bind) and event.value in one.registers]
    if len(one.registers) != 1 or len(binds) != 1 or not any(event is binds[0] for event in unit.tape):
        return None
    name = binds[0].name
    again = [e for e in t.events(unit.tape) if isinstance(e, t.Bind | t.Delete) and e.name == name]
    used = [e for e in t.events(unit.tape) if one.registers[0] in t.operands(e)]
    alone = len(again) == 1 and len(used) == 1 and name not in taken and name in unit.bound
    return binds[0] if alone and name.isidentifier() else None


def _rewritten(tape: t.Tape, names: dict[int, str], dropped: set[int], definitions: list[t.Event | None]) -> t.Tape:
    """A tape that loads by name what it took out, and says no more of what has become a parameter."""
    found: list[t.Event] = []
    for event in tape:
        out = getattr(event, "out", t.NO_REGISTER)
        if id(event) in dropped:
            if out >= 0:
                definitions[out] = None
            continue
        if out in names:
            event = t.Load(out, names[out], event.site)
            definitions[out] = event
        elif inside := t.changed_inside(event, lambda inner: _rewritten(inner, names, dropped, definitions)):
            event = event._replace(**inside)
        found.append(event)
    return tuple(found)
