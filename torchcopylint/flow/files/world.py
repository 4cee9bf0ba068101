"""One file as a whole: its imports, classes, functions, and in which order they are run.

The module body runs first, so that functions know its imports and globals; then the `__init__` of every class, so that
methods know the fields; then every other function, callees before callers, so that callers know what they call. A unit
is run once more if what is known of its parameters is not what it was run with. The first time the module body only
glances at its loops; it is run to the end if it has any, or wants to know anything that running others has shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from torchcopylint.base.lazily import kept_property
from torchcopylint.flow import tape as t
from torchcopylint.flow.files import entry_modes, guests
from torchcopylint.flow.files.outer_names import OuterNames
from torchcopylint.flow.files.told import ToldSummaries
from torchcopylint.flow.interprocedural import class_bodies, returned
from torchcopylint.flow.interprocedural.summaries import Summary, summarise
from torchcopylint.flow.library import custom
from torchcopylint.flow.model import (
    BUFFERS,
    CONTAINERS,
    Cell,
    Fact,
    Kind,
    Object,
    Sure,
    Value,
)
from torchcopylint.flow.networks import common_layers
from torchcopylint.flow.program import children, heirs, hollow, training_fields, training_returns
from torchcopylint.flow.running.machine import Machine
from torchcopylint.flow.storages import comparing, field_uses, merged, mixing, written_sides
from torchcopylint.flow.tapes.index import UnitIndex
from torchcopylint.flow.values import idioms
from torchcopylint.flow.values.outside import Outside
from torchcopylint.flow.values.state import Mode, State

MAX_ROUNDS = 3
"""So often, units are run again for what others have learnt."""
MAX_NESTED_RUNS = 8
"""So many units may wait for one another to be run."""
MAX_TESTING = 80
"""Functions of so many events are run once more for what they return of tensors."""


_TELLING = BUFFERS | CONTAINERS | {Kind.MODULE, Kind.OPTIMIZER, Kind.INSTANCE}
"""A guest that is given one of these is run."""


class World(OuterNames):
    """See the module."""

    def __init__(self, program: t.Program, outside: Outside | None = None) -> None:
        outside = outside or Outside()
        self.own_units = program.units
        self.own_classes = program.classes
        program, self.guests = guests.invite(program, outside)
        super().__init__(program, outside)
        self._decorators |= self.guests.decorators
        self._class_names = {info.name: info.number for info in self.own_classes}
        self.outside.number_from(len(program.units), len(program.classes))
        self.steps = 0
        self.inherited: list[Machine] = []
        self._of_heirs: dict[heirs.Inherited, Summary] = {}
        self.used_up: dict[int, dict[str, tuple[int, int]]] = {}
        self.call_modes: dict[int, list[tuple[int, Mode]]] = {}
        self._leaves_off = False
        self._over_returned: dict[int, bool] = {}
        self._summaries: dict[int, Summary] = {}
        self._told = ToldSummaries(self)
        self._running: set[int] = set()
        self._too_early: dict[int, set[int]] = {}
        self._for_constructors: set[int] = set()
        self._seen_arguments: dict[int, dict[str, Object]] = {}
        self.called_at: dict[int, int] = {}
        """Where in this file a guest is first given something of which it is known what it is."""

    def place(self, site: int) -> tuple[str, int] | None:
        """The file, and the site there, of what is a guest's; `None` for a site of this file."""
        return self.guests.place(site)

    def is_of_file(self, unit: int) -> bool:
        """Whether a function stands in this file, and is no guest."""
        return unit < len(self.own_units)

    def is_run(self, unit: int) -> bool:
        """Whether a function stands in this file, or is a guest that has been run."""
        return self.is_of_file(unit) or unit in self._summaries

    def class_elsewhere(self, number: int) -> tuple[str, int] | None:
        """The file of a class that is none of this one, and its number there."""
        return self.guests.classes.get(number) if self.is_own_class(number) else self.outside.class_origin(number)

    def roles_at_home(self, guest: int) -> frozenset[str]:
        """As what autograd calls a guest, as far as its own file says."""
        facts = self.outside.function_facts(*self.guests.origins[guest])
        return facts.roles if facts is not None else frozenset()

    # -- running

    @kept_property
    def _called_modules(self) -> frozenset[tuple[int, str]]:
        return field_uses.called_modules(self.program.units)

    @kept_property
    def written_places(self) -> dict[str, list[tuple[int, int]]]:
        """The fields and globals whose memory is written (`written_sides`), once all units have been run."""
        return written_sides.places(self)

    def is_called_module(self, type_name: str, name: str) -> bool:
        """Whether the methods of a class show that a field holds a network: see `field_uses`."""
        local = self.local_class(type_name) if self._called_modules else None
        return local is not None and any((current, name) in self._called_modules for current in self.lineage(local))

    def has_no_parameters(self, number: int) -> bool:
        """Whether the instances of a class surely have no parameters."""
        return hollow.has_no_parameters(self, number)

    def run(self) -> None:
        """Run every unit of the file."""
        self.run_unit(0, glancing=len(self.program.units) > 1)
        helpers = self._helpers()
        guests = self.program.classes[len(self.own_classes) :]
        for info in (*guests, *self.own_classes):
            if class_bodies.makes_attributes(self, info):
                self.run_unit(info.body)
        for info in (*guests, *self.own_classes):
            initial = info.methods.get("__init__")
            if initial is not None and (self.is_of_file(initial) or initial not in self.machines):
                for helper in self._called_by(initial, helpers):
                    self.run_unit(helper)
                self.run_unit(initial)
        for number in self._for_constructors:
            # By now, all fields are known.
            del self.machines[number]
        for unit in self._in_order():
            if unit.number not in self.machines and unit.kind != "module":
                self.run_unit(unit.number)
        callers: set[int] = set()
        for number in sorted(self._too_early):
            # Instances are called by no name that tells the order: `augment(image)`.
            if any(callee in self._summaries for callee in self._too_early[number] - {number}):
                callers |= self._run_again(number)
        callers |= self._run_rebound() | mixing.by_constructor(self)
        for _ in range(MAX_ROUNDS):
            # What a caller has learnt, it hands on to others.
            above = {further for number in sorted(callers) for further in self._run_again(number)}
            callers = (above - callers) | self._run_rebound(of_a_kind=True)
            if not callers:
                break
        if self._module_asked or self.machines[0].cut_short:
            self.run_unit(0)
        for one in heirs.inherited(self):
            self._run_for(one)

    def _run_for(self, one: heirs.Inherited) -> None:
        """Run an inherited method on an object of the class that inherits it."""
        unit = self.program.units[one.number]
        outer, self._current, self._standing_in = self._current, one.number, one.heir
        machine = Machine(self, unit, State(self._entry_mode(unit)))
        self._bind_parameters(machine)
        machine.run_unit()
        self._current, self._standing_in = outer, -1
        self.steps += machine.steps
        self.inherited.append(machine)
        self._of_heirs[one] = summarise(machine)

    def _run_rebound(self, *, of_a_kind: bool = False) -> set[int]:
        """Run the units once more whose parameters are bound to something else by now; returns who calls them, as
        `_run_again` does. `of_a_kind` leaves those as they are of which all that is new is that less is known."""
        callers: set[int] = set()
        for number in sorted(self._arguments):
            changed = self._arguments[number] != self._seen_arguments.get(number, {})
            if changed and number in self.machines and self._bound_otherwise(number, of_a_kind=of_a_kind):
                callers |= self._run_again(number)
        return callers

    def let_go(self) -> None:
        """Give up all that is known. Units, their world and what it asks hold one another, which only a collection
        would notice."""
        vars(self).clear()

    def _run_again(self, number: int) -> set[int]:
        """Run a unit once more; returns who calls it, if what it does is not what it was known to do, and which methods
        read a field of their object into which it has put something else."""
        before = self._summaries.get(number)
        put = self.put_by(number)
        self.take_back(number)
        self.run_unit(number)
        again = self._readers(number, {name.partition("[")[0] for (_, name), _ in set(self.put_by(number)) - set(put)})
        if self._summaries.get(number) != before:
            again |= {caller for caller, _ in self.call_modes.get(number, ())}
            self._module_asked = self._module_asked or 0 in again
        return again - {0}

    def _readers(self, number: int, fields: Set[str]) -> set[int]:
        """The methods of the class of a method, and of those that inherit from it, that speak of some fields."""
        if not fields:
            return set()
        owner = self.program.units[number].owner
        heirs_of = {info.number for info in self.own_classes if owner in self.lineage(info.number)}
        methods = [unit for unit in self.own_units if unit.owner in heirs_of and unit.kind == "function"]
        spoken_of = {unit.number: {event.name for event in self.index(unit).named} for unit in methods}
        return {unit.number for unit in methods if unit.name != "__init__" and fields & spoken_of[unit.number]}

    def _helpers(self) -> dict[str, list[int]]:
        """The functions of the module, by name, that make nothing of a class of this file: they may be run before the
        constructors, which then know what they return."""
        if not self.program.classes:
            return {}
        found: dict[str, list[int]] = {}
        for unit in self.own_units:
            if unit.kind == "function" and unit.parent == 0 and unit.owner < 0:
                makes = any(e.__class__ is t.Load and e.name in self._class_names for e in unit.definitions)
                if not makes:
                    found.setdefault(unit.name, []).append(unit.number)
        return found

    def _called_by(self, initial: int, helpers: dict[str, list[int]]) -> list[int]:
        called = dict.fromkeys(self._callees(self.program.units[initial], helpers))
        return [number for number in called if number not in self.machines]

    def run_unit(self, number: int, *, glancing: bool = False) -> None:
        """Run one unit and keep its summary. `glancing` runs each loop once, to learn what names it binds."""
        unit = self.program.units[number]
        self._told.forget(number)
        if unit.parent > 0 and unit.parent not in self.machines and unit.parent not in self._running:
            self.run_unit(unit.parent)
        self._running.add(number)
        outer, self._current = self._current, number
        machine = Machine(self, unit, State(self._entry_mode(unit)))
        machine.glancing = glancing
        self._seen_arguments[number] = dict(self._arguments.get(number, {}))
        self._bind_parameters(machine)
        machine.run_unit()
        self._note_export_elements(machine)
        mixing.note(machine)
        merged.note(machine)
        comparing.note(machine)
        if unit.owner >= 0 and (machine.fields.initial or unit.name == "__init__"):
            self.appended(machine)
        if unit.owner >= 0 and unit.name == "__init__":
            self._note_trained(unit.owner, training_fields.learn(machine))
            self.note_children(unit.owner, children.learn(machine))
            self.note_chains(machine)
            if machine.switches.tensors:
                self.note_switched_off(machine)
            self.note_common_layers(unit.owner, common_layers.learn(machine))
        if unit.owner >= 0 and unit.name == "__init__" and machine.holding.hooks:
            self.note_hooked(machine)
        if unit.owner >= 0 and machine.switches.parameters:
            self.note_switched(machine)
        if unit.kind != "class" and machine.state.alive and machine.state.mode.recording is Fact.NO:
            self._leaves_off |= self._entry_mode(unit).recording > 0
        if unit.name == "forward" and unit.owner >= 0 and self.is_function_class(unit.owner):
            custom.conclude(machine)
        self._current = outer
        self.machines[number] = machine
        self.steps += machine.steps
        if unit.kind in ("function", "lambda"):
            if not glancing:
                machine.results.otherwise = self._returned_otherwise(machine)
            self._summaries[number] = summarise(machine)
        # Until here: a summary may ask for that of a function that calls this one.
        self._running.discard(number)

    def _returned_otherwise(self, m: Machine) -> frozenset[str]:
        """The parameters that a small function returns as they are where they are no tensors, and not where they are:
        `return x if not isinstance(x, Tensor) else x.data`. For that, it is run once more on tensors."""
        asked = returned.may_depend_on_kind(m) if m.results.tested else frozenset()
        if not asked or len(m.unit.definitions) > MAX_TESTING:
            return frozenset()
        again = Machine(self, m.unit, State(self._entry_mode(m.unit)))
        again.partial = True
        self._bind_parameters(again)
        for name in asked:
            ref = again.number("argument", name)
            again.state.set_object(ref, again.state.object(ref)._replace(kind=Kind.TENSOR, sure=Sure.PROVEN))
        outer, self._current = self._current, m.unit.number
        again.run_unit()
        self._current = outer
        self.steps += again.steps
        return asked - returned.handed_back(again)

    def run_expanded(self, expanded: t.Unit) -> Machine:
        """Run a unit with its helpers in it. What others know of the unit stays as it is."""
        outer, self._current = self._current, expanded.number
        machine = Machine(self, expanded, State(self._entry_mode(expanded)))
        machine.partial = True
        machine.index = UnitIndex(expanded)
        self._bind_parameters(machine)
        machine.run_unit()
        self._current = outer
        self.steps += machine.steps
        return machine

    def run_shortened(self, unit: t.Unit, cells: dict[str, Cell]) -> Machine | None:
        """Run a unit without the arms that are not run where some parameters are constants, which `cells` has; `None`
        if it is running, or too deep."""
        if unit.number in self._running or len(self._running) >= MAX_NESTED_RUNS:
            return None
        self._running.add(unit.number)
        outer, self._current = self._current, unit.number
        machine = Machine(self, unit, State(self._entry_mode(unit)))
        machine.partial = True
        machine.index = UnitIndex(unit)
        bound_to = self._bound_to.get(unit.number)
        self._bind_parameters(machine)
        for name, cell in cells.items():
            machine.state.put_cell(name, cell)
        machine.run_unit()
        if bound_to is not None:
            # The unit as a whole has been run with what was known of its parameters then.
            self._bound_to[unit.number] = bound_to
        self._current = outer
        self._running.discard(unit.number)
        self.steps += machine.steps
        return machine

    @kept_property
    def defaults(self) -> dict[int, dict[str, t.Const]]:
        """The defaults of the parameters of each function of the file that are literals."""
        found: dict[int, dict[str, t.Const]] = {}
        for unit in self.program.units:
            for event in self.index(unit).of(t.Function):
                made = {name: unit.definitions[register] for name, register in event.defaults if register >= 0}
                found[event.unit] = {name: one for name, one in made.items() if isinstance(one, t.Const)}
        return found

    def as_told(self, unit: int, summary: Summary, bound: Mapping[str, Value]) -> Summary:
        """The summary of a function for a call that passes `bound`: see `told`."""
        return self._told.of_call(unit, summary, bound)

    def with_told(self, unit: int, summary: Summary) -> Summary:
        """A summary for other files, with what the function does as calls tell it."""
        return self._told.exported(unit, summary, self.outside.path)

    def run_unasked(self, number: int) -> Machine:
        """Run a guest once more, as its own file does, which does not know what others pass."""
        passed = self._arguments.pop(number, {})
        outer, self._current = self._current, number
        machine = Machine(self, self.program.units[number], State(self._entry_mode(self.program.units[number])))
        machine.partial = True
        self._bind_parameters(machine)
        machine.run_unit()
        self._current = outer
        self._arguments[number] = passed
        self.steps += machine.steps
        return machine

    def note_arguments(self, m: Machine, unit: int, bound: dict[str, Value], site: int = -1) -> None:
        """See `Parameters`. Of guests, it is kept where this file calls them, or the guest that does."""
        super().note_arguments(m, unit, bound, site)
        if unit in self.guests.origins and unit not in self.called_at:
            at = site if self.is_of_file(m.unit.number) else self.called_at.get(m.unit.number, -1)
            known = (m.state.object(ref).kind in _TELLING for value in bound.values() for ref in value.refs)
            if 0 <= at < self.guests.first and any(known):
                self.called_at[unit] = at

    def machine_of(self, number: int) -> Machine | None:
        """The machine of a unit, which is run now if it has not been; `None` if it is running, or too deep, or of
        another file."""
        if not self.is_own(number):
            return None
        self._note_asked()
        if number not in self.machines and number not in self._running and len(self._running) < MAX_NESTED_RUNS:
            self.run_unit(number)
        return self.machines.get(number)

    def _bound_otherwise(self, number: int, *, of_a_kind: bool) -> bool:
        """Whether what is known by now of a unit's parameters is not what it was run with; with `of_a_kind`, no kind
        has become unknown."""
        m = self.machines[number]
        bound = [(self._parameter_object(m, parameter), obj) for parameter, obj in self._bound_to[number]]
        lost = any(now.kind is Kind.UNKNOWN is not obj.kind for now, obj in bound)
        return any(now != obj for now, obj in bound) and not (of_a_kind and lost)

    def _in_order(self) -> list[t.Unit]:
        """Callees before callers, as far as names tell; otherwise source order."""
        functions: dict[str, list[int]] = {}
        for unit in self.program.units:
            if unit.kind == "function":
                functions.setdefault(unit.name, []).append(unit.number)
        done: dict[int, None] = {}
        for unit in self.own_units:
            stack = [unit.number]
            entered: set[int] = set()
            while stack:
                number = stack[-1]
                if number in done:
                    stack.pop()
                    continue
                callees = [] if number in entered else self._callees(self.program.units[number], functions)
                entered.add(number)
                own = [callee for callee in callees if callee < len(self.own_units)]
                waiting = [callee for callee in own if callee not in done and callee not in entered]
                if waiting:
                    stack.extend(reversed(waiting))
                else:
                    done[number] = None
                    stack.pop()
        return [self.program.units[number] for number in done]

    def _callees(self, unit: t.Unit, functions: dict[str, list[int]]) -> list[int]:
        """Those of some functions, by name, whose names a unit speaks of."""
        found: list[int] = []
        for event in self.index(unit).named:
            if event.name in functions and not isinstance(event, t.Attribute):
                found += functions[event.name]
        return found

    def _entry_mode(self, unit: t.Unit) -> Mode:
        return entry_modes.entry_mode(self, unit, leaves_off=self._leaves_off)

    # -- calls

    def called(self, unit: int, caller: int, mode: Mode) -> None:
        """A function of this file is called in a grad mode by another, and so may be what overrides it."""
        for called in (unit, *(one for one in self.overriding(unit) if one != caller)):
            modes = self.call_modes.setdefault(called, [])
            if (caller, mode) not in modes:
                modes.append((caller, mode))

    def summary(self, unit: int) -> Summary | None:
        """The summary of a function, if it has been run already."""
        if not self.is_own(unit):
            return self.outside.summary(unit)
        if unit in self.guests.origins:
            return self._summary_of_guest(unit)
        self._note_asked()
        if self._standing_in >= 0 and (own := self._of_heirs.get(heirs.Inherited(unit, self._standing_in))) is not None:
            return own
        if unit not in self._summaries and self._is_asked_by_constructor(unit):
            self.run_unit(unit)
            self._for_constructors.add(unit)
        if unit not in self._summaries and self._current > 0:
            self._too_early.setdefault(self._current, set()).add(unit)
        return self._summaries.get(unit)

    def _summary_of_guest(self, unit: int) -> Summary | None:
        """The summary of a guest. It is run when it is first called with something of which this file knows more than
        its own; until then, its own file's holds. It calls nothing of this file."""
        if unit not in self._summaries:
            owner = self.program.units[unit].owner
            initial = self.program.classes[owner].methods.get("__init__") if owner >= 0 else None
            if initial not in (None, unit) and initial not in self.machines:
                # What its object holds comes first.
                self._summary_of_guest(initial)
            if unit != initial and not any(o.kind in _TELLING for o in self._arguments.get(unit, {}).values()):
                return self.outside.summary(unit)
            if unit not in self._running and len(self._running) < MAX_NESTED_RUNS:
                self.run_unit(unit)
        known, summary = self.outside.summary(unit), self._summaries.get(unit)
        if known is not None and summary is not None and not set(known.pairs) <= set(summary.pairs):
            # Of what a constructor keeps, its own file knows which methods let it meet.
            summary = summary._replace(pairs=tuple(sorted({*summary.pairs, *known.pairs})))
            self._summaries[unit] = summary
        return summary

    def runs_over_returned(self, unit: t.Unit) -> bool:
        """Whether who calls a unit runs backward over what it returns: see `training_returns`."""
        if unit.owner < 0:
            return False
        if unit.number not in self._over_returned:
            self._over_returned[unit.number] = training_returns.are_run_over(self, unit)
        return self._over_returned[unit.number]

    def _is_asked_by_constructor(self, unit: int) -> bool:
        """Whether a constructor is being run, and wants to know what one of the file's functions returns that has not
        been run: `self.net = self.build(sizes)`. What the fields hold that it has set by now, the function sees."""
        asking = any(self._is_constructor(running) for running in self._running)
        able = self.unit(unit).kind in ("function", "lambda") and not self._is_constructor(unit)
        able = able and unit not in self._running
        # One that has been run is being summarised, and what it calls asks for what it calls itself.
        return asking and able and unit not in self.machines and len(self._running) < MAX_NESTED_RUNS

    def _is_constructor(self, number: int) -> bool:
        unit = self.program.units[number]
        return unit.owner >= 0 and unit.name == "__init__"

    def tell(self, unit: int, summary: Summary) -> None:
        """From now on, a function of this file has another summary."""
        self._summaries[unit] = summary

    def converts(self, m: Machine) -> bool:
        """Whether a unit, by its name, converts modules: what it takes over is dropped elsewhere."""
        unit: t.Unit | None = m.unit
        while unit is not None and unit.kind in ("function", "lambda"):
            if idioms.converts(unit.name):
                return True
            unit = self.program.units[unit.parent] if unit.parent >= 0 else None
        return False

    def context(self, m: Machine) -> str:
        """In which idiom a unit stands, for `.data`: see `idioms`."""
        unit: t.Unit | None = m.unit
        while unit is not None and unit.kind in ("function", "lambda"):
            owner = self.program.classes[unit.owner] if unit.owner >= 0 else None
            kind = self.class_kind(unit.owner)[0] if unit.owner >= 0 else Kind.UNKNOWN
            found = idioms.context_of(unit.name, owner.name if owner is not None else "", kind)
            if found or unit.owner >= 0:
                return found
            unit = self.program.units[unit.parent] if unit.parent >= 0 else None
        return ""
