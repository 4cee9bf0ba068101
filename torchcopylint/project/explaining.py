"""Why there is a finding on a line, or none: every finding there with what became of it, and what the engine knows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from torchcopylint.analysis import OverLimit, Unreadable
from torchcopylint.base.finding import Finding
from torchcopylint.closeup import Closeup, Superseded, look
from torchcopylint.project.discover import Found
from torchcopylint.project.modules import Modules
from torchcopylint.project.patterns import relative_posix
from torchcopylint.project.pipeline import Checker
from torchcopylint.project.read import CannotRead, TooLarge, read_file
from torchcopylint.project.select import ALWAYS, ASKED_FOR, RuleIndex
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

    `shown` are the findings there, `elsewhere` those shown on other lines that have a step there. `hidden` are the ones
    that are not shown.
    """

    found: Found
    filename: str
    row: int
    text: str
    shown: tuple[Finding, ...]
    elsewhere: tuple[Finding, ...]
    hidden: tuple[Hidden, ...]
    closeup: Closeup


def explain_line(found: Found, row: int, index: RuleIndex) -> Explanation:
    """Explain one row (1-based) of a file. Raises `CannotExplain`."""
    filename = relative_posix(found.path, found.settings.root)
    limits = found.settings.limits
    try:
        text = decode(read_file(found.path, limits.max_file_size)).text
        refuse_null(text)
        lines = split_lines(text)
        if not 1 <= row <= len(lines):
            raise CannotExplain(f"it has {len(lines)} lines, and no line {row}")
        modules = Modules(found.settings.root, limits)
        modules.prepare(found.path, text)
        with modules.around(found.path) as others:
            closeup = look(text, filename=filename, row=row, limits=limits, around=others)
    except (CannotRead, TooLarge, Undecodable, Unreadable, OverLimit) as error:
        raise CannotExplain(f"it cannot be read or parsed: {error}") from None
    suppressions = Suppressions(text, index.expand, index.names)
    shown: list[Finding] = []
    elsewhere: list[Finding] = []
    hidden: list[Hidden] = []
    about = Checker(index).check_text(text, found, filename).findings
    for finding in (*closeup.findings, *(finding for finding in about if finding.code in (BLANKET, UNUSED, UNKNOWN))):
        why = _why_hidden(finding, found, suppressions, lines)
        if finding.span.start.row <= row <= finding.span.end.row:
            if why:
                hidden.append(Hidden(finding, why))
            else:
                shown.append(finding)
        elif not why and any(step.span.start.row == row for step in finding.steps):
            elsewhere.append(finding)
    for dropped in closeup.superseded:
        hidden.append(Hidden(dropped.finding, _superseded_by(dropped)))
    return Explanation(found, filename, row, text, tuple(shown), tuple(elsewhere), tuple(hidden), closeup)


def _superseded_by(dropped: Superseded) -> str:
    by = dropped.by
    if by is None:
        return "another rule says more about the same statement"
    if by.code == dropped.finding.code:
        return f"{by.code} speaks once of one place"
    return f"{by.code} says more about the same statement: {by.message}"


def _why_hidden(finding: Finding, found: Found, suppressions: Suppressions, lines: list[str]) -> str:
    """Why a finding is not shown, in the order in which a run decides; empty if it is."""
    settings, code = found.settings, finding.code
    selection = settings.selection
    if code in ALWAYS | ASKED_FOR:
        return ""
    span = suppressions.hiding(finding)
    if span is not None:
        comment = lines[span.start.row - 1][span.start.column - 1 : span.end.column - 1]
        return f"a comment on line {span.start.row} hides it: {comment}"
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
