"""Guests: short functions of other files that run in a file that uses them, as its own do.

A summary says what a function does to whatever it is given. What it does to what this file gives it, and all that is
seen only where its events stand in the place of the call, is seen where it runs as one of the file's own. So what
others may know of a file has the bodies of its short functions (`bodies`), and `invite` puts those that a file uses
behind its own units. Their sites are behind the file's own. What is found in them is not told here: where it does not
rest on what this file gives them, it is told in the file that they are of.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from torchcopylint.flow import tape as t
from torchcopylint.flow.files.bodies import BUILTINS
from torchcopylint.flow.tape import Dotted
from torchcopylint.flow.tapes import moving
from torchcopylint.flow.values.outside import Body, Foreign, Outside, Target

MAX_INVITED = 1200
"""The guests of one file have so many events together."""
MAX_DEPTH = 3
"""From guest to guest, so many calls are followed."""


class Guests(NamedTuple):
    """The guests of a file: where the sites from `first` on stand, by path and site there; by the numbers of units, the
    file and number that each has at home, and its decorators."""

    first: int
    places: tuple[tuple[str, int], ...]
    origins: Mapping[int, tuple[str, int]]
    decorators: Mapping[int, tuple[str, ...]]

    def place(self, site: int) -> tuple[str, int] | None:
        """The file, and the site there, of what is a guest's; `None` for a site of the file itself."""
        return self.places[site - self.first] if 0 <= site - self.first < len(self.places) else None


def invite(program: t.Program, outside: Outside) -> tuple[t.Program, Guests]:
    """A file with the guests that it uses behind its own units, and who they are."""
    found: dict[tuple[str, int], Body] = {}
    events, pending = 0, [(target, 0) for target in _used(program, outside)]
    while pending:
        target, depth = pending.pop(0)
        key = (target.name.path, target.name.function)
        facts = outside.function_facts(*key) if target.name.function >= 0 and key not in found else None
        body = facts.body if facts is not None else None
        if body is None or body.takes & program.units[0].bound or events + body.registers > MAX_INVITED:
            continue
        events += body.registers
        found[key] = body
        if depth < MAX_DEPTH:
            further = {event.dotted: None for event in t.events(body.unit.tape) if isinstance(event, t.Import)}
            targets = (outside.target(dotted) for dotted in further if dotted.__class__ is Foreign)
            pending += [(one, depth + 1) for one in targets if one is not None]
    return _seated(program, outside, found)


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
        made = {e.out: e.dotted for e in unit.definitions if isinstance(e, t.Import)}
        made = {out: dotted for out, dotted in made.items() if outside.imported(dotted).__class__ is Foreign}
        for event in t.events(unit.tape) if made else ():
            if isinstance(event, t.Bind) and event.value in made:
                names.setdefault(event.name, {})[made[event.value]] = None
    stars = [event.dotted for event in program.units[0].tape if isinstance(event, t.StarImport)]
    return _Imported(names, tuple(star for star in reversed(stars) if outside.imported(star).__class__ is Foreign))


def _used_by(unit: t.Unit, imported: _Imported) -> Iterator[str]:
    """The dotted names that a unit loads, or takes out of a module that it has imported."""
    holds: dict[int, str] = {}
    for event in unit.definitions:
        if isinstance(event, t.Load):
            for dotted in imported.names.get(event.name, ()):
                holds[event.out] = dotted
                yield dotted
        elif isinstance(event, t.Attribute | t.Invoke) and event.base in holds:
            base = holds[event.base]
            name = f"{base}{event.name}" if base.endswith(".") else f"{base}.{event.name}"
            if isinstance(event, t.Attribute):
                holds[event.out] = name
            yield name


def _may_be_starred(program: t.Program, unit: t.Unit, name: str) -> bool:
    return name not in program.units[0].bound and name not in unit.bound and name not in BUILTINS


# -- their places


def _seated(program: t.Program, outside: Outside, found: Mapping[tuple[str, int], Body]) -> tuple[t.Program, Guests]:
    """The program with its guests: their units, and what defines them at the beginning of the module."""
    module, first = program.units[0], len(program.statements)
    units, definitions = list(program.units), list(module.definitions)
    opening: list[t.Event] = []
    statements, scopes = list(program.statements), list(program.scopes)
    places: list[tuple[str, int]] = []
    origins: dict[int, tuple[str, int]] = {}
    for (path, function), body in found.items():
        number = len(units)
        ranks = {site: len(statements) + rank for rank, (site, _) in enumerate(body.statements)}
        places += [(path, site) for site in ranks]
        statements += [ranks.get(statement, ranks[site]) for site, statement in body.statements]
        scopes += [number] * len(ranks)
        units.append(_unit(body, number, ranks))
        defining = _defining(body, number, ranks[body.unit.site], len(definitions))
        opening += defining
        definitions += defining
        origins[number] = (path, function)
        outside.seat(path, function, number)
    decorators = {number: body.decorators for number, body in zip(origins, found.values(), strict=True)}
    guests = Guests(first, tuple(places), origins, decorators)
    if not found:
        return program, guests
    units[0] = module._replace(tape=(*opening, *module.tape), definitions=tuple(definitions))
    return program._replace(units=tuple(units), statements=tuple(statements), scopes=tuple(scopes)), guests


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


def _defining(body: Body, number: int, site: int, register: int) -> list[t.Event]:
    """What defines a guest; its registers are numbered from `register` on."""
    made: list[t.Event] = [
        t.Const(register + place, default.value, site) for place, (_, default) in enumerate(body.defaults)
    ]
    defaults = tuple((name, register + place) for place, (name, _) in enumerate(body.defaults))
    return [*made, t.Function(register + len(made), number, defaults, (), site)]
