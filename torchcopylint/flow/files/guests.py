"""Guests: short functions and classes of other files that run in a file that uses them, as its own do.

A summary says what a function does to whatever it is given. What it does to what this file gives it, and all that is
seen only where its events stand in the place of the call, is seen where it runs as one of the file's own. So what
others may know of a file has the bodies of those (`bodies`), and `invite` puts those that a file uses
behind its own units. Their sites are behind the file's own. What is found in them is not told here: where it does not
rest on what this file gives them, it is told in the file that they are of.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from torchcopylint.flow import tape as t
from torchcopylint.flow.files.bodies import BUILTINS, mapped
from torchcopylint.flow.tape import Dotted
from torchcopylint.flow.tapes import moving
from torchcopylint.flow.values.outside import Body, ClassBody, Foreign, Outside, Target

MAX_INVITED = 1200
"""The guests of one file have so many events together."""
MAX_DEPTH = 3
"""From guest to guest, so many calls are followed."""


class Guests(NamedTuple):
    """The guests of a file: where the sites from `first` on stand, by path and site there; the file and number at home
    of units and of classes, by their numbers here; and the decorators of units."""

    first: int
    places: tuple[tuple[str, int], ...]
    origins: Mapping[int, tuple[str, int]]
    classes: Mapping[int, tuple[str, int]]
    decorators: Mapping[int, tuple[str, ...]]

    def place(self, site: int) -> tuple[str, int] | None:
        """The file, and the site there, of what is a guest's; `None` for a site of the file itself."""
        return self.places[site - self.first] if 0 <= site - self.first < len(self.places) else None


def invite(program: t.Program, outside: Outside) -> tuple[t.Program, Guests]:
    """A file with the guests that it uses behind its own units, and who they are."""
    seats = _Seats(program, outside)
    events, pending = 0, [(target, 0) for target in _used(program, outside)]
    seen: set[tuple[str, int, int]] = set()
    while pending:
        target, depth = pending.pop(0)
        key = (target.name.path, target.name.function, target.name.class_number)
        body = _body(outside, *key) if key not in seen else None
        seen.add(key)
        parts = () if body is None else (body,) if isinstance(body, Body) else (body.body, *body.methods.values())
        size = sum(part.registers for part in parts)
        if body is None or events + size > MAX_INVITED or any(p.takes & program.units[0].bound for p in parts):
            continue
        events += size
        if isinstance(body, Body):
            seats.seat(key[0], key[1], body)
        else:
            seats.seat_class(key[0], body)
        if depth < MAX_DEPTH:
            taken = [event for part in parts for event in t.events(part.unit.tape) if event.__class__ is t.Import]
            names = [event.dotted for event in taken]
            names += [t.Dotted(base.name) for base in body.info.bases] if isinstance(body, ClassBody) else []
            targets = (outside.target(name) for name in dict.fromkeys(names) if "#" in name)
            pending += [(one, depth + 1) for one in targets if one is not None]
    return seats.taken()


def _body(outside: Outside, path: str, function: int, class_number: int) -> Body | ClassBody | None:
    """The body of a function or class of another file."""
    if function >= 0:
        facts = outside.function_facts(path, function)
        return facts.body if facts is not None else None
    known = outside.facts_of_class(path, class_number) if class_number >= 0 else None
    return known.body if known is not None else None


# -- which ones a file uses


class _Imported(NamedTuple):
    """The names of a file that stand for what it imports from the project, and what it imports as a whole."""

    names: Mapping[str, Mapping[Dotted, None]]
    stars: tuple[Dotted, ...]


def _used(program: t.Program, outside: Outside) -> Iterator[Target]:
    """What names of other files a file uses: where it loads them, or takes them out of a module."""
    imported = _imported(program, outside)
    seen: set[str] = set()
    for unit in program.units if imported.names or imported.stars else ():
        for dotted in _used_by(unit, imported):
            if dotted not in seen:
                seen.add(dotted)
                target = outside.target(dotted)
                if target is not None:
                    yield target
        for event in unit.definitions if imported.stars else ():
            if isinstance(event, t.Load) and event.name not in seen and _may_be_starred(program, unit, event.name):
                seen.add(event.name)
                found = (outside.star(star, event.name) for star in imported.stars)
                yield from [target for target in found if target is not None][:1]


def _imported(program: t.Program, outside: Outside) -> _Imported:
    names: dict[str, dict[Dotted, None]] = {}
    for unit in program.units:
        made = {e.out: e.dotted for e in unit.definitions if e.__class__ is t.Import}
        made = {out: dotted for out, dotted in made.items() if outside.imported(dotted).__class__ is Foreign}
        for event in t.events(unit.tape) if made else ():
            if event.__class__ is t.Bind and event.value in made:
                names.setdefault(event.name, {})[made[event.value]] = None
    stars = [event.dotted for event in program.units[0].tape if event.__class__ is t.StarImport]
    return _Imported(names, tuple(star for star in reversed(stars) if outside.imported(star).__class__ is Foreign))


