"""Which functions of a file can stand in the places of their calls, and which calls may tell more where they do."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from torchcopylint.flow import tape as t
from torchcopylint.flow.references import FunctionReference
from torchcopylint.flow.tapes import callees, decorating, effects, moving, uses
from torchcopylint.flow.values import kinds
from torchcopylint.flow.values.modes import GRAD_MODES
from torchcopylint.knowledge import table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from torchcopylint.flow.files.world import World
    from torchcopylint.flow.running.machine import Machine
    from torchcopylint.flow.tapes.index import UnitIndex

MAX_HELPER = 250
MAX_DEPTH = 4
"""So deep, helpers are put into helpers."""
_BODILY = (t.Class, t.Yield, t.StarImport)
_OF_ITS_PLACE = frozenset({"locals", "globals", "vars", "eval", "exec", "__class__"})
_TRAINING = frozenset({"backward", "step", "grad", "zero_grad"})
_GROWING = frozenset({"append", "extend", "insert", "appendleft", "update", "setdefault"})
_BUILDING = frozenset({"parameters", "named_parameters"})
"""Constructors that deal in these may build optimizers, also by way of a helper."""


class Helper(NamedTuple):
    """A function that can stand in the place of a call. In `tape`, nothing but the end of a `with` is behind a
    `return`."""

    unit: t.Unit
    tape: t.Tape
    own: frozenset[str]
    binds: frozenset[str]
    mode: str


class Helpers:
    """The functions of a file that can be put in the places of their calls. One for each file."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._helpers: dict[int, Helper | None] = {}
        self._called: dict[tuple[int, int], tuple[callees.Called, ...]] = {}
        self._reach: dict[int, dict[int, tuple[int, ...]]] = {}
        self._signs: dict[int, frozenset[effects.Sign]] = {}
        self._dealing: dict[tuple[int, frozenset[str]], list[int] | None] = {}
        outermost = [unit for unit in world.program.units if unit.kind == "function" and unit.parent == 0]
        # A guest has its name elsewhere.
        outermost.sort(key=lambda unit: unit.number not in world.guests.origins)
        self._functions = {unit.name: unit.number for unit in outermost}

    def concern(self, m: Machine) -> bool:
        """Whether a unit is to be looked at with all its helpers in it: it trains, or writes what others have made."""
        if m.unit.kind == "module":
            keeping = any(self._keeps(number) for number in self._reached(m))
            own = keeping and self._deals_in(m.unit, _TRAINING)
            return own or self._calls_trainer(m) or self._reaches_training(m)
        names = _TRAINING | _BUILDING if m.unit.name == "__init__" else _TRAINING
        return m.unit.kind == "function" and (
            self._deals_in(m.unit, names)
            or self._adds_to_given(m)
            or self._gives_to_optimizer(m)
            or self._reaches_training(m)
        )

    def _keeps(self, number: int) -> bool:
        """Whether a helper puts something into a container or a field, other than where an object is made."""
        unit = self.world.program.units[number]
        index = self.world.index(unit)
        if unit.name == "__init__":
            return False
        grows = any(event.name in _GROWING for event in index.of(t.Invoke))
        return grows or bool(index.of(t.StoreAttribute)) or bool(index.of(t.StoreItem))

    def _reaches_training(self, m: Machine) -> bool:
        """Whether a helper trains that a unit calls, also by way of others: of objects of whose class it is sure."""
        return any(effects.Sign.TRAINS in self._signs_of(number) for number in self._reached(m))

    def telling(self, m: Machine) -> tuple[frozenset[int], bool]:
        """The helpers that a unit calls, also by way of others, which may tell more where they stand: what they do
        meets what it does itself, or what another one of them does (`effects`). So do those that call these. And
        whether functions are among what is handed on, so that more is known even of what the unit does alone."""
        called = self._reached(m) if m.unit.kind in ("function", "module") else {}
        helpers = {number: self._signs_of(number) for number in called if self._signs_of(number)}
        calling = (number for number, callees in called.items() if callees)
        own = self._signs_of(m.unit.number)
        pending = effects.meeting(own, helpers, calling) if helpers else []
        handing_on = frozenset(self._handing_on(m, called))
        pending += [number for number in sorted(handing_on) if number not in pending]
        found: set[int] = set()
        while pending:
            found.update(pending)
            # What stands in a function sees its names, and a method the fields that the constructor has set.
            around = {self.world.program.units[number].parent for number in pending} & called.keys()
            above = {number for number, callees in called.items() if not found.isdisjoint(callees)}
            pending = list((around | above | self._constructors(pending, called)) - found)
        return frozenset(found), bool(handing_on)

    def _constructors(self, numbers: Iterable[int], called: Iterable[int]) -> set[int]:
        """The constructors among those that are `called` of the objects that some methods may be called on."""
        units = self.world.program.units
        owners = {units[number].owner for number in numbers} - {-1}
        makers = [number for number in called if owners and units[number].name == "__init__"]
        return {
            number
            for number in makers
            if any(one in self.world.lineage(units[number].owner) for one in owners)
            or any(units[number].owner in self.world.lineage(one) for one in owners)
        }

    def _handing_on(self, m: Machine, called: Mapping[int, tuple[int, ...]]) -> Iterator[int]:
        """The helpers that are passed functions which they call, those that return one of their own, with that, and
        methods that have got a name (`get = box.get; get()`): what comes back hangs on what the function is. And those
        that bind names of the module or of a function around them."""
        units = self.world.program.units
        for number in called:
            helper = self.helper(number)
            if helper is not None and any(not _is_hidden(name) for name in helper.binds - helper.own):
                yield number
            summary = self.world.summary(number)
            if summary is not None and summary.function in called:
                yield from (number, summary.function)
        calling = [number for number in called if _calls_parameter(self.world.index(units[number]), units[number])]
        for caller in (m, *(self.world.machines[number] for number in called)) if called else ():
            calls: list[t.Call | t.Invoke] = [*caller.index.of(t.Call), *caller.index.of(t.Invoke)]
            for call in calls:
                by_name = call.__class__ is t.Call and uses.method_named(caller, call.function) is not None
                one = callees.called(caller, call) if by_name or (calling and call.arguments) else None
                passes = one is not None and one.number in calling and callees.passed_functions(caller, call)
                if one is not None and (by_name or passes) and one.number in called:
                    yield one.number

    def do_nothing(self, m: Machine) -> bool:
        """Whether a unit calls no helper, or does nothing that a rule speaks of, nor do those that it calls."""
        called = self._reached(m)
        return not called or not any(self._signs_of(number) for number in (m.unit.number, *called))

    def _reached(self, m: Machine) -> dict[int, tuple[int, ...]]:
        """The helpers that a unit calls, as deep as they are put in, each with those that it calls."""
        if m.unit.number not in self._reach:
            self._reach[m.unit.number] = self._looked_for(m)
        return self._reach[m.unit.number]

    def _looked_for(self, m: Machine) -> dict[int, tuple[int, ...]]:
        found: dict[int, dict[int, None]] = {}
        seen: set[callees.Called] = set()
        pending = list(self._callees(m.unit.number, -1))
        if not pending:
            return {}
        for _ in range(MAX_DEPTH):
            seen.update(pending)
            below = [(one, callee) for one in pending for callee in self._callees(one.number, one.receiver)]
            for one in pending:
                found.setdefault(one.number, {})
            for one, callee in below:
                found[one.number][callee.number] = None
            pending = list(dict.fromkeys(callee for _, callee in below if callee not in seen))
        found.pop(m.unit.number, None)
        return {number: tuple(called) for number, called in found.items()}

    def _callees(self, number: int, receiver: int) -> tuple[callees.Called, ...]:
        """The helpers that a unit calls, or passes, if its object is of a class for sure, or -1."""
        if (number, receiver) not in self._called:
            m = self.world.machines[number]
            found: list[callees.Called] = []
            calls: list[t.Call | t.Invoke] = [*m.index.of(t.Call), *m.index.of(t.Invoke)]
            for call in calls:
                called = callees.called(m, call, receiver=receiver) if callees.may_lead(m, call) else None
                found += [called] if called is not None else []
                found += [callees.Called(one) for one in callees.passed_functions(m, call)] if call.arguments else []
            looked_at = (one for one in m.index.of(t.Attribute) if callees.may_lead(m, one))
            found += [called for one in looked_at if (called := callees.called(m, one, receiver=receiver)) is not None]
            own = {(one.number, one.receiver): one for one in found if self.helper(one.number) is not None}
            self._called[number, receiver] = tuple(own.values())
        return self._called[number, receiver]

    def _signs_of(self, number: int) -> frozenset[effects.Sign]:
        if number not in self._signs:
            self._signs[number] = effects.signs(self.world.machines[number])
        return self._signs[number]

    def _calls_trainer(self, m: Machine) -> bool:
        """Whether the body of a module, which is long as a rule, calls something that trains or writes itself."""
        calls: list[t.Call | t.Invoke] = [*m.index.of(t.Call), *m.index.of(t.Invoke)]
        numbers = {called.number for call in calls if (called := callees.called(m, call)) is not None}
        units = [self.world.program.units[number] for number in numbers if self.helper(number) is not None]
        return any(self._deals_in(unit, _TRAINING) for unit in units)

    def _gives_to_optimizer(self, m: Machine) -> bool:
        """Whether a unit builds an optimizer, and calls a function of the file that may tell of what."""
        calls: list[t.Call | t.Invoke] = [*m.index.of(t.Call), *m.index.of(t.Invoke)]
        builds = any(kinds.is_optimizer_class(m.dotted_of(call)) for call in calls)
        return builds and any(callees.called(m, call) is not None for call in calls)

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

    def _deals_in(self, unit: t.Unit, names: frozenset[str]) -> bool:
        """Whether a unit, or a function of the file that it calls, uses an attribute or method of one of some names."""
        pending, seen = [unit], {unit.number}
        while pending:
            current = pending.pop()
            inside = [event.unit for event in self.world.index(current).of(t.Function)]
            seen.update(inside)
            pending += [self.world.program.units[number] for number in inside if current.kind != "module"]
            key = (current.number, names)
            if key not in self._dealing:
                self._dealing[key] = self._asked_by(current, names)
            asked = self._dealing[key]
            if asked is None:
                return True
            for number in asked:
                if number not in seen and len(seen) < 20:
                    seen.add(number)
                    pending.append(self.world.program.units[number])
        return False

    def _asked_by(self, unit: t.Unit, names: frozenset[str]) -> list[int] | None:
        """The functions of the file that a unit itself calls or passes, by their names; `None` if it uses an attribute
        or method of one of some names."""
        used = self.world.index(unit).named
        if any(e.__class__ is not t.Load and (e.name in names or effects.is_in_place(e.name)) for e in used):
            return None
        defaults = {parameter.name for parameter in unit.parameters if parameter.has_default}
        found: dict[int, None] = {}
        for event in used:
            if event.__class__ is not t.Load:
                number = self._of_class(unit.owner, event.name) if unit.owner >= 0 else None
            else:
                own = event.name in unit.bound and unit.kind != "module"
                number = self._functions.get(event.name) if not own else None
                if number is None and event.name in defaults:
                    number = self._by_default(unit, event.out)
            # What a guest writes itself, its summary says.
            if number is not None and number not in self.world.guests.origins and self.world.is_own(number):
                found[number] = None
        return list(found)

    def _of_class(self, owner: int, name: str) -> int | None:
        """A method of a class, or a function of the file that a field holds."""
        number = self.world.method(owner, name)
        return number if number is not None else callees.held_in_field(self.world, owner, name)

    def _by_default(self, unit: t.Unit, register: int) -> int | None:
        """The function of the file that a parameter is, as its default, where it is loaded into a register."""
        machine = self.world.machines.get(unit.number)
        reference = machine.value(register).const if machine is not None else None
        return reference.unit if isinstance(reference, FunctionReference) else None

    def helper(self, number: int) -> Helper | None:
        """What can be put in for a function of this file."""
        if number not in self._helpers:
            self._helpers[number] = self._made(self.world.program.units[number])
        return self._helpers[number]

    def _made(self, unit: t.Unit) -> Helper | None:
        if unit.kind not in ("function", "lambda") or unit.is_generator or len(unit.definitions) > MAX_HELPER:
            return None
        events = self.world.index(unit).events
        if len(events) > MAX_HELPER or any(isinstance(event, _BODILY) for event in events):
            return None
        if unit.number not in self.world.guests.origins and any(event.__class__ is t.Import for event in events):
            return None
        names = {event.name for event in events if (event.__class__ is t.Bind or event.__class__ is t.Delete)}
        # Others are of the module, or of a function around it.
        own = {name for name in names if _is_hidden(name) or name in unit.bound}
        own |= {parameter.name for parameter in unit.parameters}
        if any(event.__class__ is t.Load and event.name in _OF_ITS_PLACE for event in events):
            return None
        if any(event.__class__ is t.Load and event.name == "super" for event in events) and not self._resolves(unit):
            return None
        mode = self._mode(unit.number)
        tape = moving.ending(unit.tape, unit.site) if mode is not None else None
        return Helper(unit, tape, frozenset(own), frozenset(names), mode or "") if tape is not None else None

    def _resolves(self, unit: t.Unit) -> bool:
        """Whether a method asks `super()` for its constructor alone; those of others do nothing here."""
        made = unit.definitions
        named = {event.out for event in made if isinstance(event, t.Load) and event.name == "super"}
        calls = {event.out: event for event in made if isinstance(event, t.Call) and event.function in named}
        asked = [event for event in made if isinstance(event, t.Invoke) and event.base in calls]
        plain = len(named) == len(calls) == len(asked) and not any(call.arguments for call in calls.values())
        return plain and unit.owner >= 0 and all(event.name == "__init__" for event in asked)

    def _mode(self, number: int) -> str | None:
        """The grad mode that a function's decorators set, or an empty text; `None` if they do something else."""
        found = ""
        for decorator in self.world.decorators(number):
            resolved = table.canonical(self.world.resolve_name(decorator.partition("(")[0]))
            if resolved in GRAD_MODES:
                found = resolved
            elif decorator not in ("property", "staticmethod", "classmethod") and not self._is_wrapper(decorator):
                return None
        return found

    def _is_wrapper(self, decorator: str) -> bool:
        """Whether a decorator is a function of the file that has nothing to do with grad mode: as a rule, what it makes
        of a function calls that."""
        number = self._functions.get(decorator)
        summary = self.world.summary(number) if number is not None else None
        return summary is not None and summary.function >= 0 and not decorating.sets_mode(self.world, decorator)

    def default(self, unit: int, name: str) -> t.Const | None:
        """The default of a parameter, if it is a literal."""
        return self.world.defaults.get(unit, {}).get(name)


def _calls_parameter(index: UnitIndex, unit: t.Unit) -> bool:
    """Whether a unit calls one of its parameters."""
    parameters = {parameter.name for parameter in unit.parameters}
    called = (unit.definitions[call.function] for call in index.of(t.Call) if call.function >= 0)
    return any(isinstance(one, t.Load) and one.name in parameters for one in called)


def _is_hidden(name: str) -> bool:
    return "#" in name or name.startswith("%")
