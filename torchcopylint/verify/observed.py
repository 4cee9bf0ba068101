"""What the child saw in one run, as data, read from its answer with suspicion.

The answer comes from a process that ran foreign code. It is JSON and nothing else; whatever is not of exactly this form
is `Malformed`. A well-formed forgery cannot be told from the truth.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

Name = tuple[str, str]
"""A scope (the qualified name of a function, or empty) and a path in it, such as `("fit", "best['weight']")`."""

LONGEST_TEXT = 1 << 16
MOST_ITEMS = 5000


HELPERS = frozenset(
    {
        "respond",
        "blend",
        "trained",
        "OnGpu",
        "on_gpu",
        "in_two",
        "give_gradients",
        "descent",
        "few",
        "Batches",
        "Progress",
        "Keyed",
        "Environment",
        "Location",
        "Anything",
        "Elsewhere",
        "LayerElsewhere",
        "ModuleElsewhere",
        "without_init",
        "ArgumentParser",
        "backpropagate",
    }
)
"""What stands in for things in scripts, by name: what their functions hold and return is nobody's."""


def is_users(scope: str) -> bool:
    """Whether a function or method is one of the user's, and not of what stands in for something."""
    return scope.partition(".")[0] not in HELPERS


class Malformed(Exception):
    """The answer is not of the form that a run has."""


SLEPT = "of some loops, only the first turns"
"""What a run is cut short by whose loops were not looked at to their end."""


@dataclass(frozen=True, slots=True)
class Holder:
    """One object whose content changed, under the names that lead to it. `low` to `high` are its bytes."""

    names: tuple[Name, ...]
    identity: int
    low: int
    high: int
    old_version: int
    version: int
    moved: bool
    before: str
    after: str
    kind: str


@dataclass(frozen=True, slots=True)
class Change:
    """What one statement changed at once. `stack` are the running statements by number, innermost first."""

    stack: tuple[int, ...]
    marks: frozenset[int]
    times: tuple[int, ...]
    holders: tuple[Holder, ...]


@dataclass(frozen=True, slots=True)
class Flip:
    """`requires_grad` of what these names lead to went from `before` to `after` in a statement."""

    names: tuple[Name, ...]
    marks: frozenset[int]
    before: bool
    after: bool


@dataclass(frozen=True, slots=True)
class Raised:
    """An exception, caught or not. `row` is the innermost row of the script, 0 if there is none; `rows` are
    all of them, from the outermost call to the innermost.

    `in_backward`: a backward pass raised it.
    """

    kinds: tuple[str, ...]
    message: str
    row: int
    marks: frozenset[int]
    time: int
    in_backward: bool
    rows: tuple[int, ...] = ()

    @property
    def kind(self) -> str:
        """The name of the exception's own type."""
        return self.kinds[0] if self.kinds else ""

    @property
    def of_sandbox(self) -> bool:
        """Whether the sandbox raised it."""
        return "Blocked" in self.kinds


