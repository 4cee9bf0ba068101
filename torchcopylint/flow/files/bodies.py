"""Short functions of a file in a form in which other files can run them: see `guests`.

What a function takes from the module around it becomes an import, so that it means the same everywhere.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping
from functools import cache
from typing import NamedTuple

from torchcopylint.flow import tape as t
from torchcopylint.flow.tape import Dotted
from torchcopylint.flow.values.modes import GRAD_MODES
from torchcopylint.flow.values.outside import Body, ClassBody, named_in
from torchcopylint.knowledge import table

MAX_EVENTS = 80
"""A function with more events is none that others run."""
MAX_CLASS = 240
"""A class all of whose methods together have more events is none that others run."""
BUILTINS = frozenset(dir(builtins))
_BODILY = (t.Function, t.Class, t.Import, t.StarImport, t.Reveal)
_OF_METHODS = frozenset({"property", "staticmethod", "classmethod"})
_OF_AUTOGRAD = frozenset({"torch.autograd.function.once_differentiable", "torch.autograd.once_differentiable"})
_OF_ITS_PLACE = frozenset({"locals", "globals", "vars", "eval", "exec", "__class__", "__file__", "__name__"})
_KEEPING = frozenset({"append", "extend", "insert", "update", "setdefault", "add", "copy", "deepcopy"})
_TRAINING = frozenset({"step", "parameters", "state_dict"})
_FUNCTIONS = ("torch", "torch.nn.functional", "torch.nn.utils", "numpy")
_WRITING = (t.Augment, t.StoreItem, t.StoreAttribute, t.Item)
_ARITHMETIC = frozenset({"+", "-", "*", "/", "//", "**", "@", "-x"})


class Home(NamedTuple):
    """A file that has been run: its program and path, the names of the module that stand for what is imported from
    outside of the project, and those that functions bind anew; where each function is defined, the decorated classes,
    and the units that stand in others."""

    program: t.Program
    path: str
    imports: Mapping[str, Dotted]
    again: frozenset[str]
    defined: Mapping[int, tuple[t.Unit, t.Function]]
    decorated: frozenset[int]
    inner: Mapping[int, list[t.Unit]]


def home_of(program: t.Program, path: str, imports: Mapping[str, Dotted], again: frozenset[str]) -> Home:
    """What is looked up for each body: see `Home`."""
    defined: dict[int, tuple[t.Unit, t.Function]] = {}
    decorated: set[int] = set()
    inner: dict[int, list[t.Unit]] = {}
    for unit in program.units:
        inner.setdefault(unit.parent, []).append(unit)
        for event in unit.definitions:
            # Most events are neither: this is quicker than `isinstance`.
            if event.__class__ is t.Function:
                defined[event.unit] = (unit, event)
            elif event.__class__ is t.Class and event.decorators:
                decorated.add(event.number)
    return Home(program, path, imports, again, defined, frozenset(decorated), inner)


def body_of(home: Home, unit: t.Unit, decorators: tuple[str, ...]) -> Body | None:
    """The body of a function, if others can run it. `decorators` are resolved by the imports of the file."""
    if unit.parent != 0 or unit.owner >= 0 or not _concerns_memory(home, unit):
        return None
    return _body(home, unit, decorators)


def class_body_of(
    home: Home, info: t.ClassInfo, decorators: Mapping[int, tuple[str, ...]], *, of_autograd: bool
) -> ClassBody | None:
    """The body of a class, if others can run it, whose instances are nothing but objects, or which is an autograd
    function (`of_autograd`): what that hands back as it is matters too. `decorators` are those of its methods."""
    units = home.program.units
    own = [info.body, *info.methods.values()]
    inner = [unit for number in own for unit in home.inner.get(number, ())]
    if units[info.body].parent != 0 or {unit.number for unit in inner} != set(info.methods.values()):
        return None
    events = sum(len(units[number].definitions) for number in own)
    if events > MAX_CLASS or not (of_autograd or any(_concerns_memory(home, unit) for unit in inner)):
        return None
    body = _body(home, units[info.body], ())
    methods = {unit.number: _body(home, unit, decorators.get(unit.number, ())) for unit in inner}
    if body is None or None in methods.values() or info.number in home.decorated:
        return None
    bases = tuple(_annotation(home, base) for base in info.bases)
    fields = {name: _annotation(home, annotation) for name, annotation in info.fields.items()}
    made = {number: one for number, one in methods.items() if one is not None}
    return ClassBody(info._replace(bases=bases, fields=fields), body, made)


def _body(home: Home, unit: t.Unit, decorators: tuple[str, ...]) -> Body | None:
    known = GRAD_MODES.keys() | (_OF_METHODS | _OF_AUTOGRAD if unit.owner >= 0 else ())
    if len(unit.definitions) > MAX_EVENTS or not all(name.partition("(")[0] in known for name in decorators):
        return None
    events = list(t.events(unit.tape))
    bodily = [event for event in events if isinstance(event, _BODILY)]
    if len(events) > MAX_EVENTS or any(unit.kind != "class" or not isinstance(event, t.Function) for event in bodily):
        return None
    taken = _taken(unit, events)
    if taken is None or taken & (home.again | _OF_ITS_PLACE):
        return None
    if "super" in taken and unit.owner < 0:
        return None
    outer = {name for name in taken if name in home.program.units[0].bound or name not in BUILTINS}
    sites = sorted({event.site for event in events if event.site >= 0} | {unit.site})
    return Body(
        unit=_moved(home, unit, {name: home.imports.get(name) or named_in(home.path, name) for name in outer}),
        registers=len(unit.definitions),
        defaults=_defaults(home, unit.number),
        decorators=decorators,
        statements=tuple((site, home.program.statements[site]) for site in sites),
        takes=frozenset(taken - outer),
    )


def _taken(unit: t.Unit, events: list[t.Event]) -> set[str] | None:
    """The names that a function takes from outside; `None` if it binds one there."""
    own = unit.bound | {parameter.name for parameter in unit.parameters}
    bound = {event.name for event in events if (event.__class__ is t.Bind or event.__class__ is t.Delete)}
    if any(name not in own and "#" not in name and not name.startswith("%") for name in bound):
        return None
    return {event.name for event in events if event.__class__ is t.Load} - own - bound


def _concerns_memory(home: Home, unit: t.Unit) -> bool:
    """Whether a unit may share, write, keep or compute a tensor."""
    return any(event is not None and _is_about_memory(event, home.imports) for event in unit.definitions) or any(
        isinstance(event, _WRITING) for event in t.events(unit.tape)
    )


def _is_about_memory(event: t.Event, imports: Mapping[str, Dotted]) -> bool:
    """Whether an event may share, write, keep or compute a tensor."""
    if event.__class__ is t.Attribute or event.__class__ is t.Invoke:
        return _is_operation(event.name)
    if event.__class__ is t.Load:
        return event.name in imports and table.function(imports[event.name]) is not None
    return isinstance(event, t.Operate) and event.symbol in _ARITHMETIC


@cache
def _is_operation(name: str) -> bool:
    """Whether an attribute, method or function of a name is one that memory or the graph goes through."""
    known = table.tensor_method(name) or table.tensor_property(name) or table.array_method(name)
    functions = (table.function(f"{package}.{name}") for package in _FUNCTIONS)
    return name in _KEEPING | _TRAINING or known is not None or any(row is not None for row in functions)


def _defaults(home: Home, number: int) -> tuple[tuple[str, t.Const], ...]:
    """The literals that are defaults of a function's parameters."""
    around, event = home.defined.get(number, (None, None))
    if around is None or event is None:
        return ()
    made = [(name, around.definitions[register]) for name, register in event.defaults if register >= 0]
    return tuple((name, one) for name, one in made if isinstance(one, t.Const))


