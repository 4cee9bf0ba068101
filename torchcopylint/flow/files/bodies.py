"""Short functions of a file in a form in which other files can run them: see `guests`.

What a function takes from the module around it becomes an import, so that it means the same everywhere.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

from torchcopylint.flow import tape as t
from torchcopylint.flow.tape import Dotted
from torchcopylint.flow.values.modes import GRAD_MODES
from torchcopylint.flow.values.outside import Body, named_in
from torchcopylint.knowledge import table

MAX_EVENTS = 80
"""A function with more events is none that others run."""
BUILTINS = frozenset(dir(builtins))
_BODILY = (t.Function, t.Class, t.Import, t.StarImport, t.Reveal)
_OF_ITS_PLACE = frozenset({"super", "locals", "globals", "vars", "eval", "exec", "__class__", "__file__", "__name__"})
_KEEPING = frozenset({"append", "extend", "insert", "update", "setdefault", "add", "copy", "deepcopy"})
_TRAINING = frozenset({"step", "parameters", "state_dict"})
_FUNCTIONS = ("torch", "torch.nn.functional", "torch.nn.utils", "numpy")
_WRITING = (t.Augment, t.StoreItem, t.StoreAttribute, t.Item)
_ARITHMETIC = frozenset({"+", "-", "*", "/", "//", "**", "@", "-x"})


class Home(NamedTuple):
    """A file that has been run: its program and path, the names of the module that stand for what is imported from
    outside of the project, and those that functions bind anew."""

    program: t.Program
    path: str
    imports: Mapping[str, Dotted]
    again: frozenset[str]


def body_of(home: Home, unit: t.Unit, decorators: tuple[str, ...]) -> Body | None:
    """The body of a function, if others can run it. `decorators` are resolved by the imports of the file."""
    if unit.parent != 0 or unit.owner >= 0 or len(unit.definitions) > MAX_EVENTS:
        return None
    if not all(name.partition("(")[0] in GRAD_MODES for name in decorators):
        return None
    events = list(t.events(unit.tape))
    if len(events) > MAX_EVENTS or any(isinstance(event, _BODILY) for event in events):
        return None
    taken = _taken(unit, events)
    if taken is None or taken & (home.again | _OF_ITS_PLACE):
        return None
    if not any(_concerns_memory(event, home.imports) for event in events):
        return None
    outer = {name for name in taken if name in home.program.units[0].bound or name not in BUILTINS}
    sites = sorted({event.site for event in events if event.site >= 0} | {unit.site})
    return Body(
        unit=_moved(home, unit, {name: home.imports.get(name) or named_in(home.path, name) for name in outer}),
        registers=len(unit.definitions),
        defaults=_defaults(home.program, unit.number),
        decorators=decorators,
        statements=tuple((site, home.program.statements[site]) for site in sites),
        takes=frozenset(taken - outer),
    )


def _taken(unit: t.Unit, events: list[t.Event]) -> set[str] | None:
    """The names that a function takes from outside; `None` if it binds one there."""
    own = unit.bound | {parameter.name for parameter in unit.parameters}
    bound = {event.name for event in events if isinstance(event, t.Bind | t.Delete)}
    if any(name not in own and "#" not in name and not name.startswith("%") for name in bound):
        return None
    return {event.name for event in events if isinstance(event, t.Load)} - own - bound


def _concerns_memory(event: t.Event, imports: Mapping[str, Dotted]) -> bool:
    """Whether an event may share, write, keep or compute a tensor."""
    if isinstance(event, t.Attribute | t.Invoke):
        return _is_operation(event.name)
    if isinstance(event, t.Load):
        return event.name in imports and table.function(imports[event.name]) is not None
    return isinstance(event, _WRITING) or (isinstance(event, t.Operate) and event.symbol in _ARITHMETIC)


@cache
def _is_operation(name: str) -> bool:
    """Whether an attribute, method or function of a name is one that memory or the graph goes through."""
    known = table.tensor_method(name) or table.tensor_property(name) or table.array_method(name)
    functions = (table.function(f"{package}.{name}") for package in _FUNCTIONS)
    return name in _KEEPING | _TRAINING or known is not None or any(row is not None for row in functions)


def _defaults(program: t.Program, number: int) -> tuple[tuple[str, t.Const], ...]:
    """The literals that are defaults of a function's parameters."""
    for unit in program.units:
        for event in unit.definitions:
            if isinstance(event, t.Function) and event.unit == number:
                made = [(name, unit.definitions[register]) for name, register in event.defaults if register >= 0]
                return tuple((name, one) for name, one in made if isinstance(one, t.Const))
    return ()


# -- what it takes from its module


def _moved(home: Home, unit: t.Unit, outer: Mapping[str, Dotted]) -> t.Unit:
    """A unit that imports some names which it took from its module. Its tape tells its definitions."""

    def annotated(annotation: t.Annotation | None) -> t.Annotation | None:
        return _annotation(home, annotation) if annotation is not None else None

    def rewritten(event: t.Event) -> t.Event:
        if isinstance(event, t.Load) and event.name in outer:
            return t.Import(event.out, outer[event.name], event.site)
        if isinstance(event, t.Bind) and event.annotation is not None:
            return event._replace(annotation=annotated(event.annotation))
        return event

    return unit._replace(
        tape=_mapped(unit.tape, rewritten),
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


def _mapped(tape: t.Tape, change: Callable[[t.Event], t.Event]) -> t.Tape:
    """A tape each of whose events has become another one."""
    found: list[t.Event] = []
    for event in tape:
        changes: dict[str, Any] = {}
        if isinstance(event, t.Branch):
            changes["arms"] = tuple(_mapped(arm, change) for arm in event.arms)
        elif isinstance(event, t.Loop):
            changes = {part: _mapped(getattr(event, part), change) for part in ("test", "body", "orelse")}
        elif isinstance(event, t.Try):
            changes = {part: _mapped(getattr(event, part), change) for part in ("body", "orelse", "final")}
            changes["handlers"] = tuple(_mapped(handler, change) for handler in event.handlers)
        found.append(change(event._replace(**changes) if changes else event))
    return tuple(found)
