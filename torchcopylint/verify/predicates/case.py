"""What a predicate is given, what it answers, and the words for both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from torchcopylint.base.finding import Role
from torchcopylint.base.verification import Evidence
from torchcopylint.verify.model import Mark
from torchcopylint.verify.observed import Name, Run


class Seen(Enum):
    """What came of one predicate on one attempt."""

    YES = "observed"
    NO = "not observed"
    HARMLESS = "observed, and it makes no difference here"
    EITHER_WAY = "observed, but also without what the finding says"
    UNCLEAR = "cannot be compared"


@dataclass(frozen=True, slots=True)
class Opinion:
    """What a predicate says, with its evidence."""

    seen: Seen
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """What a predicate is given.

    `run` is the code as it is. `ask` runs the script with an alteration at the marks of some roles and returns the run,
    or `None` if that cannot be had. `against` are the alterations that the page names, `expected` the exceptions as
    (type, beginning or part of the message), `blame` the role that takes the blame. `first` is an alteration that comes
    before the others, if any. `script` is what ran.
    """

    run: Run
    marks: tuple[Mark, ...]
    blame: Role
    against: tuple[str, ...]
    expected: tuple[tuple[str, str], ...]
    ask: Callable[[str, tuple[int, ...]], Run | None]
    first: str = ""
    script: str = ""

    def at(self, *roles: Role) -> tuple[int, ...]:
        """The indices of the marks with one of these roles."""
        return tuple(index for index, mark in enumerate(self.marks) if mark.role in roles)

    @property
    def sharing(self) -> tuple[int, ...]:
        """The marks where something is shared, or else kept, or moved."""
        return self.at(Role.SHARED) or self.at(Role.KEPT) or self.at(Role.MOVED)

    @property
    def blamed(self) -> tuple[int, ...]:
        """The marks of the role that takes the blame, or all."""
        return self.at(self.blame) or tuple(range(len(self.marks)))

    @property
    def refused(self) -> tuple[int, ...]:
        """The marks where torch refuses: those that take the blame, or where what was cut or kept there is met."""
        later = self.blame in (Role.CUT, Role.KEPT)
        return (self.at(Role.READ) if later else ()) or self.blamed

    def statement(self, index: int) -> str:
        """The text of the rows that a mark stands on, as they ran."""
        mark = self.marks[index]
        return "\n".join(self.script.split("\n")[mark.row - 1 : mark.end_row])

    def row(self, index: int) -> int | None:
        """The user's row of a mark."""
        return self.marks[index].user_row if 0 <= index < len(self.marks) else None

    def altered(
        self, defaults: Iterable[tuple[str, tuple[int, ...]]], *, whole: bool = True
    ) -> Iterator[tuple[str, Run]]:
        """The runs to compare with: by the page's alterations, else by `defaults`; only those that could be had.

        `whole` leaves out runs that only end with an exception because of the alteration: their ends say nothing.
        """
        wanted = list(defaults)
        if self.against:
            wanted = [(kind, self._marks_for(kind)) for kind in self.against]
        wanted.sort(key=lambda pair: pair[0] != self.first)
        for kind, marks in wanted:
            if not marks and kind not in WHOLE_RUN:
                continue
            run = self.ask(kind, marks)
            if run is not None and not run.failed and (not whole or not run.ended or self.run.ended):
                yield kind, run

    def _marks_for(self, kind: str) -> tuple[int, ...]:
        if kind in ("copies", "detached", "unretained", "registered"):
            return self.sharing or self.at(Role.WRITTEN) or self.blamed
        if kind in ("targets", "wide", "added-up", "versioned", "marked-dirty", "apart", "inputs"):
            return self.at(Role.WRITTEN) or self.blamed
        if kind == "retained":
            return self.at(Role.DISCARDED) or self.blamed
        if kind == "synchronised":
            return self.at(Role.MOVED) or self.blamed
        if kind == "reiterable":
            return self.at(Role.HERE) or self.blamed
        if kind == "uncut":
            return self.at(Role.CUT) or self.blamed
        return self.blamed


DISCARDED = "discarded_result"
"""The name under which an altered run keeps what a statement computes and drops."""
WHOLE_RUN = frozenset({"saves", "retain", "reiterable", "deduplicated"})
"""Alterations that need no marks."""


ALTERED = {
    "apart": "when the statement is given copies",
    "inputs": "when what is only read is copied first",
    "contiguous": "when its tensors are contiguous",
    "retained": "when the graph is retained",
    "synchronised": "when the copy is waited for",
    "deduplicated": "when every parameter is held once",
    "copies": "with a copy instead of what is shared",
    "targets": "when what is written is copied first",
    "skipped": "when the statement is left out",
    "uncalled": "when the call is left out",
    "operands": "when its tensors are plain copies",
    "saves": "when what autograd saves is copied",
    "uncut": "when the graph is kept",
    "detached": "when the graph is left behind",
    "versioned": "when the tensor itself is written",
    "added-up": "when every index is counted",
    "assigned-back": "when the result is used",
    "named": "when the result is given a name",
    "retain": "when gradients of computed tensors are retained",
    "reiterable": "when the generators can be iterated again",
    "wide": "when what is written is floating point",
    "unretained": "when the graph is not retained",
    "mode-entered": "when the mode is entered",
    "flag-set": "when the flag is set",
    "registered": "when it is a parameter",
    "marked-dirty": "when the write is told to autograd",
}
"""Each alteration, as the end of a sentence "without it, ..."."""


def text_of(name: Name) -> str:
    """A name as the user would say it, in backticks."""
    scope, path = name
    return f"`{path}`" if not scope else f"`{path}` (in `{scope}`)"


def without(kind: str) -> Evidence:
    """The evidence that an alteration takes the observation away."""
    return Evidence("differential", f"{ALTERED.get(kind, kind)}, this is not observed")


def shortest(names: Iterable[Name]) -> list[Name]:
    """Names in the order in which they are worth telling: those with short paths first."""
    return sorted(names, key=lambda name: (len(name[1]), name))


def statements_of(case: Case, marks: tuple[int, ...]) -> set[tuple[int, int]]:
    """The rows that marks stand on, to tell whether two stand on one statement."""
    return {(case.marks[index].row, case.marks[index].end_row) for index in marks}
