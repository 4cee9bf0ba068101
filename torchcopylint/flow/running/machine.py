"""Runs a tape over the state: control flow, registers, and where facts are kept.

What each event means is in the modules that register themselves in `HANDLERS`; here is only what holds for all.
Facts are kept by the site that they were found at, and a site that is run again (a loop's next turn, with a larger
state) forgets what it said before: what stays is what the settled state says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import (
    BackwardAgain,
    Clobbered,
    InferenceMisused,
    LeafWritten,
    RequiresGradRefused,
    Saved,
    ViewRefused,
    Write,
)
from torchcopylint.flow.graphs import last_turn
from torchcopylint.flow.graphs.runs import Runs
from torchcopylint.flow.model import MAX_TURNS, UNKNOWN, Cell, Fact, Key, Kind, Object, Part, Region, Slot, Sure, Value
from torchcopylint.flow.tapes import after_turns, come_round, converted, quiet_ends, shown_errors, turns
from torchcopylint.flow.tapes.settling import has_settled
from torchcopylint.flow.values.state import ALIVE, Delta, Mode, State
from torchcopylint.knowledge import table

if TYPE_CHECKING:
    from torchcopylint.base.finding import Role
    from torchcopylint.flow.facts import Accumulated, FieldKeepsGraph, Inside, Place, Relation
    from torchcopylint.flow.files.world import World
    from torchcopylint.flow.graphs.gathered import Gathered
    from torchcopylint.flow.program.ownership import Built
    from torchcopylint.flow.program.wholes import Whole
    from torchcopylint.flow.storages.reading import Chain
    from torchcopylint.flow.tapes.left import Left

T = TypeVar("T")
_REFUSED = (BackwardAgain, Clobbered, InferenceMisused, LeafWritten, RequiresGradRefused, ViewRefused)
HANDLERS: dict[type[Any], Callable[[Machine, Any], None]] = {}


def handles(event: type[Any]) -> Callable[[Callable[[Machine, Any], None]], Callable[[Machine, Any], None]]:
    """Register a function as the meaning of an event."""

    def register(function: Callable[[Machine, Any], None]) -> Callable[[Machine, Any], None]:
        HANDLERS[event] = function
        return function

    return register


@dataclass(slots=True)
class LoopFrame:
    """A loop that is running: the fork its turn started from, and the states that left the turn early."""

    level: int
    breaks: list[Delta] = field(default_factory=list)
    continues: list[Delta] = field(default_factory=list)


class PutOn(NamedTuple):
    """An object that was put on the storages of another, which is named `source`, at some site.

    `owner` is the object that has the other one in a field, or -1.
    """

    ref: int
    storages: frozenset[int]
    source: str
    owner: int = -1


class Machine:
    """One unit being run. See the module."""

    def __init__(self, world: World, unit: t.Unit, state: State) -> None:
        self.world = world
        self.unit = unit
        self.index = world.index(unit)
        self.state = state
        self.facts: dict[int, list[Relation]] = {}
        self.writes: dict[int, Write] = {}
        self.pairs: set[tuple[str, str, str]] = set()
        self.gathered: dict[int, tuple[int, Accumulated]] = {}
        self.gathered_by_calls: dict[int, tuple[tuple[Gathered, ...], bool]] = {}
        self.gathered_of: dict[int, frozenset[int]] = {}
        """The graphs of networks on which what is gathered at a site hangs."""
        self.loaded_fields: set[tuple[str, str]] = set()
        self.tied: dict[tuple[int, int], int] = {}
        self.called_fields: dict[tuple[str, str], dict[Fact, int]] = {}
        self.switched: set[int] = set()
        self.switched_tensors: set[int] = set()
        self.thawed: set[int] = set()
        self.frozen: set[int] = set()
        self.copied_from: dict[int, frozenset[int]] = {}
        self.replaced: dict[int, tuple[int, Part, str, Sure]] = {}
        self.first_turn = False
        self.first_hits: dict[int, tuple[frozenset[int], dict[int, Chain]]] = {}
        self.saves: dict[int, Saved] = {}
        self.saved_in_loop: list[int] = []
        self.saved_objects: dict[int, int] = {}
        self.gaps: list[tuple[str, int]] = []
        self.returned: list[Value] = []
        self.yielded: dict[int, Value] = {}
        # Parameters that a test says to be no tensors, on some path, and those that come back on such paths only.
        self.tested_arguments: set[str] = set()
        self.perhaps_without_graph = False
        """Whether gradients are computed of which only who calls knows whether they have a graph."""
        self.returned_otherwise: frozenset[str] = frozenset()
        self.exits: list[Delta] = []
        self.steps = 0
        # What events tell one another, by register or by site.
        self.data_reads: dict[int, int] = {}
        self.evidence: dict[int, frozenset[str]] = {}
        self.pure_calls: dict[int, tuple[str, str, bool, Sure]] = {}
        self.dropped: dict[int, list[int]] = {}
        self.mode_factories: set[int] = set()
        self.modes_before: dict[int, Mode] = {}
        self.entered: dict[int, Mode] = {}
        self.chains: dict[int, dict[int, Chain]] = {}
        self.certain_storages: dict[int, frozenset[int]] = {}
        self.regions: dict[int, dict[int, Region]] = {}
        self.roots: dict[int, tuple[int, str]] = {}
        self.root_keys: dict[int, Key | None] = {}
        self.cuts: dict[int, bool] = {}
        self.unrecorded: set[int] = set()
        self.region_names: dict[str, set[int]] = {}
        self.initial_fields: dict[str, Slot] = {}
        self.written_before: dict[int, dict[int, frozenset[int]]] = {}
        self.module_saves: dict[int, Value] = {}
        self.reached: set[int] = set()
        self.reached_since: set[int] | None = None
        self.asked: set[int] = set()
        self.reaches_unknown = True
        self.flights: dict[int, str] = {}
        self.queues: dict[int, tuple[int, str]] = {}
        self.shallow_of: dict[int, int] = {}
        """What a dictionary is a copy of, of which nobody knows what stands in it: there stands the same in both."""
        self.saved_fields: dict[tuple[int, int], Region] = {}
        self.dirty: dict[int, int] = {}
        self.marked_alone: set[int] = set()
        self.kept_for_backward: list[int] = []
        self.hooks: dict[int, int] = {}
        self.met: set[tuple[int, int]] = set()
        self.met_alike: dict[tuple[int, int], frozenset[int]] = {}
        """The same, where a write hits one of several things that the turns of a loop have made at one site: the
        numbers of what has been kept of them all."""
        self.in_evaluation: set[int] = set()
        self.tables: dict[int, tuple[int, bool]] = {}
        self.memos: dict[str, tuple[int, ...]] = {}
        self.renewed: dict[str, Kind] = {}
        self.exchanged: dict[tuple[int, str], tuple[bool, Kind, bool]] = {}
        """The fields that calls set anew of objects of which the unit itself has not looked at that field: whether they
        do so always, of which kind it is then, and whether that is no object."""
        self.given_memory: dict[int, tuple[int, str]] = {}
        self.generators: dict[int, int] = {}
        self.optimizers: dict[int, Built] = {}
        self.groups_given: dict[int, Value] = {}
        self.wholes: dict[int, tuple[Whole, ...]] = {}
        self.taken_over: set[int] = set()
        self.lateness: dict[int, tuple[str, int, Sure]] = {}
        self.unowned: dict[int, int] = {}
        self.left_leaves: dict[int, tuple[str, int, tuple[int, ...], Sure]] = {}
        self.computed_fields: dict[str, tuple[int, int]] = {}
        self.rebound: dict[int, tuple[int, str, Sure]] = {}
        self.taken_away: set[int] = set()
        self.argument_writes: dict[int, tuple[int, str, bool, str, tuple[str, ...]]] = {}
        self.graph_writes: set[int] = set()
        """The calls in which autograd sees a write."""
        self.part_writes: dict[int, tuple[int, str, tuple[str, ...]]] = {}
        self.gradients: set[int] = set()
        self.unexplained_gradients: set[int] = set()
        self.runs = Runs()
        self.left_at: dict[int, Left] = {}
        """What calls leave in fields, and go on from on the next call, by the sites of the calls."""
        self.left_by: set[int] = set()
        """The sites of the calls that leave something computed in a field."""
        self.kept_fields: dict[int, tuple[FieldKeepsGraph, Value]] = {}
        self.kept_on_context: dict[int, tuple[str, list[Value]]] = {}
        self.guards = 0
        self.casting = 0
        """Around how many blocks of autocast stand."""
        self.on_purpose = 0
        self.failing = 0
        self.lane = 0
        # While one of several kinds of objects that a receiver may be is worked on: those objects, and the others.
        self.beside: tuple[frozenset[int], tuple[int, ...]] = (frozenset(), ())
        # What the same call has returned for the ones that were worked on before.
        self.returned_beside: set[int] = set()
        self.elsewhere: dict[int, tuple[Place, ...]] = {}
        self.lent_at: set[int] = set()
        """Where what is returned came to share memory with what the unit was passed."""
        self.inside: dict[tuple[int, Role], dict[tuple[int | str, Inside], None]] = {}
        self.perhaps_written: set[int] = set()
        self.put_on: dict[int, PutOn] = {}
        # A glance runs each loop once: what is found is not settled, and `cut_short` says so.
        self.glancing = False
        self.cut_short = False
        # A run for some calls, or with helpers in it: what it shows is no news of the unit as a whole.
        self.partial = False
        self.trains = False
        self.calls_trainer = False
        self.has_no_grad = False
        self.over_returned: dict[int, int] = {}
        self.muted: set[int] = set()
        """The sites where networks were called while nothing was recorded."""
        self._numbers: dict[tuple[object, ...], int] = {}
        self._made_by: dict[int, list[int]] = {}
        self._loops: list[LoopFrame] = []
        self._heads: dict[int, Delta] = {}
        self._renewed: dict[int, list[str]] = {}
        self.started: dict[str, turns.Started] = {}
        self._saved_by: dict[int, set[int]] = {}
        self._level = 0

    # -- running

    def run_unit(self) -> None:
        """Run the whole unit; afterwards the state is the join of every way out of it."""
        self._level = self.state.fork()
        self.run(self.unit.tape)
        self.exits.append(self.state.take())
        self.state.merge(self.exits)

    def run(self, tape: t.Tape) -> None:
        """Run a tape; what cannot be reached is not run."""
        entries = self.state.entries
        facts = self.facts
        handlers = HANDLERS
        for event in tape:
            if entries[ALIVE] is not True:
                return
            self.steps += 1
            if facts:
                facts.pop(event.site, None)
            handlers[event.__class__](self, event)

    def leave(self) -> None:
        """The unit returns here."""
        self.exits.append(self.state.capture(self._level))
        self.state.die()

    def branch(self, event: t.Branch) -> None:
        """Run each arm from the same state; join what they end with."""
        deltas, saved = [], []
        for arm in event.arms:
            before = len(self.saved_in_loop)
            self.state.fork()
            self.run(arm)
            deltas.append(self.state.take())
            saved.append(set(self.saved_in_loop[before:]))
        if self._loops and any(saved):
            everything = set[int]().union(*saved)
            deltas = [last_turn.on_other_arms(self, d, everything - own) for d, own in zip(deltas, saved, strict=True)]
        if self._loops and event.site in self.index.alternatives:
            made_by = self._made_by
            arms = [
                [ref for site in made for ref in made_by.get(site, ())] for made in self.index.alternatives[event.site]
            ]
            for number, delta in enumerate(deltas):
                others = [ref for arm, made in enumerate(arms) for ref in made if arm != number]
                deltas[number] = self.state.left_over(delta, others, self.index.bound_behind(event))
        self.state.merge(deltas)
        converted.take_as_one(self, deltas)
        if self._loops and (event.site in self.index.counting or event.site in self.index.holding_later):
            self.state.join_runs(deltas)

    def loop(self, event: t.Loop) -> None:
        """Run turns until the state at the head settles.

        The head starts from what it settled on when the loop was last run, in an enclosing loop's earlier turn: states
        only grow, so nested loops cost a turn more per level, not a factor.
        """
        if event.site in self.index.single:
            self._one_turn(event)
            return
        state = self.state
        entry = state.fork()
        outside, start = self.started, turns.started(self, event)
        if event.site in self._heads:
            self._begin_again(event)
            self._go_on(start, self._renewed.get(event.site, ()))
        frame = LoopFrame(entry + 1)
        outer = self.first_turn
        # Of an inner loop as well, the first turn is one of an outer loop's first turn.
        self.first_turn = event.site not in self._heads and (outer or not self._loops)
        self._loops.append(frame)
        before = len(self.saved_in_loop)
        carried = self.index.carried(event)
        refused: list[Relation] = []
        for _ in range(1 if self.glancing else MAX_TURNS):
            frame.breaks.clear()
            frame.continues.clear()
            state.fork()
            self.run(event.test)
            ended = state.capture(frame.level)
            self.run(event.body)
            if self.first_turn:
                refused = after_turns.refused(self, event)
            self.first_turn = False
            ends = [state.take(), *frame.continues]
            if start and event.site not in self._renewed:
                self._renewed[event.site] = turns.renewed(start, ends)
            changed: Delta = {}
            for turn in ends:
                changed = {**self._join_turn(turn), **changed}
            if start:
                self._go_on(start, self._renewed[event.site])
            if has_settled(state, changed, carried):
                break
        else:
            if self.glancing:
                self.cut_short = True
            else:
                self._give_up(changed, event.site)
        self._loops.pop()
        self.first_turn, self.started = outer, outside
        after_turns.state_again(self, refused)
        self._heads[event.site] = state.capture(entry)
        self._saved_by[event.site] = set(self.saved_in_loop[before:])
        left = after_turns.given_graphs(self, event.site, ends)
        state.fork()
        state.apply(ended)
        after_turns.take_on(state, left)
        if event.endless:
            state.die()
        self.run(event.orelse)
        state.merge([state.take(), *frame.breaks])
        state.apply(state.take())

    def _begin_again(self, event: t.Loop) -> None:
        """A loop that has been run before goes on from its head, with what the turns before made put aside as older."""
        head = self._heads[event.site]
        come_round.note(self, event)
        last_turn.put_aside(self, self._saved_by[event.site])
        inside = {each.site for part in (event.test, event.body) for each in t.events(part)}
        self.state.put_aside(head, inside)
        self._put_fields_aside(head)
        self.state.join_in(head, turn=True)

    def _put_fields_aside(self, head: Delta) -> None:
        """A loop that has been run before begins again, in a later turn of another one: the fields that it looks at of
        an object that this turn has made anew are not those of the object of the turn before."""
        for key, entry in head.items():
            if key.__class__ is tuple and entry.__class__ is Cell and self.state.cell(key) is None:
                looked_at = self._numbers.get(("slot", key), -1)
                if looked_at in entry.refs and self.state.get(looked_at) is not None:
                    self.state.retire(looked_at)

    def _one_turn(self, event: t.Loop) -> None:
        """A loop takes one turn: no turn follows another, and none is left out."""
        frame = LoopFrame(self.state.fork())
        self._loops.append(frame)
        self.run(event.test)
        self.run(event.body)
        self._loops.pop()
        self.state.merge([self.state.take(), *frame.continues, *frame.breaks])

    def _go_on(self, start: dict[str, turns.Started], names: Iterable[str]) -> None:
        """A later turn begins of a loop that binds some names anew on each."""
        cells = {name: cell for name in names if name in start and (cell := self.state.cell(name)) is not None}
        if cells:
            later = {name: start[name]._replace(site=cell.site) for name, cell in cells.items()}
            self.started = {**self.started, **later}

    def _join_turn(self, turn: Delta) -> Delta:
        """Join what a turn ended with into the head; returns what was there before of what that has changed."""
        before = {key: self.state.get(key) for key in turn}
        if not self.state.join_in(turn, turn=True):
            return {}
        return {key: entry for key, entry in before.items() if self.state.get(key) != entry}

    def _give_up(self, keys: Iterable[Key], site: int) -> None:
        """The head did not settle: what still changes is unknown."""
        self.gap("a loop did not settle", site)
        for key in keys:
            entry = self.state.get(key)
            if isinstance(entry, Cell):
                self.state.put_cell(key, Cell(site=entry.site))
            elif isinstance(entry, Object):
                self.state.put(key, Object(text=entry.text, site=entry.site))

    def attempt(self, event: t.Try) -> None:
        """A handler may start from anything between the entry and the last place of the body that may raise."""
        state = self.state
        level = state.fork()
        last = quiet_ends.begin(event.body)
        shown = shown_errors.is_shown(self, event)
        self.guards += bool(event.handlers)
        self.on_purpose += shown
        self.run(event.body[:last])
        raised = state.capture(level)
        self.run(event.body[last:])
        self.on_purpose -= shown
        self.guards -= bool(event.handlers)
        body = state.take()
        deltas = []
        for handler in event.handlers:
            state.fork()
            state.join_in(raised)
            self.run(handler)
            deltas.append(state.take())
        state.fork()
        state.apply(body)
        self.run(event.orelse)
        deltas.append(state.take())
        was_alive = state.alive
        state.merge(deltas)
        if state.alive:
            self.run(event.final)
        elif was_alive and event.final:
            # Every path has left already, but the block runs on the way out.
            state.fork()
            state.put(ALIVE, True)
            self.run(event.final)
            state.take()

    def break_loop(self, event: t.Break) -> None:
        """Leave the innermost loop."""
        if self._loops:
            frame = self._loops[-1]
            frame.breaks.append(self.state.capture(frame.level))
        self.state.die()

    def continue_loop(self, event: t.Continue) -> None:
        """Go on with the innermost loop's next turn."""
        if self._loops:
            frame = self._loops[-1]
            frame.continues.append(self.state.capture(frame.level))
        self.state.die()

    @property
    def in_loop(self) -> bool:
        """Whether a loop is running."""
        return bool(self._loops)

    # -- registers, objects, facts

    def value(self, register: int) -> Value:
        """What a register holds."""
        return self.state.registers.get(register, UNKNOWN)

    def set(self, register: int, value: Value) -> None:
        """Put a value into a register."""
        if register >= 0:
            self.state.set_register(register, value)

    def number(self, *tag: object) -> int:
        """The number of the newest object that a tag stands for: even, and the same whenever the tag is."""
        found = self._numbers.get(tag)
        if found is None:
            found = self._numbers[tag] = 2 * len(self._numbers)
            if isinstance(tag[0], int):
                self._made_by.setdefault(tag[0], []).append(found)
        return found

    def made_at(self, site: int, tag: str = "") -> int:
        """The number of the newest object that a site makes; a site that works on several in turn makes several."""
        return self.number(site, tag, self.lane) if self.lane else self.number(site, tag)

    def each(self, values: Iterable[T]) -> Iterator[T]:
        """Go through the objects that one event is about, each in a lane of its own: see `made_at`."""
        outer = self.lane
        for lane, value in enumerate(values):
            self.lane = 100 * outer + lane
            yield value
        self.lane = outer

    def note_evidence(self, value: Value, names: frozenset[str]) -> None:
        """These attributes or methods showed what a value's objects are."""
        for ref in value.refs:
            self.evidence[ref | 1] = self.evidence.get(ref | 1, frozenset()) | names

    def fact(self, fact: Relation) -> None:
        """Keep a fact, at its own site; what torch refuses not where that is what the program is there to show."""
        if self.on_purpose and isinstance(fact, _REFUSED):
            return
        found = self.facts.setdefault(fact.site, [])
        if fact not in found:
            found.append(fact)

    def dotted_of(self, event: t.Call | t.Invoke) -> str:
        """The canonical dotted name of what a call calls, if it is something imported."""
        if isinstance(event, t.Call):
            return str(self.value(event.function).const)
        return table.canonical(f"{self.value(event.base).const}.{event.name}")

    def consumer_of(self, register: int) -> t.Event | None:
        """The first event that uses a register."""
        return self.index.consumers.get(register)

    def use_of(self, site: int) -> t.Event | None:
        """The first event that uses what the call at a site returns."""
        register = self.index.calls.get(site)
        return self.consumer_of(register) if register is not None else None

    def gap(self, reason: str, site: int) -> None:
        """Keep what could not be seen."""
        if (reason, site) not in self.gaps:
            self.gaps.append((reason, site))


HANDLERS[t.Branch] = Machine.branch
HANDLERS[t.Try] = Machine.attempt
HANDLERS[t.Break] = Machine.break_loop
HANDLERS[t.Continue] = Machine.continue_loop
