"""A unit with its helpers in it: where it calls a function or method of the file, the tape of that stands instead.

A summary says what a helper does to its arguments; what it does to what it reaches through them (gradients, fields of
fields, elements of containers, the leaves that a property returns) is seen where its events are run in the place of
the call. Names and registers of a helper are its own for each call; its sites are numbered between those of the caller,
so that what happens first has the lower number. `Expanded.places` leads back from there to the sites of the program.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import CONTAINERS, LOCAL, Kind
from torchcopylint.flow.references import FunctionReference
from torchcopylint.flow.tapes import constants, moving
from torchcopylint.flow.values import kinds, naming
from torchcopylint.flow.values.modes import GRAD_MODES
from torchcopylint.knowledge import table

if TYPE_CHECKING:
    from torchcopylint.flow.files.world import World
    from torchcopylint.flow.running.machine import Machine

MAX_DEPTH = 3
MAX_HELPER = 250
MAX_EVENTS = 1200
_BODILY = (t.Class, t.Yield, t.StarImport)
_OF_ITS_PLACE = frozenset({"super", "locals", "globals", "vars", "eval", "exec", "__class__"})
HELPERS_NAME = "#in"
"""Stands in each name of a helper that was put in, before its number."""
_TRAINING = frozenset({"backward", "step", "grad", "zero_grad"})
_TELLING = _TRAINING | {"data", "detach", "numpy", "from_numpy", "load_state_dict", "state_dict", "copy", "view", "put"}
_BUILDING = frozenset({"parameters", "named_parameters"})
"""Constructors that deal in these may build optimizers, also by way of a helper."""


class Part(NamedTuple):
    """What stands in a tuple or a dictionary, that of a register, which is passed by `*` or `**`."""

    register: int
    key: int | str


NOTHING_KNOWN: Mapping[str, int] = {}
One: TypeAlias = "int | Part"
Given: TypeAlias = "int | Part | t.Const | tuple[One, ...] | dict[str, One]"
"""What a parameter is given: a register, a part of what one holds, a constant, or what is left for `*rest` and
`**rest`."""


class Expanded(NamedTuple):
    """A unit with helpers in it.

    `places` are the sites of the program by the sites of its events: that of the event, behind those of the calls that
    lead to it. `handed` are the sites at which a helper is given something: nobody puts that aside. `whole` is
    whether helpers are in it that tell nothing by themselves.
    """

    unit: t.Unit
    places: Mapping[int, tuple[int, ...]]
    handed: frozenset[int]
    whole: bool


class _Helper(NamedTuple):
    """A function that can stand in the place of a call. In `tape`, nothing but the end of a `with` is behind a
    `return`."""

    unit: t.Unit
    tape: t.Tape
    own: frozenset[str]
    binds: frozenset[str]
    mode: str


class _Frame(NamedTuple):
    """The unit whose tape is put in: its machine, and what its registers, names and sites become."""

    m: Machine
    shift: int
    names: Mapping[str, str]
    prefix: tuple[int, ...]
    result: str
    units: tuple[int, ...]
    told: Mapping[str, t.Const]
    rests: Mapping[str, tuple[int | str, ...]]
    """The places or keys of what stands in the parameters that gather what is left."""
    functions: Mapping[str, int]
    """The functions of the file that parameters are."""


class Inliner:
    """Puts the helpers of a file in the places of their calls. One for each file."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._helpers: dict[int, _Helper | None] = {}
        self._telling: dict[int, bool] = {}
        outermost = [unit for unit in world.program.units if unit.kind == "function" and unit.parent == 0]
        # A guest has its name elsewhere.
        outermost.sort(key=lambda unit: unit.number not in world.guests.origins)
        self._functions = {unit.name: unit.number for unit in outermost}
        self._defaults = {
            event.unit: (unit, event)
            for unit in world.program.units
            for event in unit.definitions
            if isinstance(event, t.Function)
        }

    def expanded(self, m: Machine, base: int) -> Expanded | None:
        """A unit with its helpers in it, and its sites from `base` on; `None` if it has none that matter."""
        names = _TRAINING | _BUILDING if m.unit.name == "__init__" else _TRAINING
        if m.unit.kind == "module":
            whole = self._calls_trainer(m)
        else:
            whole = m.unit.kind == "function" and (
                self._deals_in(m.unit, names) or self._adds_to_given(m) or self._gives_to_optimizer(m)
            )
        matters = whole or (m.unit.kind in ("function", "module") and self._calls_telling(m))
        return _Expansion(self, m, whole=whole).result(base) if matters else None

    def _calls_telling(self, m: Machine) -> bool:
        """Whether a unit calls something of the file that, by what it does, may tell more where it stands."""
        calls: list[t.Call | t.Invoke] = [*m.index.of(t.Call), *m.index.of(t.Invoke)]
        return any(
            (number := _called(m, call)) is not None and self.are_telling([number, *_passed_functions(m, call)])
            for call in calls
        )

    def are_telling(self, numbers: Iterable[int]) -> bool:
        """Whether one of some functions is telling."""
        return any(self.is_telling(number) for number in numbers)

    def is_telling(self, number: int) -> bool:
        """Whether a function, or one that it calls, trains or writes, or shares memory with something."""
        if number not in self._telling:
            self._telling[number] = self.helper(number) is not None and self._deals_in(
                self.world.program.units[number], _TELLING, stores=True
            )
        return self._telling[number]

    def _calls_trainer(self, m: Machine) -> bool:
        """Whether the body of a module, which is long as a rule, calls something that trains or writes itself."""
        calls: list[t.Call | t.Invoke] = [*m.index.of(t.Call), *m.index.of(t.Invoke)]
        numbers = {number for call in calls if (number := _called(m, call)) is not None}
        units = [self.world.program.units[number] for number in numbers if self.helper(number) is not None]
        return any(self._deals_in(unit, _TRAINING) for unit in units)

    def _gives_to_optimizer(self, m: Machine) -> bool:
        """Whether a unit builds an optimizer, and calls a function of the file that may tell of what."""
        calls: list[t.Call | t.Invoke] = [*m.index.of(t.Call), *m.index.of(t.Invoke)]
        builds = any(kinds.is_optimizer_class(m.dotted_of(call)) for call in calls)
        return builds and any(_called(m, call) is not None for call in calls)

    def _adds_to_given(self, m: Machine) -> bool:
        """Whether a unit changes, in place, elements of what a function of the file has given it: `votes[k] += x`."""
        made = m.unit.definitions
        for event in m.index.of(t.Augment):
            item = made[event.target] if event.target >= 0 else None
            loaded = made[item.base] if isinstance(item, t.Item) and item.base >= 0 else None
            for bind in m.index.binds.get(loaded.name, ()) if isinstance(loaded, t.Load) else ():
                call = made[bind.value] if bind.value >= 0 else None
                function = made[call.function] if isinstance(call, t.Call) and call.function >= 0 else None
                if isinstance(function, t.Load) and function.name in self._functions:
                    return True
        return False

    def _deals_in(self, unit: t.Unit, names: frozenset[str], *, stores: bool = False) -> bool:
        """Whether a unit, or a function of the file that it calls, uses an attribute or method of one of some names."""
        pending, seen = [unit], {unit.number}
        while pending:
            current = pending.pop()
            if stores and self._stores(current):
                return True
            inside = [event.unit for event in self.world.index(current).of(t.Function)]
            seen.update(inside)
            pending += [self.world.program.units[number] for number in inside if current.kind != "module"]
            for event in self.world.index(current).named:
                if isinstance(event, t.Load):
                    own = event.name in current.bound and current.kind != "module"
                    number = self._functions.get(event.name) if not own else None
                elif event.name in names or (event.name[-1:] == "_" and event.name[:1] != "_"):
                    return True
                else:
                    number = self.world.method(current.owner, event.name) if current.owner >= 0 else None
                if number in self.world.guests.origins:
                    # What it writes itself, its summary says.
                    continue
                if number is not None and self.world.is_own(number) and number not in seen and len(seen) < 20:
                    seen.add(number)
                    pending.append(self.world.program.units[number])
        return False

    def _stores(self, unit: t.Unit) -> bool:
        """Whether a unit has been seen to write memory, or is a function that sets fields of what it is given."""
        made = self.world.machines.get(unit.number)
        return (made is not None and bool(made.writes)) or (
            unit.owner < 0 and bool(self.world.index(unit).of(t.StoreAttribute))
        )

    def helper(self, number: int) -> _Helper | None:
        """What can be put in for a function of this file."""
        if number not in self._helpers:
            self._helpers[number] = self._made(self.world.program.units[number])
        return self._helpers[number]

    def _made(self, unit: t.Unit) -> _Helper | None:
        if unit.kind not in ("function", "lambda") or unit.is_generator or len(unit.definitions) > MAX_HELPER:
            return None
        events = self.world.index(unit).events
        if len(events) > MAX_HELPER or any(isinstance(event, _BODILY) for event in events):
            return None
        if unit.number not in self.world.guests.origins and any(isinstance(event, t.Import) for event in events):
            return None
        names = {event.name for event in events if isinstance(event, t.Bind | t.Delete)}
        own = names | {parameter.name for parameter in unit.parameters}
        if any(not _is_hidden(name) and name not in unit.bound for name in names):
            # Of the module, or of a function around it.
            return None
        if any(isinstance(event, t.Load) and event.name in _OF_ITS_PLACE for event in events):
            return None
        mode = self._mode(unit.number)
        tape = moving.ending(unit.tape, unit.site) if mode is not None else None
        return _Helper(unit, tape, frozenset(own), frozenset(names), mode or "") if tape is not None else None

    def _mode(self, number: int) -> str | None:
        """The grad mode that a function's decorators set, or an empty text; `None` if they do something else."""
        found = ""
        for decorator in self.world.decorators(number):
            resolved = table.canonical(self.world.resolve_name(decorator.partition("(")[0]))
            if resolved in GRAD_MODES:
                found = resolved
            elif decorator not in ("property", "staticmethod") and not self._is_wrapper(decorator):
                return None
        return found

    def _is_wrapper(self, decorator: str) -> bool:
        """Whether a decorator is a function of the file that has nothing to do with grad mode: as a rule, what it makes
        of a function calls that."""
        number = self._functions.get(decorator)
        summary = self.world.summary(number) if number is not None else None
        return summary is not None and summary.function >= 0 and not self.world.sets_mode(decorator)

    def default(self, unit: int, name: str) -> t.Const | None:
        """The default of a parameter, if it is a literal."""
        around, event = self._defaults.get(unit, (None, None))
        register = dict(event.defaults).get(name, t.NO_REGISTER) if event is not None else t.NO_REGISTER
        made = around.definitions[register] if around is not None and register >= 0 else None
        return made if isinstance(made, t.Const) else None


