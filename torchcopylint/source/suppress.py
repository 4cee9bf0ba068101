"""Suppression comments: which there are, what they hide, and which are blanket, unused or misspelt.

    y = x.detach_()  # torchcopylint: ignore[TCL301]        this statement, on any of its lines
    # torchcopylint: ignore[TCL301, data-read]              the statement on the next line
    # torchcopylint: ignore-file[TCL1]                      this file
    y = x.detach_()  # noqa: TCL301                         this statement, as flake8 and ruff write it

What a code or prefix stands for is the caller's knowledge, passed in as `expand`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from torchcopylint.base.finding import Finding, Position, Span
from torchcopylint.base.suggest import nearest
from torchcopylint.source.comments import Comment, comments
from torchcopylint.source.questions import REVEAL

NEVER_SUPPRESSED = frozenset({"TCL000", "TCL005", "TCL006"})
BLANKET, UNUSED, UNKNOWN = "TCL001", "TCL002", "TCL003"
_ONLY_BY_CODE = frozenset({BLANKET, UNUSED, UNKNOWN, "TCL004"})

_OURS = re.compile(
    r"#\s*torchcopylint\s*:\s*(?P<verb>[\w-]+)(?P<rest>\s*\[(?P<codes>[^\]\r\n#]*)(?P<close>\]?))?", re.IGNORECASE
)
_LOOSE_CODES = re.compile(r"\s*[:=(]?\s*(?P<code>[\w-]+)")
_NOQA = re.compile(
    r"#\s*noqa(?![\w-])(?:\s*(?P<colon>:)\s*(?P<codes>[A-Z]+\d+(?:[,\s]+[A-Z]+\d+\b)*)?)?", re.IGNORECASE
)
_VERBS = ("ignore", "ignore-file")
_OTHER_TOOLS_VERBS = {"disable": "ignore", "noqa": "ignore", "skip": "ignore", "disable-file": "ignore-file"}

Expand = Callable[[str], frozenset[str]]
"""From a code, prefix or name, as a user writes it, to the codes of the rules that it stands for; empty if none."""


class Problem(NamedTuple):
    """Something wrong with a suppression, to become a finding of the rule `code` with `values` in its message.

    `advised` says whether the advice on the rule's page fits.
    """

    code: str
    span: Span
    values: dict[str, str]
    advised: bool = True


class Outcome(NamedTuple):
    """What suppressions did to the findings of one file."""

    kept: tuple[Finding, ...]
    suppressed: tuple[Finding, ...]
    problems: tuple[Problem, ...]


@dataclass(slots=True)
class _Entry:
    """One code of a suppression, as written, with what it stands for. A blanket one stands for every rule."""

    written: str
    codes: frozenset[str] | None
    span: Span
    used: bool = False

    def covers(self, code: str) -> bool:
        if self.codes is None:
            # A blanket hides neither the report that it is one nor that the file was skipped.
            return code not in _ONLY_BY_CODE
        return code in self.codes


@dataclass(slots=True)
class _Directive:
    """One suppression. `rows` are its own and, if it stands alone, the next row of code; `None` is the whole file.
    A foreign one is a `noqa`, which other tools use as well."""

    rows: frozenset[int] | None
    entries: list[_Entry] = field(default_factory=list)
    foreign: bool = False

    def reaches(self, first: int, last: int) -> bool:
        """Whether it is about a statement on rows `first` to `last`."""
        return self.rows is None or any(first <= row <= last for row in self.rows)


def mentions_this_tool(text: str) -> bool:
    """Whether a text can have comments of this tool: without one, there is nothing to say of its suppressions."""
    return "torchcopylint" in text.lower()


class Suppressions:
    """The suppressions of one text."""

    def __init__(self, text: str, expand: Expand, names: Iterable[str]) -> None:
        """`names` are the codes and names to choose suggestions from."""
        self._expand = expand
        self._names = frozenset(names)
        self._problems: list[Problem] = []
        self._directives: list[_Directive] = []
        if mentions_this_tool(text) or "noqa" in text.lower():
            found = list(comments(text))
            alone = {comment.row for comment in found if comment.alone}
            for comment in found:
                self._read(comment, alone)

    def apply(self, findings: Sequence[Finding], enabled: Callable[[str], bool]) -> Outcome:
        """Split the findings of the text into kept and suppressed, and say what is wrong with the suppressions.

        The findings are to be all that the analysis made, shown or not, so that a suppression of one that is not shown
        in this run is not taken for unused. `enabled` says whether a rule can report anything in this run: the
        suppression of one that cannot is never called unused.
        """
        kept: list[Finding] = []
        suppressed: list[Finding] = []
        for finding in findings:
            hidden = finding.code not in NEVER_SUPPRESSED and self._hides(finding.code, finding.statement)
            (suppressed if hidden else kept).append(finding)
        problems = [problem for problem in self._problems if not self._hides(problem.code, problem.span)]
        problems += [problem for problem in self._unused(enabled) if not self._hides(problem.code, problem.span)]
        # Only now is it known whether a suppression of TCL002 itself was of use.
        problems += self._unused(enabled, about=UNUSED)
        return Outcome(tuple(kept), tuple(suppressed), tuple(problems))

    def hiding(self, finding: Finding) -> Span | None:
        """The place of the comment, or of the code in it, that hides a finding, or `None`."""
        for directive in self._directives:
            if directive.reaches(finding.statement.start.row, finding.statement.end.row):
                for entry in directive.entries:
                    if finding.code not in NEVER_SUPPRESSED and entry.covers(finding.code):
                        return entry.span
        return None

    def _hides(self, code: str, statement: Span) -> bool:
        first, last = statement.start.row, statement.end.row
        if statement.end.column == 1 and last > first:
            last -= 1
        hidden = False
        for directive in self._directives:
            if directive.reaches(first, last):
                for entry in directive.entries:
                    if entry.covers(code):
                        entry.used = hidden = True
        return hidden

    def _unused(self, enabled: Callable[[str], bool], about: str | None = None) -> list[Problem]:
        problems = []
        for directive in self._directives:
            for entry in directive.entries:
                mentions = entry.codes == frozenset({UNUSED})
                if entry.used or directive.foreign or mentions != (about == UNUSED):
                    continue
                if entry.codes is None:
                    problems.append(Problem(UNUSED, entry.span, {"code": "every rule"}, advised=False))
                elif any(enabled(code) for code in entry.codes):
                    problems.append(Problem(UNUSED, entry.span, {"code": entry.written}))
        return problems

    def _read(self, comment: Comment, alone: set[int]) -> None:
        """Take in what one comment says."""
        for match in _OURS.finditer(comment.text):
            self._read_ours(comment, match, alone)
        for match in _NOQA.finditer(comment.text):
            self._read_noqa(comment, match)

    def _read_ours(self, comment: Comment, match: re.Match[str], alone: set[int]) -> None:
        verb = match["verb"].lower()
        span = _span(comment, match.start(), match.end())
        if verb == REVEAL:
            # A question, and no suppression.
            return
        if verb not in _VERBS:
            meant = _OTHER_TOOLS_VERBS.get(verb) or nearest(verb, _VERBS)
            if meant:
                self._unknown(span, match["verb"], meant)
            return
        if match["rest"] and not match["close"]:
            written = match[0].partition(":")[2].strip()
            self._unknown(span, written, f"{written}]")
            return
        rows = None
        if verb == "ignore":
            rows = frozenset({comment.row, _next_code_row(comment.row, alone)} if comment.alone else {comment.row})
        directive = _Directive(rows)
        if match["rest"] is None:
            loose = _LOOSE_CODES.match(comment.text, match.end())
            if loose and self._expand(loose["code"]):
                code = loose["code"]
                self._unknown(_span(comment, match.start(), loose.end()), f"{verb} {code}", f"{verb}[{code}]")
                return
        written_codes = list(re.finditer(r"[^,\s]+", match["codes"] or ""))
        if not written_codes:
            directive.entries.append(_Entry(verb, None, span))
            self._problems.append(Problem(BLANKET, span, {}))
        for part in written_codes:
            start = match.start("codes") + part.start()
            self._add(directive, part[0], _span(comment, start, start + len(part[0])))
        self._directives.append(directive)

    def _add(self, directive: _Directive, written: str, span: Span) -> None:
        codes = self._expand(written)
        if codes:
            directive.entries.append(_Entry(written, codes, span))
        else:
            self._unknown(span, written, nearest(written, self._names))

    def _read_noqa(self, comment: Comment, match: re.Match[str]) -> None:
        if match["colon"] and not match["codes"]:
            # A `noqa` with a reason in the place of codes is no suppression for ruff either.
            return
        directive = _Directive(frozenset({comment.row}), foreign=True)
        span = _span(comment, match.start(), match.end())
        if not match["codes"]:
            directive.entries.append(_Entry("noqa", None, span))
        for written in re.findall(r"[A-Za-z]+[0-9]+", match["codes"] or ""):
            codes = self._expand(written)
            if codes:
                directive.entries.append(_Entry(written, codes, span))
        self._directives.append(directive)

    def _unknown(self, span: Span, written: str, meant: str | None) -> None:
        values = {"code": written, "nearest": meant or ""}
        self._problems.append(Problem(UNKNOWN, span, values, advised=meant is not None))


def _span(comment: Comment, start: int, end: int) -> Span:
    return Span(Position(comment.row, comment.column + start), Position(comment.row, comment.column + end))


def _next_code_row(row: int, alone: set[int]) -> int:
    """The first row after `row` that does not hold a comment alone: the statement there is meant, if one is there."""
    row += 1
    while row in alone:
        row += 1
    return row
