"""Runs a tape over the state: control flow, registers, and where facts are kept.

What each event means is in the modules that register themselves in `HANDLERS`; here is only what holds for all.
Facts are kept by the site that they were found at, and a site that is run again (a loop's next turn, with a larger
state) forgets what it said before: what stays is what the settled state says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import (
    BackwardAgain,
    Clobbered,
    InferenceMisused,
    LeafWritten,
    RequiresGradRefused,
    ViewRefused,
)
from torchcopylint.flow.graphs import last_turn
from torchcopylint.flow.graphs.runs import Runs
from torchcopylint.flow.model import MAX_TURNS, UNKNOWN, Cell, Key, Object, Value
from torchcopylint.flow.running import noted
from torchcopylint.flow.tapes import after_turns, come_round, converted, quiet_ends, shown_errors, turns
from torchcopylint.flow.tapes.settling import has_settled
from torchcopylint.flow.values.state import ALIVE, Delta, State
from torchcopylint.knowledge import table

if TYPE_CHECKING:
    from torchcopylint.flow.facts import Relation, Write
    from torchcopylint.flow.files.world import World

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


class Machine:
    """One unit being run. See the module."""

    def __init__(self, world: World, unit: t.Unit, state: State) -> None:
        self.world = world
        self.unit = unit
        self.index = world.index(unit)
        self.state = state
        self.facts: dict[int, list[Relation]] = {}
        self.writes: dict[int, Write] = {}
        self.gaps: list[tuple[str, int]] = []
        self.steps = 0
        self.runs = Runs()
        self.hits = noted.Hits()
        self.needed = noted.Needed()
        self.gathering = noted.Gathering()
        self.switches = noted.Switches()
        self.backward = noted.Backward()
        self.owners = noted.Owners()
        self.blocks = noted.Blocks()
        self.custom = noted.Custom()
        self.results = noted.Results()
        self.called = noted.Called()
        self.fields = noted.Fields()
        self.shown = noted.Shown()
        self.holding = noted.Holding()
        self.lane = 0
        # While one of several kinds of objects that a receiver may be is worked on: those objects, and the others.
        self.beside: tuple[frozenset[int], tuple[int, ...]] = (frozenset(), ())
        # What the same call has returned for the ones that were worked on before.
        self.returned_beside: set[int] = set()
        # A glance runs each loop once: what is found is not settled, and `cut_short` says so.
        self.glancing = False
        self.cut_short = False
        # A run for some calls, or with helpers in it: what it shows is no news of the unit as a whole.
        self.partial = False
        self.first_turn = False
        self.started: dict[str, turns.Started] = {}
        self._numbers: dict[tuple[object, ...], int] = {}
        self._made_by: dict[int, list[int]] = {}
        self._loops: list[LoopFrame] = []
        self._heads: dict[int, Delta] = {}
        self._renewed: dict[int, list[str]] = {}
        self._saved_by: dict[int, set[int]] = {}
        self._level = 0

    # -- running

    def run_unit(self) -> None:
        """Run the whole unit; afterwards the state is the join of every way out of it."""
        self._level = self.state.fork()
        self.run(self.unit.tape)
        self.results.exits.append(self.state.take())
        self.state.merge(self.results.exits)

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
        self.results.exits.append(self.state.capture(self._level))
        self.state.die()

    def branch(self, event: t.Branch) -> None:
        """Run each arm from the same state; join what they end with."""
        deltas, saved = [], []
        for arm in event.arms:
            before = len(self.needed.in_loop)
            self.state.fork()
            self.run(arm)
            deltas.append(self.state.take())
            saved.append(set(self.needed.in_loop[before:]))
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
        before = len(self.needed.in_loop)
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
        self._saved_by[event.site] = set(self.needed.in_loop[before:])
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
        self.blocks.guards += bool(event.handlers)
        self.blocks.on_purpose += shown
        self.run(event.body[:last])
        raised = state.capture(level)
        self.run(event.body[last:])
        self.blocks.on_purpose -= shown
        self.blocks.guards -= bool(event.handlers)
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
            self.shown.evidence[ref | 1] = self.shown.evidence.get(ref | 1, frozenset()) | names

    def fact(self, fact: Relation) -> None:
        """Keep a fact, at its own site; what torch refuses not where that is what the program is there to show."""
        if self.blocks.on_purpose and isinstance(fact, _REFUSED):
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