# -- what it takes from its module


def _moved(home: Home, unit: t.Unit, outer: Mapping[str, Dotted]) -> t.Unit:
    """A unit that imports some names which it took from its module. Its tape tells its definitions."""

    def annotated(annotation: t.Annotation | None) -> t.Annotation | None:
        return _annotation(home, annotation) if annotation is not None else None

    def rewritten(event: t.Event) -> t.Event:
        if event.__class__ is t.Load and event.name in outer:
            return t.Import(event.out, outer[event.name], event.site)
        if event.__class__ is t.Bind and event.annotation is not None:
            return event._replace(annotation=annotated(event.annotation))
        return event

    return unit._replace(
        tape=mapped(unit.tape, rewritten),
        definitions=(),
        parameters=tuple(one._replace(annotation=annotated(one.annotation)) for one in unit.parameters),
        returns=annotated(unit.returns),
    )


def _annotation(home: Home, annotation: t.Annotation) -> t.Annotation:
    """An annotation, as every file can follow its names."""
    first, dot, rest = annotation.name.partition(".")
    if first in home.imports:
        name: str = f"{home.imports[first]}{dot}{rest}"
    else:
        name = annotation.name if first in BUILTINS or first == t.UNION else named_in(home.path, annotation.name)
    return t.Annotation(name, tuple(_annotation(home, one) for one in annotation.arguments))


def mapped(tape: t.Tape, change: Callable[[t.Event], t.Event]) -> t.Tape:
    """A tape each of whose events has become another one."""
    found: list[t.Event] = []
    for event in tape:
        inside = t.changed_inside(event, lambda inner: mapped(inner, change))
        found.append(change(event._replace(**inside) if inside else event))
    return tuple(found)
