"""The small types between slicing, running and judging."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from torchcopylint.base.finding import Role
from torchcopylint.base.verification import Verdict
from torchcopylint.verify.observed import Run


@dataclass(frozen=True, slots=True)
class Mark:
    """Where a step of the witness stands in a script.

    Rows are 1-based, `end_row` inclusive, columns 1-based code points. `user_row` is the row in the user's file, or in
    another file `user_file`. `names` are the user's names that the step speaks of ("best", "model"), for the evidence.
    """

    role: Role
    row: int
    end_row: int
    column: int
    end_column: int
    user_row: int
    names: tuple[str, ...] = ()
    user_file: str = ""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One complete script to run: imports, inputs, the user's statements, and what drives them.

    `script` is plain Python that also runs on its own (`--repro-dir` writes it out). `marks` are the steps of the
    witness in it. `label` says what is particular about its inputs ("batch of 2, float32"). `assumed` are sentences,
    one for every fact that the file did not give; `standins` one for every unknown thing that was replaced. `guessed`
    is true if a kind (tensor, array, module) was guessed and not known: the verdict is then `inconclusive` at best.
    `whole`: loops run to their end, and not a few turns of those that have many statements.
    `partial` is true if something that may hide the effect was cut away or stood in for: such a run can confirm, and
    never refute. `unwritten`: nothing in the file writes what is shared, so that a write was assumed (by `change`).
    `unlent` makes the same with nothing that stands in requiring grad: a graph is then the user's own (`graph`); or has
    recording off where the code is called, if nothing in it counts on that (`recording`).
    `apart` makes the same with what is moved to a GPU told from what is not, so that what comes back is a copy.
    `meant` is why what the finding says is what the file wants, if it says so: then it is never confirmed.
    `fixed` rows at the beginning of the script are none of the user's, and are not looked at.
    `next` makes the attempt that comes next under another setting if this one does, and `likely` is whether that is
    expected before it has run.
    """

    script: str
    marks: tuple[Mark, ...]
    seed: int
    label: str = ""
    assumed: tuple[str, ...] = ()
    standins: tuple[str, ...] = ()
    guessed: bool = False
    partial: bool = False
    whole: bool = False
    unwritten: bool = False
    unlent: Callable[[str], Attempt | None] | None = field(default=None, compare=False, repr=False)
    apart: Callable[[], Attempt | None] | None = field(default=None, compare=False, repr=False)
    next: Callable[[], Attempt | None] | None = field(default=None, compare=False, repr=False)
    likely: bool = False
    fixed: int = 0
    meant: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """Attempts of which the first that reaches every mark and leaves nothing open counts, under one setting.

    `branch`: of a copy that is made under a condition, what happens under this setting: `shares` or `copies`, or empty.
    `heard` is told what came of each attempt before the next one is asked for, so that the search can learn from it.
    `told` gets what came of the group in the end. `doubts`: it is run only if all groups before it refuted the
    finding, and counts only if it confirms it.
    """

    label: str
    attempts: Iterable[Attempt]
    heard: Callable[[Run], None] | None = None
    branch: str = ""
    doubts: bool = False
    told: Callable[[Verdict], None] | None = None


@dataclass(frozen=True, slots=True)
class Slice:
    """What is to be run for one finding.

    `groups` are settings that all have to be tried (two seeds, two sizes, both branches of a conditional copy).
    `code`, `variant` and `confirm` are the rule's; `unsupported` says why nothing can be run, or is empty. `cells` are
    those of a notebook, as `source.notebook.cells` gives them: rows are those of its Python. `elsewhere` is whether
    what is wrong happens on another device only. `place` says of a row in evidence of which file it is, empty for the
    one that was checked, and which row it is there. `otherwise` makes another slice, for where this one leaves the
    finding open: that file alone.
    """

    code: str
    variant: str
    confirm: tuple[str, ...]
    groups: tuple[Group, ...] = ()
    unsupported: str = ""
    cells: tuple[tuple[int, int], ...] = ()
    elsewhere: bool = False
    place: Callable[[int], tuple[str, int]] = lambda row: ("", row)
    otherwise: Callable[[], Slice] | None = None
