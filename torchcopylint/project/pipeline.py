"""A run: from paths to the result of each file."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

from torchcopylint.base.finding import Finding, Span
from torchcopylint.base.gap import Gap
from torchcopylint.base.verification import Verdict
from torchcopylint.project.dependencies import digest_of
from torchcopylint.project.discover import Discovery, Found, Unlisted
from torchcopylint.project.engine import Advanced, ChooseEngine, serial
from torchcopylint.project.examined import (
    Examined,
    Outcome,
    Projects,
    Request,
    Seen,
    examine_bytes,
    examine_file,
    examine_text,
)
from torchcopylint.project.notebooks import in_cells, python_of
from torchcopylint.project.own import OwnReports
from torchcopylint.project.patterns import relative_posix
from torchcopylint.project.read import CannotRead, TooLarge, read_file
from torchcopylint.project.select import ALWAYS, ASKED_FOR, RuleIndex
from torchcopylint.project.settings import Settings
from torchcopylint.project.store import Stores
from torchcopylint.source.suppress import Suppressions
from torchcopylint.source.text import Undecodable, decode, split_lines

OK, FINDINGS, FAILURE = 0, 1, 2


@dataclass(frozen=True, slots=True)
class FileResult:
    """What one file came to.

    `path` is absolute, `filename` relative to `settings.root`, as it stands in the findings. `text` is kept where there
    are findings; that of a notebook is its Python. `suppressed` counts the findings that a comment hid. `failure` is
    the traceback of an internal error, or empty.
    """

    path: str
    filename: str
    settings: Settings
    findings: tuple[Finding, ...]
    suppressed: int = 0
    gaps: tuple[Gap, ...] = ()
    text: str | None = None
    failure: str = ""


@dataclass(frozen=True, slots=True)
class RunResult:
    """What a run came to: its files in order of path, and the given paths that do not exist.

    `confirmed_only`: a finding that was run makes the run fail only if it was confirmed, or there was no torch.
    """

    files: tuple[FileResult, ...]
    missing: tuple[str, ...] = ()
    confirmed_only: bool = False

    @property
    def exit_code(self) -> int:
        """0 if nothing is at or above `fail-on`, 1 if something is, 2 if a path is missing or the linter failed."""
        if self.missing or any(file.failure for file in self.files):
            return FAILURE
        failing = any(
            file.settings.fails(finding.severity)
            for file in self.files
            for finding in file.findings
            if finding.code not in ASKED_FOR and not (self.confirmed_only and _unconfirmed(finding))
        )
        return FINDINGS if failing else OK


def _unconfirmed(finding: Finding) -> bool:
    result = finding.verification
    return result is not None and result.verdict not in (Verdict.CONFIRMED, Verdict.UNAVAILABLE)


class Checker:
    """Checks files with the rules of `index`: examines them, and selects from what was found."""

    def __init__(
        self,
        index: RuleIndex,
        *,
        stores: Stores | None = None,
        choose_engine: ChooseEngine = serial,
        screen: bool = True,
    ) -> None:
        """`stores` remember what files came to in earlier runs. `choose_engine` says what examines those that they do
        not know, and `screen` whether files that surely have no finding may be spared."""
        self._index = index
        self._stores = stores
        self._screen = screen
        self._choose_engine = choose_engine

    def check(self, discovery: Discovery, advanced: Advanced = lambda path: None) -> RunResult:
        """Check what was discovered. `advanced` is called with each path when its turn comes, to show progress."""
        results = [self._unlisted(directory) for directory in discovery.unlisted]
        unknown: list[Found] = []
        for found in discovery.files:
            known = self._stores.of(found.settings.root).recall(self._request(found)) if self._stores else None
            result = self._replayed(known, found) if known else None
            if result is None:
                unknown.append(found)
            else:
                advanced(found.path)
                results.append(result)
        try:
            requests = [self._request(found) for found in unknown]
            shelves = self._stores.shelf if self._stores else None
            for number, seen in self._choose_engine(requests)(requests, self._index.pages, advanced, shelves):
                if self._stores:
                    self._stores.of(unknown[number].settings.root).keep(requests[number], seen)
                results.append(self._judged_again(seen, unknown[number]))
        finally:
            # What an interrupted run has found out is not lost.
            if self._stores:
                self._stores.save()
        return RunResult(tuple(sorted(results, key=lambda result: result.path.split(os.sep))), discovery.missing)

    def check_bytes(self, data: bytes, found: Found, filename: str) -> FileResult:
        """Check a content for a file, which may have another one, such as what an editor has not written yet. What it
        comes to is not remembered, but what is found out about the files that it uses."""
        request = self._request(found, filename)
        if self._stores is None:
            return self._judged(examine_bytes(data, request, self._index.pages, Projects()), found, filename)
        store = self._stores.of(found.settings.root)
        known = store.recall(request)
        result = self._replayed(known, found) if known is not None and known.digest == digest_of(data) else None
        if result is None:
            projects = Projects(shelves=self._stores.shelf)
            seen = examine_bytes(data, request, self._index.pages, projects)
            store.learn(request, seen)
            self._stores.save()
            result = self._judged(seen, found, filename)
        return result

    def check_text(self, text: str, found: Found, filename: str) -> FileResult:
        """Check a decoded text."""
        seen = examine_text(text, self._request(found, filename), self._index.pages, Projects())
        return self._judged(seen, found, filename)

    def _replayed(self, known: Examined, found: Found) -> FileResult | None:
        """What is known of a file as a result, or `None` if its text is needed and is not the one that was examined."""
        text = None
        if known.findings or known.commented:
            text = self._text_of(found, known.digest)
            if text is None:
                return None
        return self._judged(Seen(known, text), found, relative_posix(found.path, found.settings.root))

    def _judged_again(self, seen: Seen, found: Found) -> FileResult:
        """The result of an examination, which may have happened elsewhere, without handing the text back."""
        examined, text = seen.examined, seen.text
        request = self._request(found)
        if text is None and examined.digest and (examined.findings or examined.commented):
            text = self._text_of(found, examined.digest)
            # `None`: it was changed in between.
            seen = Seen(examined, text) if text is not None else examine_file(request, self._index.pages, Projects())
        return self._judged(seen, found, request.filename)

    def _judged(self, seen: Seen, found: Found, filename: str) -> FileResult:
        """What is shown of an examined file: comments, settings and selection are applied."""
        examined, text = seen.examined, seen.text
        findings, suppressed = examined.findings, 0
        if text is not None and examined.outcome in (Outcome.ANALYSED, Outcome.LIMITED):
            ignored = found.settings.ignored_in(found.path)
            suppressions = Suppressions(text, self._index.expand, self._index.names)
            analysed = examined.outcome is Outcome.ANALYSED
            outcome = suppressions.apply(
                findings,
                enabled=lambda code: analysed and code not in ignored and found.settings.selection.enabled(code),
            )
            findings, suppressed = outcome.kept, len(outcome.suppressed)
            if analysed:
                own = OwnReports(self._index.pages, filename)
                findings += tuple(own.about(problem, _at(text, problem.span)) for problem in outcome.problems)
        shown = in_cells(_shown(findings, found), filename, text or "")
        # An internal error is about no line.
        kept = text if shown and not examined.failure else None
        return FileResult(
            path=found.path,
            filename=filename,
            settings=found.settings,
            findings=shown,
            suppressed=suppressed,
            gaps=examined.gaps,
            text=kept,
            failure=examined.failure,
        )

    def _text_of(self, found: Found, digest: str) -> str | None:
        """The text of a file, of a notebook its Python, or `None` if its content is not the one with this digest."""
        try:
            data = read_file(found.path, found.settings.limits.max_file_size)
        except (CannotRead, TooLarge):
            return None
        if digest_of(data) != digest:
            return None
        try:
            text = decode(data).text
        except Undecodable:
            return data.decode("utf-8", "replace")
        try:
            return python_of(text, OwnReports(self._index.pages, relative_posix(found.path, found.settings.root)))[0]
        except Undecodable:
            return text

    def _request(self, found: Found, filename: str | None = None) -> Request:
        """What is asked about a file; `filename` is its name in findings if it is not that of its path."""
        name = relative_posix(found.path, found.settings.root) if filename is None else filename
        return Request(found.path, name, found.settings.limits, found.settings.root, self._screen)

    def _unlisted(self, directory: Unlisted) -> FileResult:
        filename = relative_posix(directory.path, directory.settings.root) or "."
        unreadable = OwnReports(self._index.pages, filename).unreadable(directory.reason)
        return FileResult(directory.path, filename, directory.settings, (unreadable,))


def _shown(findings: Iterable[Finding], found: Found) -> tuple[Finding, ...]:
    """The findings that are selected, in order."""
    ignored = found.settings.ignored_in(found.path)
    selection = found.settings.selection
    kept = (finding for finding in findings if finding.code in ALWAYS | ASKED_FOR or finding.code not in ignored)
    return tuple(sorted((finding for finding in kept if selection.shows(finding)), key=lambda finding: finding.order))


def _at(text: str, span: Span) -> str:
    """What stands at a span of one line."""
    line = next(iter(split_lines(text)[span.start.row - 1 : span.start.row]), "")
    return line[span.start.column - 1 : span.end.column - 1]