def _used_by(unit: t.Unit, imported: _Imported) -> Iterator[str]:
    """The dotted names that a unit loads, or takes out of a module that it has imported."""
    holds: dict[int, str] = {}
    for event in unit.definitions:
        if event.__class__ is t.Load:
            for dotted in imported.names.get(event.name, ()):
                holds[event.out] = dotted
                yield dotted
        elif (event.__class__ is t.Attribute or event.__class__ is t.Invoke) and event.base in holds:
            base = holds[event.base]
            name = f"{base}{event.name}" if base.endswith(".") else f"{base}.{event.name}"
            if isinstance(event, t.Attribute):
                holds[event.out] = name
            yield name


def _may_be_starred(program: t.Program, unit: t.Unit, name: str) -> bool:
    return name not in program.units[0].bound and name not in unit.bound and name not in BUILTINS


# -- their places


class _Seats:
    """A program, and behind its units those of guests: what defines them stands at the beginning of the module."""

    def __init__(self, program: t.Program, outside: Outside) -> None:
        self.program = program
        self.outside = outside
        self.units = list(program.units)
        self.classes = list(program.classes)
        self.statements, self.scopes = list(program.statements), list(program.scopes)
        self.definitions = list(program.units[0].definitions)
        self.opening: list[t.Event] = []
        self.places: list[tuple[str, int]] = []
        self.origins: dict[int, tuple[str, int]] = {}
        self.homes: dict[int, tuple[str, int]] = {}
        self.decorators: dict[int, tuple[str, ...]] = {}

    def seat(self, path: str, function: int, body: Body) -> None:
        """Make a function a guest."""
        number = self._add(path, body)
        self.outside.seat(path, function, number)
        site, register = self.units[number].site, len(self.definitions)
        defaults = [t.Const(register + place, one.value, site) for place, (_, one) in enumerate(body.defaults)]
        named = tuple((name, register + place) for place, (name, _) in enumerate(body.defaults))
        self._open(*defaults, t.Function(register + len(defaults), number, named, (), site))

    def seat_class(self, path: str, body: ClassBody) -> None:
        """Make a class a guest."""
        own, number = body.info, len(self.classes)
        around = self._add(path, body.body)
        units = {method: self._add(path, one, number, around) for method, one in body.methods.items()}
        for method, unit in units.items():
            self.outside.seat(path, method, unit)
        inner = self.units[around]
        made = [_renumbered(event, units) for event in inner.definitions]
        tape = mapped(inner.tape, lambda event: _renumbered(event, units) or event)
        self.units[around] = inner._replace(tape=tape, definitions=tuple(made))
        methods = {name: units[method] for name, method in own.methods.items()}
        self.classes.append(own._replace(number=number, body=around, methods=methods, site=inner.site))
        self.homes[number] = (path, own.number)
        self.outside.seat_class(path, own.number, number)
        self._open(t.Class(len(self.definitions), number, (), (), inner.site))

    def _add(self, path: str, body: Body, owner: int = -1, parent: int = 0) -> int:
        """A unit with sites of its own; returns its number."""
        number = len(self.units)
        ranks = {site: len(self.statements) + rank for rank, (site, _) in enumerate(body.statements)}
        self.places += [(path, site) for site in ranks]
        self.statements += [ranks.get(statement, ranks[site]) for site, statement in body.statements]
        self.scopes += [number] * len(ranks)
        self.units.append(_unit(body, number, ranks)._replace(owner=owner, parent=parent))
        self.origins[number] = (path, body.unit.number)
        self.decorators[number] = body.decorators
        return number

    def _open(self, *events: t.Event) -> None:
        self.opening += events
        self.definitions += events

    def taken(self) -> tuple[t.Program, Guests]:
        """The program with its guests, and who they are."""
        program = self.program
        first = len(program.statements)
        guests = Guests(first, tuple(self.places), self.origins, self.homes, self.decorators)
        if not self.origins:
            return program, guests
        module = self.units[0]
        tape, definitions = (*self.opening, *module.tape), tuple(self.definitions)
        self.units[0] = module._replace(tape=tape, definitions=definitions)
        units, classes = tuple(self.units), tuple(self.classes)
        return program._replace(
            units=units, classes=classes, statements=tuple(self.statements), scopes=tuple(self.scopes)
        ), guests


def _renumbered(event: t.Event | None, units: Mapping[int, int]) -> t.Event | None:
    """An event of the body of a class whose methods have other numbers."""
    return event._replace(unit=units[event.unit]) if isinstance(event, t.Function) else event


def _unit(body: Body, number: int, ranks: Mapping[int, int]) -> t.Unit:
    """The unit of a guest, with its sites."""
    made: list[t.Event | None] = [None] * body.registers
    tape = moving.placed(body.unit.tape, ranks, made)
    uses = {_use(use, ranks): names for use, names in body.unit.uses.items()}
    return body.unit._replace(number=number, tape=tape, definitions=tuple(made), site=ranks[body.unit.site], uses=uses)


def _use(use: str, ranks: Mapping[int, int]) -> str:
    """The key of what is known of a binding: see `t.Unit`."""
    name, at, site = use.rpartition("@")
    return f"{name}@{ranks.get(int(site), int(site))}" if at else use