class _Expansion:
    """One unit on its way."""

    def __init__(self, inliner: Inliner, m: Machine, *, whole: bool) -> None:
        """`whole` is whether helpers are put in that tell nothing by themselves."""
        self.inliner = inliner
        self.whole = whole
        self.scopes: dict[int, Mapping[str, str] | None] = {m.unit.number: {}}
        """The names of each unit that has been put in; `None` if it was so more than once."""
        self.m = m
        self.definitions: list[t.Event | None] = [None] * len(m.unit.definitions)
        self.keys: dict[tuple[int, ...], int] = {}
        self.uses = dict(m.unit.uses)
        self.bound = set(m.unit.bound) | {parameter.name for parameter in m.unit.parameters}
        self.count = 0
        self.handed: set[int] = set()
        self.events = len(m.index.events)

    def result(self, base: int) -> Expanded | None:
        unit = self.m.unit
        tape = self._tape(unit.tape, _Frame(self.m, 0, {}, (), "", (unit.number,), {}, {}, {}))
        if not self.count:
            return None
        ranks = {self.keys[key]: base + rank for rank, key in enumerate(sorted(self.keys))}
        places = {ranks[number]: key for key, number in self.keys.items()}
        definitions: list[t.Event | None] = [None] * len(self.definitions)
        tape = moving.placed(tape, ranks, definitions)
        uses = {moving.placed_use(use, ranks): names for use, names in self.uses.items()}
        expanded = unit._replace(tape=tape, definitions=tuple(definitions), uses=uses, bound=frozenset(self.bound))
        return Expanded(expanded, places, frozenset(ranks[site] for site in self.handed if site >= 0), self.whole)

    def _site(self, site: int, frame: _Frame) -> int:
        return self.keys.setdefault((*frame.prefix, site), len(self.keys)) if site >= 0 else site

    def _tape(self, tape: t.Tape, frame: _Frame) -> t.Tape:
        found: list[t.Event] = []
        for event in tape:
            put = self._instead(event, frame) if isinstance(event, t.Call | t.Invoke | t.Attribute) else None
            arm = constants.only_arm(frame.m.unit, event, frame.told) if isinstance(event, t.Branch) else None
            if put is not None:
                found += put
            elif isinstance(event, t.Return) and frame.result:
                found += self._returned(event, frame)
            elif arm is not None:
                found += self._tape(arm, frame)
            elif not isinstance(event, t.Reveal):
                found.append(self._moved(event, frame))
        return tuple(found)

    def _moved(self, event: t.Event, frame: _Frame) -> t.Event:
        """An event as it stands in the expanded unit."""
        changes: dict[str, Any] = {"site": self._site(event.site, frame)}
        if isinstance(event, t.Branch):
            changes["arms"] = tuple(self._tape(arm, frame) for arm in event.arms)
        elif isinstance(event, t.Loop):
            changes |= {name: self._tape(getattr(event, name), frame) for name in ("test", "body", "orelse")}
        elif isinstance(event, t.Try):
            changes |= {name: self._tape(getattr(event, name), frame) for name in ("body", "orelse", "final")}
            changes["handlers"] = tuple(self._tape(handler, frame) for handler in event.handlers)
        elif frame.result:
            changes |= moving.shifted(event, frame.shift, frame.names)
        moved = event._replace(**changes)
        if isinstance(event, t.Bind):
            uses = frame.m.unit.uses.get(f"{event.name}@{event.site}")
            if uses:
                self.uses[f"{cast(t.Bind, moved).name}@{moved.site}!"] = uses
        return self._defined(moved)

    def _defined(self, event: t.Event) -> t.Event:
        out = getattr(event, "out", t.NO_REGISTER)
        if out >= 0:
            self.definitions[out] = event
        return event

    def _new(self, count: int = 1) -> int:
        self.definitions += [None] * count
        return len(self.definitions) - count

    # -- what a call becomes

    def _instead(self, event: t.Call | t.Invoke | t.Attribute, frame: _Frame) -> list[t.Event] | None:
        if len(frame.units) > MAX_DEPTH:
            return None
        number = _called(frame.m, event, frame.functions)
        if number is None or number in frame.units:
            return None
        helper = self.inliner.helper(number)
        passed = _passed_functions(frame.m, event, frame.functions) if helper is not None and not self.whole else ()
        if helper is None or not (self.whole or self.inliner.are_telling((number, *passed))):
            return None
        outside = self._outside(helper)
        given = self._arguments(helper, event, frame) if outside is not None else None
        return self._put(helper, event, frame, given, outside) if given is not None and outside is not None else None

    def _outside(self, helper: _Helper) -> dict[str, str] | None:
        """What the names that a helper takes from the function around it are called here; `None` if there is no room
        for it, or if what it takes from outside means something else here."""
        size = len(self.m.world.index(helper.unit).events)
        if self.events + size > MAX_EVENTS:
            return None
        loads = {e.name for e in helper.unit.definitions if isinstance(e, t.Load)} - helper.own
        units = self.m.world.program.units
        around = helper.unit.parent
        names: dict[str, str] = {}
        while around > 0 and units[around].kind != "class":
            own = (loads & (units[around].bound | {one.name for one in units[around].parameters})) - names.keys()
            scope = self.scopes.get(around)
            if own and scope is None:
                return None
            names |= {name: (scope or {}).get(name, name) for name in own}
            around = units[around].parent
        if self.m.unit.kind != "module":
            # What a function finds in the module is what the module's names hold where it is called.
            outer = self.m.unit.parent
            same = outer <= 0 or units[outer].kind == "class" or around == outer or names.keys() >= loads
            if not (same or helper.unit.parent == self.m.unit.number) or (loads - names.keys()) & self.bound:
                return None
        self.events += size
        return names

    def _arguments(
        self, helper: _Helper, event: t.Call | t.Invoke | t.Attribute, frame: _Frame
    ) -> dict[str, Given] | None:
        """What stands for each parameter: a register of the frame's unit, several for `*rest`, or a default."""
        unit = helper.unit
        passed = self._passed(event, frame)
        if passed is None:
            return None
        positional, named = passed
        static = "staticmethod" in self.inliner.world.decorators(unit.number)
        if isinstance(event, t.Invoke | t.Attribute) and not static:
            positional = [event.base, *positional]
        plain = [one for one in unit.parameters if one.kind == "plain"]
        by_place = [one.name for one in plain if not one.by_name]
        found: dict[str, Given] = dict(zip(by_place, positional, strict=False))
        for one in unit.parameters:
            key = one.key or one.name
            if one.kind == "star":
                found[one.name] = tuple(positional[sum(not (p.by_name or p.of) for p in plain) :])
            elif one.kind == "stars":
                names = {p.name for p in plain if not p.of}
                found[one.name] = {name: value for name, value in named.items() if name not in names}
            elif key in named and (one.key or not one.of):
                found[one.name] = named[key]
            elif one.name not in found and (default := self.inliner.default(unit.number, one.name)) is not None:
                found[one.name] = default
        if len(positional) > len(by_place) and not any(one.kind == "star" for one in unit.parameters):
            return None
        return found if found.keys() == {one.name for one in unit.parameters} else None

    def _passed(self, event: t.Call | t.Invoke | t.Attribute, frame: _Frame) -> tuple[list[One], dict[str, One]] | None:
        """What a call passes by place and by name; `None` if that is not known."""
        positional: list[One] = []
        named: dict[str, One] = {}
        for argument in event.arguments if isinstance(event, t.Call | t.Invoke) else ():
            if not argument.stars:
                if argument.keyword:
                    named[argument.keyword] = argument.register
                else:
                    positional.append(argument.register)
                continue
            keys = _parts_of(frame, argument.register)
            if keys is None or any(isinstance(key, int) is not (argument.stars == 1) for key in keys):
                return None
            for key in keys:
                if isinstance(key, str):
                    named[key] = Part(argument.register, key)
                else:
                    positional.append(Part(argument.register, key))
        return positional, named

    def _put(
        self,
        helper: _Helper,
        event: t.Call | t.Invoke | t.Attribute,
        frame: _Frame,
        given: Mapping[str, Given],
        outside: Mapping[str, str],
    ) -> list[t.Event]:
        self.count += 1
        mark = f"{HELPERS_NAME}{self.count}"
        names = {**outside, **{name: name + mark for name in helper.own}}
        text = naming.text_of(frame.m, event.out)
        site = self._site(event.site, frame)
        made: list[t.Event] = []
        me = helper.unit.first if helper.unit.owner >= 0 else ""
        for name, value in given.items():
            root = frame.m.unit.definitions[value] if isinstance(value, int) else None
            if isinstance(root, t.Load) and name not in helper.binds:
                # Another name for what has one would tell nobody anything.
                names[name] = frame.names.get(root.name, root.name)
                continue
            if name == me and isinstance(value, int):
                names[me] = naming.text_of(frame.m, value) + mark
            self.handed.add(site)
            register = self._given(value, site, frame, made)
            annotation = next(p.annotation for p in helper.unit.parameters if p.name == name)
            made.append(t.Bind(names[name], register, site, annotation))
            uses = helper.unit.uses.get(name)
            if uses:
                self.uses[f"{names[name]}@{site}!"] = uses
        inner = _Frame(
            self.m.world.machines[helper.unit.number],
            self._new(len(helper.unit.definitions)),
            names,
            (*frame.prefix, event.site),
            text + mark,
            (*frame.units, helper.unit.number),
            constants.told(frame.m.unit, _single(given), frame.told, helper.binds),
            {name: keys for name, value in given.items() if (keys := _keys(value)) is not None},
            {
                name: number
                for name, value in given.items()
                if name not in helper.binds and isinstance(value, int)
                if (number := _function(frame.m, value, frame.functions)) is not None
            },
        )
        self.scopes[helper.unit.number] = names if helper.unit.number not in self.scopes else None
        entered = self._entered(helper, site, made)
        made += self._tape(helper.tape, inner)
        made += [t.Exit(entered, site)] if entered >= 0 else []
        self.bound |= {*names.values(), text + mark}
        made.append(self._defined(t.Load(event.out + frame.shift, text + mark, site)))
        return made

    def _given(self, value: Given, site: int, frame: _Frame, made: list[t.Event]) -> int:
        if isinstance(value, int):
            return value + frame.shift
        if isinstance(value, Part):
            whole = value.register + frame.shift
            if isinstance(value.key, int):
                made.append(self._defined(t.Unpack(self._new(), value.key, whole, site)))
            else:
                key = self._constant(value.key, site, made)
                made.append(self._defined(t.Item(self._new(), whole, (key,), site)))
        elif isinstance(value, t.Const):
            made.append(self._defined(value._replace(out=self._new(), site=site)))
        elif isinstance(value, dict):
            keys = tuple(self._constant(key, site, made) for key in value)
            items = tuple(self._given(one, site, frame, made) for one in value.values())
            made.append(self._defined(t.Make(self._new(), "dict", keys, items, (False,) * len(items), site)))
        else:
            items = tuple(self._given(one, site, frame, made) for one in value)
            made.append(self._defined(t.Make(self._new(), "tuple", (), items, (False,) * len(items), site)))
        return len(self.definitions) - 1

    def _constant(self, value: object, site: int, made: list[t.Event]) -> int:
        made.append(self._defined(t.Const(self._new(), value, site)))
        return len(self.definitions) - 1

    def _entered(self, helper: _Helper, site: int, made: list[t.Event]) -> int:
        """The register of the grad mode that a helper's decorator sets, which is entered here; or none."""
        if not helper.mode:
            return t.NO_REGISTER
        first = self._new(3)
        made.append(self._defined(t.Import(first, t.Dotted(helper.mode), site)))
        made.append(self._defined(t.Call(first + 1, first, (), site)))
        made.append(self._defined(t.Enter(first + 2, first + 1, site)))
        return first + 1

    def _returned(self, event: t.Return, frame: _Frame) -> list[t.Event]:
        site = self._site(event.site, frame)
        if event.value >= 0:
            return [t.Bind(frame.result, event.value + frame.shift, site)]
        nothing = self._defined(t.Const(self._new(), None, site))
        return [nothing, t.Bind(frame.result, len(self.definitions) - 1, site)]


