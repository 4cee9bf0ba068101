"""What came of the attempts of one finding, and which ways of running have shown that other inputs do not help."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from torchcopylint.verify.observed import Run

_OF_KINDS = frozenset({"TypeError", "AssertionError", "KeyError", "RecursionError"})
"""What such an exception complains of seldom depends on shapes."""
_OF_NAMES = frozenset({"AttributeError", "NameError", "UnboundLocalError", "ImportError", "NotImplementedError"})
"""What such an exception complains of does not, and is not seen twice."""
_ALIKE, _ALIKE_OF_KINDS, _UNSEEN = 3, 2, 2
_OF_GRAPHS = re.compile(r"grad|graph|leaf|NoneType|numpy|view|in-?place", re.IGNORECASE)
"""What is said where it matters whether something has a graph."""
NUMBERS = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
_CONTENT = re.compile(r"tensor\(.*", re.DOTALL)


@dataclass(slots=True)
class Heard:
    """What is known of the ways of running under one setting, by their labels.

    `spent` are those of which nothing more is tried: they took too long, ended several times in the same way, once in
    the way in which another one did at the same statement of the file, or got to the steps twice and left it open.
    """

    spent: set[str] = field(default_factory=set)
    _ends: dict[tuple[str, str, str], int] = field(default_factory=dict)
    _ended: set[tuple[int, str, str]] = field(default_factory=set)
    _unseen: dict[str, int] = field(default_factory=dict)

    def add(self, label: str, run: Run, marks: int, row: int = 0) -> None:
        """One more attempt of a way of running was made, and another one is asked for. `row` is that of the file in
        which an exception ended it, 0 if none is known."""
        if run.failed:
            # Other inputs will not make it faster, less code may.
            self.spent.add(label)
        elif run.ended and run.reached(marks) and not (run.raised and run.raised[-1].marks):
            # What comes after the steps is in the way: it is left out next. A step that fails may do with other inputs.
            self.spent.add(label)
        elif run.ended and run.raised:
            error = run.raised[-1]
            said = NUMBERS.sub("0", _CONTENT.sub("", error.message))
            key = (label, error.kind, said)
            self._ends[key] = self._ends.get(key, 0) + 1
            most = 1 if error.kind in _OF_NAMES else _ALIKE_OF_KINDS if error.kind in _OF_KINDS else _ALIKE
            if self._ends[key] >= most:
                self._ended |= {(row, error.kind, said)} if row else set()
                self.spent.add(label)
            elif (row, error.kind, said) in self._ended:
                # The same inputs do the same to the same statement.
                self.spent.add(label)
        elif run.reached(marks):
            self._unseen[label] = self._unseen.get(label, 0) + 1
            if self._unseen[label] >= _UNSEEN:
                self.spent.add(label)


def is_of_kinds(run: Run) -> bool:
    """Whether what ended a run hangs on names and kinds, and hardly on shapes."""
    return bool(run.ended and run.raised) and run.raised[-1].kind in _OF_KINDS | _OF_NAMES


def ends_before(run: Run) -> bool:
    """Whether an exception that has nothing to do with graphs ended a run before any step: so it does with graphs."""
    if not run.ended or not run.raised or any(run.passes):
        return False
    return not any(_OF_GRAPHS.search(error.message) or error.of_sandbox for error in run.raised)
