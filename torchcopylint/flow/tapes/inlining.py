"""A unit with its helpers in it: where it calls a function or method of the file, the tape of that stands instead.

A summary says what a helper does to its arguments; what it does to what it reaches through them (gradients, fields of
fields, elements of containers, the leaves that a property returns) is seen where its events are run in the place of
the call. Names and registers of a helper are its own for each call; its sites are numbered between those of the caller,
so that what happens first has the lower number. `Expanded.places` leads back from there to the sites of the program.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import CONTAINERS, LOCAL, Kind
from torchcopylint.flow.references import Super
from torchcopylint.flow.tapes import callees, constants, moving
from torchcopylint.flow.tapes.helpers import MAX_DEPTH, Helper, Helpers
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

MAX_EVENTS = 1200
HELPERS_NAME = "#in"
"""Stands in each name of a helper that was put in, before its number."""


class Part(NamedTuple):
    """What stands in a tuple or a dictionary, that of a register, which is passed by `*` or `**`."""

    register: int
    key: int | str


class Name(NamedTuple):
    """What the object of a method goes by there, which it hands on: `super().__init__(x)`."""

    name: str


One: TypeAlias = "int | Part | Name"
Given: TypeAlias = "int | Part | Name | t.Const | tuple[One, ...] | dict[str, One]"
"""What a parameter is given: a register, a part of what one holds, a name, a constant, or what is left for `*rest` and
`**rest`."""


class Expanded(NamedTuple):
    """A unit with helpers in it.

    `places` are the sites of the program by the sites of its events: that of the event, behind those of the calls that
    lead to it. `handed` are the sites at which a helper is given something: nobody puts that aside. `whole` is
    whether helpers are in it that tell nothing by themselves. `constructing` are the sites of the program that call a
    constructor, which returns nothing. `through` is whether functions that are handed on have been put in.
    """

    unit: t.Unit
    places: Mapping[int, tuple[int, ...]]
    handed: frozenset[int]
    whole: bool
    constructing: frozenset[int]
    through: bool


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
    receiver: int = -1
    """The class that the object of a method surely is of, or -1."""


def is_result(m: Machine, load: t.Load) -> bool:
    """Whether a load is what became of a call in whose place a helper stands: what that has just bound, on each path
    that comes back from it. Its site is that of the call, and so in front of all that the helper does."""
    return HELPERS_NAME in load.name and all(load.site < bind.site for bind in m.index.binds.get(load.name, ()))


def expanded(helpers: Helpers, m: Machine, base: int) -> Expanded | None:
    """A unit with its helpers in it, and its sites from `base` on; `None` if it has none that matter."""
    whole = helpers.concern(m)
    telling, through = helpers.telling(m)
    if not telling and (not whole or helpers.do_nothing(m)):
        return None
    return _Expansion(helpers, m, telling, whole=whole).result(base, through=through)


class _Expansion:
    """One unit on its way."""

    def __init__(self, helpers: Helpers, m: Machine, telling: frozenset[int], *, whole: bool) -> None:
        """`telling` are the helpers that are put in in any case; with `whole`, all of the file's own are."""
        self.helpers = helpers
        self.whole = whole
        self.telling = telling
        self.scopes: dict[int, Mapping[str, str] | None] = {m.unit.number: {}}
        """The names of each unit that has been put in; `None` if it was so more than once."""
        self.m = m
        self.definitions: list[t.Event | None] = [None] * len(m.unit.definitions)
        self.keys: dict[tuple[int, ...], int] = {}
        self.uses = dict(m.unit.uses)
        self.bound = set(m.unit.bound) | {parameter.name for parameter in m.unit.parameters}
        self.count = 0
        self.handed: set[int] = set()
        self.constructing: set[int] = set()
        self.events = len(m.index.events)

    def result(self, base: int, *, through: bool) -> Expanded | None:
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
        handed = frozenset(ranks[site] for site in self.handed if site >= 0)
        return Expanded(expanded, places, handed, self.whole, frozenset(self.constructing), through)

    def _site(self, site: int, frame: _Frame) -> int:
        return self.keys.setdefault((*frame.prefix, site), len(self.keys)) if site >= 0 else site

    def _tape(self, tape: t.Tape, frame: _Frame) -> t.Tape:
        found: list[t.Event] = []
        for event in tape:
            put = (
                self._instead(event, frame)
                if (event.__class__ is t.Call or event.__class__ is t.Invoke or event.__class__ is t.Attribute)
                else None
            )
            arm = constants.only_arm(frame.m.unit, event, frame.told) if event.__class__ is t.Branch else None
            if put is not None:
                found += put
            elif event.__class__ is t.Return and frame.result:
                found += self._returned(event, frame)
            elif arm is not None:
                found += self._tape(arm, frame)
            elif event.__class__ is not t.Reveal:
                found.append(self._moved(event, frame))
        return tuple(found)

    def _moved(self, event: t.Event, frame: _Frame) -> t.Event:
        """An event as it stands in the expanded unit."""
        if frame.result and _is_super(frame.m, event):
            made = cast(t.Call, event).out + frame.shift
            return self._defined(t.Const(made, Super(frame.m.unit.owner), self._site(event.site, frame)))
        changes: dict[str, Any] = {"site": self._site(event.site, frame)}
        if event.__class__ is t.Branch or event.__class__ is t.Loop or event.__class__ is t.Try:
            changes |= t.changed_inside(event, lambda inner: self._tape(inner, frame))
        elif frame.result:
            changes |= moving.shifted(event, frame.shift, frame.names)
        moved = event._replace(**changes)
        if event.__class__ is t.Bind:
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
        called = callees.called(frame.m, event, frame.functions, frame.receiver)
        if called is None or called.number in frame.units:
            return None
        helper = self.helpers.helper(called.number)
        if helper is None or not self._is_telling(called.number, event, frame):
            return None
        outside = self._outside(helper)
        given = self._arguments(helper, event, frame, called) if outside is not None else None
        if given is None or outside is None:
            return None
        return self._put(helper, event, frame, given, outside, called)

    def _is_telling(self, number: int, event: t.Call | t.Invoke | t.Attribute, frame: _Frame) -> bool:
        """Whether a helper is to be put in, or one that it is passed."""
        if number in self.telling or (self.whole and number not in self.m.world.guests.origins):
            return True
        return not self.telling.isdisjoint(callees.passed_functions(frame.m, event, frame.functions))

    def _outside(self, helper: Helper) -> dict[str, str] | None:
        """What the names that a helper takes from the function around it are called here; `None` if there is no room
        for it, or if what it takes from outside means something else here."""
        size = len(self.m.world.index(helper.unit).events)
        if self.events + size > MAX_EVENTS:
            return None
        loads = {e.name for e in helper.unit.definitions if e.__class__ is t.Load} | helper.binds
        loads -= helper.own
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
        self, helper: Helper, event: t.Call | t.Invoke | t.Attribute, frame: _Frame, called: callees.Called
    ) -> dict[str, Given] | None:
        """What stands for each parameter: a register of the frame's unit, several for `*rest`, or a default."""
        unit = helper.unit
        passed = self._passed(event, frame)
        if passed is None:
            return None
        positional, named = passed
        if called.base >= 0:
            positional = [called.base, *positional]
        elif called.above:
            positional = [Name(frame.m.unit.first), *positional]
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
            elif one.name not in found and (default := self.helpers.default(unit.number, one.name)) is not None:
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
        helper: Helper,
        event: t.Call | t.Invoke | t.Attribute,
        frame: _Frame,
        given: Mapping[str, Given],
        outside: Mapping[str, str],
        called: callees.Called,
    ) -> list[t.Event]:
        self.count += 1
        mark = f"{HELPERS_NAME}{self.count}"
        names = {**outside, **{name: name + mark for name in helper.own}}
        text = naming.text_of(frame.m, event.out)
        user = frame.m.index.consumers.get(event.out) if called.constructs else None
        mine = user.name if isinstance(user, t.Bind) else ""
        site = self._site(event.site, frame)
        made: list[t.Event] = []
        if called.constructs:
            # A constructor is given what the call makes.
            made.append(self._moved(event, frame))
            self.constructing.add(event.site)
        me = helper.unit.first if helper.unit.owner >= 0 else ""
        for name, value in given.items():
            root = frame.m.unit.definitions[value] if isinstance(value, int) else value
            if isinstance(root, t.Load | Name) and name not in helper.binds:
                # Another name for what has one would tell nobody anything.
                names[name] = frame.names.get(root.name, root.name)
                continue
            if name == me and isinstance(value, int):
                names[me] = (mine or naming.text_of(frame.m, value)) + mark
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
                if (number := callees.function_in(frame.m, value, frame.functions)) is not None
            },
            called.receiver,
        )
        self.scopes[helper.unit.number] = names if helper.unit.number not in self.scopes else None
        entered = self._entered(helper, site, made)
        made += self._tape(helper.tape, inner)
        made += [t.Exit(entered, site)] if entered >= 0 else []
        # What goes by a name of the module, or of a function around, is not bound here.
        self.bound |= {text + mark, *(name for name in names.values() if name.endswith(mark))}
        if not called.constructs:
            made.append(self._defined(t.Load(event.out + frame.shift, text + mark, site)))
        return made

    def _given(self, value: Given, site: int, frame: _Frame, made: list[t.Event]) -> int:
        if isinstance(value, int):
            return value + frame.shift
        if isinstance(value, Name):
            made.append(self._defined(t.Load(self._new(), frame.names.get(value.name, value.name), site)))
        elif isinstance(value, Part):
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

    def _entered(self, helper: Helper, site: int, made: list[t.Event]) -> int:
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


def _is_super(m: Machine, event: t.Event) -> bool:
    """Whether an event is `super()`."""
    function = m.unit.definitions[event.function] if event.__class__ is t.Call and event.function >= 0 else None
    return function.__class__ is t.Load and function.name == "super"


def _single(given: Mapping[str, Given]) -> dict[str, int | t.Const]:
    """What stands for the parameters that are given one thing."""
    return {name: value for name, value in given.items() if isinstance(value, int | t.Const)}


def _keys(value: Given) -> tuple[int | str, ...] | None:
    """The places or keys of what is left for a parameter that gathers it; `None` of another one."""
    if isinstance(value, int | Part | Name | t.Const):
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
    if (
        obj is None
        or obj.owner not in ("", LOCAL)
        or obj.kind not in CONTAINERS
        or refs[0] in frame.m.holding.shallow_of
    ):
        return None
    if obj.kind is Kind.DICT and all(name.startswith("['") for name in names):
        return tuple(name[2:-2] for name in names)
    places = {f"[{place}]" for place in range(len(names))}
    return tuple(range(len(names))) if obj.kind is not Kind.DICT and set(names) == places else None