def _single(given: Mapping[str, Given]) -> dict[str, int | t.Const]:
    """What stands for the parameters that are given one thing."""
    return {name: value for name, value in given.items() if isinstance(value, int | t.Const)}


def _keys(value: Given) -> tuple[int | str, ...] | None:
    """The places or keys of what is left for a parameter that gathers it; `None` of another one."""
    if isinstance(value, int | Part | t.Const):
        return None
    return tuple(value) if isinstance(value, dict) else tuple(range(len(value)))


def _parts_of(frame: _Frame, register: int) -> tuple[int | str, ...] | None:
    """The places or keys of all that stands in the tuple, list or dictionary of a register, if they are known."""
    made = frame.m.unit.definitions[register] if register >= 0 else None
    if isinstance(made, t.Load) and made.name in frame.rests:
        return frame.rests[made.name]
    refs = frame.m.value(register).refs
    names = [slot[1] for slot in frame.m.state.slot_names(refs[0])] if len(refs) == 1 else []
    obj = frame.m.state.object(refs[0]) if len(refs) == 1 else None
    if obj is None or obj.owner not in ("", LOCAL) or obj.kind not in CONTAINERS or refs[0] in frame.m.shallow_of:
        return None
    if obj.kind is Kind.DICT and all(name.startswith("['") for name in names):
        return tuple(name[2:-2] for name in names)
    places = {f"[{place}]" for place in range(len(names))}
    return tuple(range(len(names))) if obj.kind is not Kind.DICT and set(names) == places else None


