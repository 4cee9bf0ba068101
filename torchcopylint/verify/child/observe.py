"""The hooks that an instrumented script calls, and what they write down. Nothing here decides anything."""

from __future__ import annotations

import ast
import contextlib
import inspect
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from . import states
from .altered import Alterations, keep_busy
from .attention import Attention
from .contents import Change, Contents, Flip
from .instrument import AT, FILENAME
from .reach import MOST_FRAMES, Reach, frames_of_script, has_graph

MOST_LOOKS = 3000
MOST_EVENTS = 250
MOST_PATHS = 6
MOST_HOLDERS = 40
MOST_STEPS = 20000
MOST_PASSES = 40
MOST_ALIKE = 12
_MOST_DELAYED = 2
ATTRIBUTE = "a plain attribute"
ATTRIBUTE_ELSEWHERE = "an attribute of what is no tensor or module"
EVERYTHING = frozenset({"changes", "ends", "graphs", "same", "unheld", "writes", "returns"})
"""All that can be looked for: see `predicates.LOOKS`."""

Stack = tuple[int, ...]


class Writes(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes the operations that write into a tensor, while a marked statement runs."""

    def __init__(self, observer: Observer) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._observer = observer

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the operation, and note it if its schema says that it writes."""
        if func._schema.is_mutable:
            self._observer.wrote(str(func), [])
        return func(*args, **(kwargs or {}))


class Observer(Alterations):
    """Looks at the script's values around its statements.

    `marked` holds for every mark the numbers of its statements, and the rows for frames that have no numbers (lambdas);
    `keeping` says of every mark whether something is kept or shared there.
    """

    def __init__(self, marked: list[list[int]], rows: list[tuple[int, int]], keeping: list[bool]) -> None:
        super().__init__()
        self.marked = marked
        self.rows = rows
        self.changes: list[dict[str, Any]] = []
        self.flips: list[dict[str, Any]] = []
        self.raised: list[dict[str, Any]] = []
        self.values: list[dict[str, Any]] = []
        self.passes: list[list[int]] = [[] for _ in marked]
        self.idle: list[list[int]] = [[] for _ in marked]
        self.states: list[dict[str, Any]] = []
        self.writes: list[dict[str, Any]] = []
        self.retains = False
        self.quiet = False
        self.looks = EVERYTHING
        self.within: frozenset[int] = frozenset()
        self._unheld: dict[str, list[list[str]]] = {}
        self.assignments: dict[int, list[ast.expr]] = {}
        self.chains: dict[int, tuple[str, ...]] = {}
        self.cut_short = ""
        self.reach = Reach()
        self.contents = Contents()
        self.attention = Attention(keeping)
        self._at_mark: dict[int, list[int]] = {}
        for index, numbers in enumerate(marked):
            for number in numbers:
                self._at_mark.setdefault(number, []).append(index)
        self._time = 0
        self._looks = 0
        self._active: Stack = ()
        self._frame: types.FrameType | None = None
        self._callers: tuple[Stack, frozenset[int]] = ((), frozenset())
        self._active_marks: frozenset[int] = frozenset()
        self._left = False
        self._told: set[int] = set()
        self._keys: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
        self._paths: dict[int, list[tuple[str, str]]] = {}
        self._kept: list[Any] = []
        self._last: dict[tuple[str, str], Any] = {}
        self._names: dict[str, dict[str, Any]] = {}

    # The hooks, called from the script.

    def enter(self, number: int) -> int:
        """Before statement `number`; returns the number."""
        frame = sys._getframe(1)
        marks = self._at_mark.get(number, ())
        for mark in marks:
            self.attention.passed(mark, first=not self.passes[mark])
        self._time += 1
        if self.quiet and marks and len(self.passes[marks[0]]) < _MOST_DELAYED:
            keep_busy()
        if self.attention.asleep:
            return number
        watched = self._watched()
        if watched and (not self._left or self.attention.stale):
            self._guarded(self._look, frame)
        self._left = False
        self._activate(frame, number)
        if not watched and self._watched():
            # What changed before is nobody's: this look is what later ones are compared with.
            self.attention.stale = True
            self._guarded(self._look, frame)
        for mark in marks:
            if len(self.passes[mark]) < MOST_PASSES:
                self.passes[mark].append(self._time)
            self._guarded(self._state, mark, number, "enter", frame)
        return number

    def leave(self, number: int) -> None:
        """After statement `number`, also when it raised."""
        frame = sys._getframe(1)
        self._note_exception(number)
        if self.attention.asleep:
            return
        self._activate(frame, number)
        if self._watched():
            self._guarded(self._look, frame)
            self._names.pop(states.scope_of(frame), None)
        elif self.looks & {"ends", "unheld"}:
            self._guarded(self._glance, frame)
        self._left = True
        if number in self._at_mark and number in self.assignments:
            self.wrote("an assignment", _bound(self.assignments[number], frame))
            plain, elsewhere = states.attributes_made(self.assignments[number], frame)
            self.wrote(ATTRIBUTE, plain)
            self.wrote(ATTRIBUTE_ELSEWHERE, elsewhere)
        for mark in self._at_mark.get(number, ()):
            self._guarded(self._state, mark, number, "leave", frame)
        # What happens next until another statement starts belongs to the callers' statements.
        self._activate(frame)

    def turns(self, number: int, values: Iterable[Any]) -> Iterator[Any]:
        """The turns of a `for`."""
        iterator = iter(values)
        frame = sys._getframe(1)
        running = object()
        begun, turns = self._time, 0
        try:
            while not self.attention.is_enough(number, turns, self._time - begun):
                self._activate(frame, number)
                try:
                    value = next(iterator)
                except StopIteration:
                    if not turns:
                        self._note_idle(number)
                    return
                except Exception:
                    self._note_exception(number)
                    raise
                self.attention.turn(number, running)
                turns += 1
                yield value
        finally:
            self.attention.over(running)

    def _note_idle(self, number: int) -> None:
        """A `for` had nothing to go through."""
        for mark in self._at_mark.get(number, ()):
            if len(self.idle[mark]) < MOST_PASSES:
                self.idle[mark].append(self._time)

    def tested(self, number: int, value: Any) -> Any:
        """The condition of an `if` or `while`, on its way through."""
        self._note_exception(number)
        return value

    def returned(self, number: int, value: Any) -> Any:
        """The value of a `return`, on its way through."""
        if "returns" not in self.looks or len(self.values) >= MOST_EVENTS:
            return value
        frame = sys._getframe(1)
        quiet, self.quiet = self.quiet, False
        self._guarded(self._returned, number, frame.f_code.co_qualname, value)
        self.quiet = quiet
        return value

    def _returned(self, number: int, scope: str, value: Any) -> None:
        with self._aside():
            self.values.append({"at": number, "scope": scope, "value": states.summary(value)})

    def _guarded(self, look: Callable[..., None], *arguments: Any) -> None:
        """Look, and let no failure of ours reach the script: what it does must not depend on being watched.

        Looking waits for a GPU, so where a missing wait is what is to be seen, it is left out (`quiet`).
        """
        if self.quiet:
            return
        try:
            look(*arguments)
        except Exception as error:
            self.cut_short = self.cut_short or f"the observer failed: {type(error).__name__}: {error}"[:200]

    def wrote(self, what: str, bound: list[str]) -> None:
        """Something was written while the active statements ran; `bound` are the names that were bound to do it."""
        if what in (ATTRIBUTE, ATTRIBUTE_ELSEWHERE) and not bound:
            return
        if self._active_marks and not self.attention.asleep and len(self.writes) < MOST_EVENTS:
            self.writes.append({"marks": sorted(self._active_marks), "op": what[:80], "bound": bound})

    # What they do.

    def finish(self, error: BaseException | None, frame_globals: dict[str, Any]) -> dict[str, Any]:
        """The end values, and all that was written down."""
        if error is not None:
            self._tell(error)
        with self._aside():
            for scope, names in self._names.items():
                # A function may have bound a name of the module's since.
                names.update(frame_globals if not scope else ())
                for one in self.reach.walk_names(scope, names):
                    self._last[one.scope, one.path] = one.value
            ends = states.ends(self._last, frame_globals) if "ends" in self.looks else {}
            flagged = states.flagged(self._last)
            at_end = states.unheld_at_end(self.reach, frame_globals) if "unheld" in self.looks else []
            unheld = [*at_end, *(name for names in self._unheld.values() for name in names)][:MOST_EVENTS]
        return {
            "passes": self.passes,
            "idle": self.idle,
            "changes": self.changes,
            "flips": self.flips,
            "raised": self.raised,
            "values": self.values[:MOST_EVENTS],
            "states": self.states,
            "ends": ends,
            "flagged": flagged,
            "unheld": unheld,
            "writes": self.writes,
            "cut_short": self.cut_short or self._bounded(),
            "shortened": self.attention.shortened,
        }

    def _bounded(self) -> str:
        """What was not looked at, so that something may have happened there."""
        if self.reach.exceeded:
            return "too many values"
        return "of some loops, only the first turns" if self.attention.slept else ""

    def _activate(self, frame: types.FrameType, number: int | None = None) -> None:
        """Say which statements run: the one of a frame, if any, and those of its callers."""
        if frame is not self._frame:
            # While a frame runs its callers stand still, but those of a generator, which differ from turn to turn.
            self._frame = None if frame.f_code.co_flags & inspect.CO_GENERATOR else frame
            self._callers = self._calling(frame.f_back)
        stack, marks = self._callers
        self._active = stack if number is None else (number, *stack)
        at = self._at_mark.get(number) if number is not None else None
        self._active_marks = marks.union(at) if at else marks

    def _calling(self, frame: types.FrameType | None) -> tuple[Stack, frozenset[int]]:
        """The statements that run in a frame and its callers, innermost first, and the marks that they stand on."""
        numbers: list[int] = []
        marks: set[int] = set()
        for _ in range(MOST_FRAMES):
            if frame is None:
                break
            if frame.f_code.co_filename == FILENAME:
                number = frame.f_locals.get(AT)
                if isinstance(number, int):
                    numbers.append(number)
                    marks.update(self._at_mark.get(number, ()))
                elif AT not in frame.f_locals:
                    marks.update(i for i, (row, end) in enumerate(self.rows) if row <= frame.f_lineno <= end)
            frame = frame.f_back
        return tuple(numbers), frozenset(marks)

    def _aside(self) -> contextlib.AbstractContextManager[None]:
        """What we do ourselves must leave no trace in the script's graph, modes, or our own records."""
        modes = torch._C._len_torch_dispatch_stack() or torch._C._len_torch_function_stack()
        return _apart_from_modes() if modes else _Apart()

    def _watched(self) -> bool:
        """Whether changes count while the active statements run."""
        return "changes" in self.looks and (not self.within or bool(self._active_marks & self.within))

    def _glance(self, frame: types.FrameType) -> None:
        """What the names of one frame hold, for the end, and nothing of its content."""
        self._looks += 1
        if self._looks > MOST_LOOKS:
            self.cut_short = self.cut_short or "too many statements"
            return
        # What they reach is asked in the end: until then, the names are enough.
        self._names.setdefault(states.scope_of(frame), {}).update(frame.f_locals)
        if self.retains or "unheld" in self.looks:
            with self._aside():
                for one in self.reach.held([frame], alone=True) if self.retains else ():
                    if isinstance(one.value, torch.Tensor) and has_graph(one.value):
                        one.value.retain_grad()
                self._note_unheld(frame)

    def _note_unheld(self, frame: types.FrameType) -> None:
        if "unheld" in self.looks:
            now = states.state(self.reach, frames_of_script(frame), self.looks)
            self._unheld[states.scope_of(frame)] = now["unheld"]

    def _look(self, frame: types.FrameType) -> None:
        self._looks += 1
        if self._looks > MOST_LOOKS:
            self.cut_short = self.cut_short or "too many statements"
            return
        with self._aside():
            held = self.reach.held(frames_of_script(frame))
            paths: dict[int, list[tuple[str, str]]] = {}
            values: dict[int, Any] = {}
            for one in held:
                paths.setdefault(id(one.value), []).append((one.scope, one.path))
                values[id(one.value)] = one.value
                self._last[one.scope, one.path] = one.value
                if self.retains and isinstance(one.value, torch.Tensor) and has_graph(one.value):
                    one.value.retain_grad()
            changed: list[Change] = []
            stale, self.attention.stale = self.attention.stale, False
            for identity, value in values.items():
                change, flip = self.contents.look(value)
                if change is not None and not stale:
                    changed.append(change)
                if flip is not None and not stale and len(self.flips) < MOST_EVENTS:
                    self._flip(flip, paths[identity])
            if changed:
                self._changed(changed, paths, values)
            self._paths = paths
            self._note_unheld(frame)

    def _flip(self, flip: Flip, paths: list[tuple[str, str]]) -> None:
        self.flips.append(
            {
                "stack": list(self._active),
                "marks": sorted(self._active_marks),
                "time": self._time,
                "before": flip.before,
                "after": flip.after,
                "paths": [list(pair) for pair in paths[:MOST_PATHS]],
            }
        )

    def _changed(self, changed: list[Change], paths: dict[int, list[tuple[str, str]]], values: dict[int, Any]) -> None:
        changed.sort(key=lambda change: (change.low, change.high))
        holders = []
        for change in changed[:MOST_HOLDERS]:
            value = values[change.identity]
            # A path that led here before as well: a name that was just bound did not change.
            known = set(self._paths.get(change.identity, ()))
            mine = [pair for pair in paths[change.identity] if pair in known]
            if not mine:
                continue
            holders.append(
                {
                    "paths": [list(pair) for pair in mine[:MOST_PATHS]],
                    "identity": change.identity,
                    "low": change.low,
                    "high": change.high,
                    "versions": [change.old_version, change.version],
                    "moved": change.moved,
                    "before": change.before,
                    "after": change.after,
                    "kind": type(value).__name__,
                }
            )
        if not holders:
            return
        key = (self._active, tuple(str(holder["paths"]) for holder in holders))
        alike = self._keys.setdefault(key, [])
        # The names may hold other objects by now, as after another snapshot; only those of a few turns are told apart.
        same = [event for event in alike if _identities(event["holders"]) == _identities(holders)]
        if same or len(alike) >= MOST_ALIKE:
            (same or alike)[-1]["times"].append(self._time)
            return
        if len(self.changes) >= MOST_EVENTS:
            self.cut_short = self.cut_short or "too many changes"
            return
        event = {
            "stack": list(self._active),
            "marks": sorted(self._active_marks),
            "times": [self._time],
            "holders": holders,
        }
        alike.append(event)
        self.changes.append(event)

    def _note_exception(self, number: int) -> None:
        error = sys.exc_info()[1]
        if error is not None:
            self._tell(error)

    def _tell(self, error: BaseException) -> None:
        if id(error) in self._told or len(self.raised) >= MOST_EVENTS or isinstance(error, GeneratorExit):
            return
        self._told.add(id(error))
        self._kept.append(error)
        rows: list[int] = []
        marks: set[int] = set()
        trace = error.__traceback__
        backward = False
        while trace is not None:
            frame = trace.tb_frame
            backward = backward or frame.f_code.co_name in ("backward", "_engine_run_backward")
            if frame.f_code.co_filename == FILENAME:
                rows.append(trace.tb_lineno)
                number = frame.f_locals.get(AT)
                if isinstance(number, int):
                    marks.update(self._at_mark.get(number, ()))
                else:
                    marks.update(i for i, (row, end) in enumerate(self.rows) if row <= trace.tb_lineno <= end)
            trace = trace.tb_next
        # The callers up to the module are not in the traceback yet while it travels.
        first = error.__traceback__.tb_frame if error.__traceback__ is not None else None
        callers = frames_of_script(first.f_back) if first is not None else []
        kind = type(error)
        self.raised.append(
            {
                "kinds": [base.__name__ for base in kind.__mro__[:-1]],
                "message": str(error)[:600],
                "row": rows[-1] if rows else 0,
                "rows": [*(frame.f_lineno for frame in reversed(callers)), *rows],
                "marks": sorted(marks | set(self._active_marks)),
                "time": self._time,
                "in_backward": backward,
            }
        )

    def _state(self, mark: int, number: int, when: str, frame: types.FrameType) -> None:
        """How things stand before or after a marked statement."""
        if len(self.states) >= MOST_EVENTS:
            return
        grad = torch.is_grad_enabled()
        inside = torch._C._current_graph_task_id() != -1
        with self._aside():
            now = states.state(self.reach, frames_of_script(frame), self.looks)
            read = states.mentions(self.chains.get(number, ()), frame) if when == "enter" else []
        scope = states.scope_of(frame)
        told = {"mark": mark, "when": when, "time": self._time, "grad": grad, "in_backward": inside}
        self.states.append({**told, "scope": scope, "mentions": read, **now})


class _Apart:
    """No graph is made, and tensors of the script's own classes are treated as plain ones."""

    __slots__ = ("_grad", "_plain")

    def __enter__(self) -> None:
        self._grad = torch.is_grad_enabled()
        self._plain = torch._C.DisableTorchFunctionSubclass()
        torch._C._set_grad_enabled(False)
        self._plain.__enter__()

    def __exit__(self, *_: object) -> None:
        self._plain.__exit__(None, None, None)
        torch._C._set_grad_enabled(self._grad)


@contextlib.contextmanager
def _apart_from_modes() -> Iterator[None]:
    with _disable_current_modes(), _Apart():
        yield


def _identities(holders: list[dict[str, Any]]) -> list[int]:
    return [holder["identity"] for holder in holders]


def _bound(targets: list[ast.expr], frame: types.FrameType) -> list[str]:
    """The names that an assignment binds, and those of dictionaries in which it binds a key."""
    scope = states.scope_of(frame)
    found = []
    for target in targets:
        for node in target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]:
            root = node
            while isinstance(root, ast.Subscript):
                root = root.value
            if isinstance(root, ast.Name) and root is node:
                found.append(f"{scope}|{root.id}")
            elif isinstance(root, ast.Name) and isinstance(frame.f_locals.get(root.id), dict):
                found.append(f"{scope}|{root.id}[]")
    return found
