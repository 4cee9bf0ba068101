"""Why there is a finding on a line, or none: every finding there with what became of it, and what the engine knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from torchcopylint.analysis import OverLimit, Unreadable
from torchcopylint.base.finding import Finding
from torchcopylint.closeup import Closeup, Superseded, look
from torchcopylint.project.discover import Found
from torchcopylint.project.modules import Modules
from torchcopylint.project.notebooks import in_cells, python_of
from torchcopylint.project.own import OwnReports
from torchcopylint.project.patterns import relative_posix
from torchcopylint.project.pipeline import Checker
from torchcopylint.project.read import CannotRead, TooLarge, read_file
from torchcopylint.project.select import ALWAYS, ASKED_FOR, RuleIndex
from torchcopylint.report.model import place
from torchcopylint.source.notebook import cells, is_notebook, row_called
from torchcopylint.source.suppress import BLANKET, UNKNOWN, UNUSED, Suppressions
from torchcopylint.source.text import Undecodable, decode, refuse_null, split_lines


class CannotExplain(Exception):
    """The file cannot be read or analysed, or has no such line; the message says which."""


class Hidden(NamedTuple):
    """A finding that is not shown, and why."""

    finding: Finding
    why: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """What there is to say of one line of a file.

    `row` is that in the `text`, which of a notebook is its Python; `place` is the row for people. `shown` are the
    findings there, `elsewhere` those shown on other lines that have a step there. `hidden` are the ones that are not
    shown.
    """

    found: Found
    filename: str
    row: int
    place: str
    text: str
    shown: tuple[Finding, ...]
    elsewhere: tuple[Finding, ...]
    hidden: tuple[Hidden, ...]
    closeup: Closeup


def explain_line(found: Found, row: int, index: RuleIndex, cell: int | None = None) -> Explanation:
    """Explain one row (1-based) of a file, or of a cell (1-based) of a notebook. Raises `CannotExplain`."""
    filename = relative_posix(found.path, found.settings.root)
    limits = found.settings.limits
    try:
        given = decode(read_file(found.path, limits.max_file_size)).text
        text, _ = python_of(given, OwnReports(index.pages, filename))
        refuse_null(text)
        lines = split_lines(text)
        starts = cells(text) if is_notebook(filename) else ()
        below = _line_before(cell, starts, notebook=is_notebook(filename))
        last = next((start - 2 for _, start in starts if start > below), len(lines)) - below
        if not 1 <= row <= last:
            raise CannotExplain(f"{_called(cell)} has {last} lines, and no line {row}")
        modules = Modules(found.settings.root, limits)
        modules.prepare(found.path, text)
        with modules.around(found.path) as others:
            closeup = look(text, filename=filename, row=below + row, limits=limits, around=others)
    except (CannotRead, TooLarge, Undecodable, Unreadable, OverLimit) as error:
        raise CannotExplain(f"it cannot be read or parsed: {error}") from None
    suppressions = Suppressions(text, index.expand, index.names)
    shown: list[Finding] = []
    elsewhere: list[Finding] = []
    hidden: list[Hidden] = []
    about = Checker(index).check_text(given, found, filename).findings
    reasons = [_why_hidden(finding, found, suppressions, lines, starts) for finding in closeup.findings]
    judged = list(zip(in_cells(closeup.findings, filename, text), reasons, strict=True))
    # What the run says of comments has been through the selection.
    judged += [(finding, "") for finding in about if finding.code in (BLANKET, UNUSED, UNKNOWN)]
    for finding, why in judged:
        if finding.cell == cell and finding.span.start.row <= row <= finding.span.end.row:
            if why:
                hidden.append(Hidden(finding, why))
            else:
                shown.append(finding)
        elif not why and any((step.cell, step.span.start.row) == (cell, row) for step in finding.steps):
            elsewhere.append(finding)
    for dropped in closeup.superseded:
        hidden.append(Hidden(in_cells([dropped.finding], filename, text)[0], _superseded_by(dropped)))
    return Explanation(
        found,
        filename,
        below + row,
        place(row, cell),
        text,
        tuple(shown),
        tuple(elsewhere),
        tuple(hidden),
        closeup,
    )


def _line_before(cell: int | None, starts: Sequence[tuple[int, int]], *, notebook: bool) -> int:
    """The row before the first of a cell, or 0 outside notebooks. Raises `CannotExplain`."""
    if not notebook and cell is not None:
        raise CannotExplain("it is no notebook, and has no cells")
    if notebook and cell is None:
        raise CannotExplain("it is a notebook: name the cell as well, FILE:CELL:LINE")
    if cell is None:
        return 0
    row = dict(starts).get(cell)
    if row is None:
        raise CannotExplain(f"cell {cell} is not there, or has no Python")
    return row


def _called(cell: int | None) -> str:
    return "it" if cell is None else f"cell {cell}"


def _superseded_by(dropped: Superseded) -> str:
    by = dropped.by
    if by is None:
        return "another rule says more about the same statement"
    if by.code == dropped.finding.code:
        return f"{by.code} speaks once of one place"
    return f"{by.code} says more about the same statement: {by.message}"


def _why_hidden(
    finding: Finding,
    found: Found,
    suppressions: Suppressions,
    lines: Sequence[str],
    starts: Sequence[tuple[int, int]],
) -> str:
    """Why a finding is not shown, in the order in which a run decides; empty if it is."""
    settings, code = found.settings, finding.code
    selection = settings.selection
    if code in ALWAYS | ASKED_FOR:
        return ""
    span = suppressions.hiding(finding)
    if span is not None:
        comment = lines[span.start.row - 1][span.start.column - 1 : span.end.column - 1]
        return f"a comment on {row_called(span.start.row, starts)} hides it: {comment}"
    if code in selection.ignored:
        return f"{code} is ignored"
    if code in settings.ignored_in(found.path):
        return f"{code} is ignored in this file, by per-file-ignores"
    if selection.shows(finding):
        return ""
    if finding.confidence.rank > selection.floor.rank:
        return f"its confidence is {finding.confidence}, and min-confidence is {selection.floor}"
    if code not in selection.selected and code not in selection.by_preset:
        return f"{code} is not selected"
    return f"the preset {selection.preset} leaves it out; `--select {code}` or `--preset strict` shows it"