@dataclass(frozen=True, slots=True)
class State:
    """How things stood before (`enter`) or after (`leave`) a marked statement.

    `mentions` pairs what the statement names with the identities of the tensors and arrays that this leads to (before
    it only); `graphs` gives the number of nodes of each graph, `saved` from where to where in memory that lies which
    graphs saved.
    """

    mark: int
    when: str
    time: int
    grad: bool
    in_backward: bool
    scope: str
    mentions: tuple[tuple[str, frozenset[int]], ...]
    graphs: tuple[tuple[Name, int], ...]
    same: tuple[frozenset[Name], ...]
    unheld: frozenset[Name]
    buffers: frozenset[Name]
    saved: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Write:
    """One operation or assignment that wrote, with the names that it bound.

    A name is its scope and the name, with a bar between; after one of a dictionary that got an item stands `[]`.
    """

    marks: frozenset[int]
    op: str
    bound: frozenset[str]


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a script.

    `failed` says why there are no observations; everything else is empty then. `passes` has the times at which each
    mark's statement began, and `idle` those at which it was a `for` that had nothing to go through. `ends` are the end
    values of names as texts, `flagged` the names of tensors that require grad at the end, and of those of them that
    have a graph, with `.grad_fn` after them, `values` what was returned.
    `ended` is the type of the exception that ended the script.
    `shortened` is not empty if a loop ended after a few of its turns, as the attempt asked; two runs share it if the
    same loops did, after as many turns.
    """

    failed: str = ""
    passes: tuple[tuple[int, ...], ...] = ()
    idle: tuple[tuple[int, ...], ...] = ()
    changes: tuple[Change, ...] = ()
    flips: tuple[Flip, ...] = ()
    raised: tuple[Raised, ...] = ()
    states: tuple[State, ...] = ()
    values: tuple[tuple[int, str, str], ...] = ()
    writes: tuple[Write, ...] = ()
    ends: tuple[tuple[str, str], ...] = ()
    flagged: frozenset[str] = frozenset()
    unheld: frozenset[Name] = frozenset()
    printed: str = ""
    ended: str = ""
    blocked: tuple[str, ...] = ()
    protections: tuple[str, ...] = ()
    cut_short: str = ""
    shortened: str = ""

    def reached(self, marks: int) -> bool:
        """Whether every one of so many marks was passed at least once."""
        return len(self.passes) == marks and all(self.passes)


def read_run(text: str) -> Run:
    """The run that an answer tells of. Raises `Malformed`."""
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        raise Malformed("it is not JSON") from None
    if not isinstance(answer, dict):
        raise Malformed("it is not an object")
    try:
        if "failed" in answer:
            return Run(failed=_text(answer["failed"]) or "no reason given")
        return Run(
            passes=tuple(_times(times) for times in _items(answer["passes"])),
            idle=tuple(_times(times) for times in _items(answer["idle"])),
            changes=tuple(_change(change) for change in _items(answer["changes"])),
            flips=tuple(_flip(flip) for flip in _items(answer["flips"])),
            raised=tuple(_raised(raised) for raised in _items(answer["raised"])),
            states=tuple(_state(state) for state in _items(answer["states"])),
            values=tuple(
                (_number(value["at"]), _text(value["scope"]), _text(value["value"]))
                for value in _items(answer["values"])
            ),
            writes=tuple(_write(write) for write in _items(answer["writes"])),
            ends=tuple((_text(key), _text(value)) for key, value in _dictionary(answer["ends"]).items()),
            flagged=frozenset(_text(name) for name in _items(answer["flagged"])),
            unheld=frozenset(_name(name) for name in _items(answer["unheld"])),
            printed=_text(answer["printed"]),
            ended=_text(answer["ended"]),
            blocked=tuple(_text(what) for what in _items(answer["blocked"])),
            protections=tuple(_text(what) for what in _items(answer["protections"])),
            cut_short=_text(answer["cut_short"]),
            shortened=_text(answer["shortened"]),
        )
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise Malformed(f"{type(error).__name__}: {error}"[:200]) from None


def _change(change: Any) -> Change:
    holders = tuple(
        Holder(
            names=tuple(_name(name) for name in _items(holder["paths"])),
            identity=_number(holder["identity"]),
            low=_number(holder["low"]),
            high=_number(holder["high"]),
            old_version=_number(holder["versions"][0]),
            version=_number(holder["versions"][1]),
            moved=_flag(holder["moved"]),
            before=_text(holder["before"]),
            after=_text(holder["after"]),
            kind=_text(holder["kind"]),
        )
        for holder in _items(change["holders"])
    )
    return Change(_times(change["stack"]), _marks(change["marks"]), _times(change["times"]), holders)


def _flip(flip: Any) -> Flip:
    names = tuple(_name(name) for name in _items(flip["paths"]))
    return Flip(names, _marks(flip["marks"]), _flag(flip["before"]), _flag(flip["after"]))


def _raised(raised: Any) -> Raised:
    kinds = tuple(_text(kind) for kind in _items(raised["kinds"]))
    return Raised(
        kinds=kinds,
        message=_text(raised["message"]),
        row=_number(raised["row"]),
        marks=_marks(raised["marks"]),
        time=_number(raised["time"]),
        in_backward=_flag(raised["in_backward"]),
        rows=tuple(_number(row) for row in _items(raised["rows"])),
    )


def _state(state: Any) -> State:
    return State(
        mark=_number(state["mark"]),
        when=_text(state["when"]),
        time=_number(state["time"]),
        grad=_flag(state["grad"]),
        in_backward=_flag(state["in_backward"]),
        scope=_text(state["scope"]),
        mentions=tuple((_text(chain), _marks(ids)) for chain, ids in _items(state["mentions"])),
        graphs=tuple(((_text(scope), _text(path)), _number(size)) for scope, path, size in _items(state["graphs"])),
        same=tuple(frozenset(_name(name) for name in _items(group)) for group in _items(state["same"])),
        unheld=frozenset(_name(name) for name in _items(state["unheld"])),
        buffers=frozenset(_name(name) for name in _items(state["buffers"])),
        saved=tuple((_number(low), _number(high)) for low, high in _items(state["saved"])),
    )


def _write(write: Any) -> Write:
    bound = frozenset(_text(name) for name in _items(write["bound"]))
    return Write(_marks(write["marks"]), _text(write["op"]), bound)


def _items(value: Any) -> list[Any]:
    if not isinstance(value, list) or len(value) > MOST_ITEMS:
        raise ValueError("no list, or too long a one")
    return value


def _dictionary(value: Any) -> dict[Any, Any]:
    if not isinstance(value, dict) or len(value) > MOST_ITEMS:
        raise ValueError("no object, or too large a one")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str) or len(value) > LONGEST_TEXT:
        raise ValueError("no text, or too long a one")
    return value


def _number(value: Any) -> int:
    if type(value) is not int:
        raise ValueError("no whole number")
    return value


def _flag(value: Any) -> bool:
    if type(value) is not bool:
        raise ValueError("no truth value")
    return value


def _name(value: Any) -> Name:
    scope, path = _items(value)
    return _text(scope), _text(path)


def _times(value: Any) -> tuple[int, ...]:
    return tuple(_number(item) for item in _items(value))


def _marks(value: Any) -> frozenset[int]:
    return frozenset(_times(value))