def _is_hidden(name: str) -> bool:
    return "#" in name or name.startswith("%")


def _function(m: Machine, register: int, known: Mapping[str, int]) -> int | None:
    """The function of the file that a register holds; `known` are the parameters of which it is known what they are."""
    made = m.unit.definitions[register] if register >= 0 else None
    if isinstance(made, t.Load) and made.name in known:
        return known[made.name]
    reference = m.value(register).const
    number = reference.unit if isinstance(reference, FunctionReference) else None
    return number if number is not None and _is_ready(m.world, number) else None


def _passed_functions(
    m: Machine, event: t.Call | t.Invoke | t.Attribute, known: Mapping[str, int] = NOTHING_KNOWN
) -> list[int]:
    """The functions of the file that a call passes."""
    given = event.arguments if isinstance(event, t.Call | t.Invoke) else ()
    found = (_function(m, one.register, known) for one in given if not one.stars)
    return [number for number in found if number is not None]


def _called(m: Machine, event: t.Call | t.Invoke | t.Attribute, known: Mapping[str, int] = NOTHING_KNOWN) -> int | None:
    """The function of this file that surely is called: a property, a method, or a function of the module."""
    world = m.world
    if isinstance(event, t.Call):
        return _function(m, event.function, known)
    value = m.value(event.base)
    if len(value.refs) != 1:
        return None
    obj = m.state.object(value.refs[0])
    owner = world.local_class(obj.type)
    if owner is None or obj.kind not in (Kind.INSTANCE, Kind.MODULE):
        return None
    if obj.kind is Kind.MODULE and event.name in ("forward", "__call__"):
        # What a network returns has a graph over all of it.
        return None
    number = world.method(owner, event.name)
    if number is None or not _is_ready(world, number) or world.overriding(number):
        return None
    is_property = "property" in world.decorators(number)
    return number if is_property is isinstance(event, t.Attribute) else None


def _is_ready(world: World, number: int) -> bool:
    return world.is_own(number) and number in world.machines
