"""A run: from paths to the result of each file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from traceback import extract_tb, format_exception

from torchcopylint.analysis import Analysis, Limits, OverLimit, Unreadable
from torchcopylint.analysis import analyse as analyse_alone
from torchcopylint.base.finding import Finding, Position, Span
from torchcopylint.base.gap import Gap
from torchcopylint.base.verification import Verdict
from torchcopylint.project.discover import Discovery, Found, Unlisted
from torchcopylint.project.modules import NOTHING, Dependencies, Modules
from torchcopylint.project.notebooks import in_cells, python_of
from torchcopylint.project.own import OwnReports
from torchcopylint.project.patterns import relative_posix
from torchcopylint.project.read import CannotRead, TooLarge, read_file
from torchcopylint.project.select import ALWAYS, ASKED_FOR, RuleIndex
from torchcopylint.project.settings import Settings
from torchcopylint.source.suppress import Suppressions
from torchcopylint.source.text import Undecodable, decode, refuse_null, split_lines

OK, FINDINGS, FAILURE = 0, 1, 2


@dataclass(frozen=True, slots=True)
class FileResult:
    """What one file came to.

    `path` is absolute, `filename` relative to `settings.root`, as it stands in the findings. `text` is kept where there
    are findings; that of a notebook is its Python. `suppressed` counts the findings that a comment hid. `failure` is
    the traceback of an internal error, or empty. `dependencies` are the other files that the analysis made use of.
    """

    path: str
    filename: str
    settings: Settings
    findings: tuple[Finding, ...]
    suppressed: int = 0
    gaps: tuple[Gap, ...] = ()
    text: str | None = None
    failure: str = ""
    dependencies: Dependencies = NOTHING


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
    """Checks one file after another with the rules of `index`."""

    def __init__(self, index: RuleIndex) -> None:
        self._index = index
        self._modules: dict[tuple[str, Limits], Modules] = {}

    def check(self, discovery: Discovery, advanced: Callable[[str], None] = lambda path: None) -> RunResult:
        """Check what was discovered. `advanced` is called with each path before it is checked, to show progress."""
        results = [self._unlisted(directory) for directory in discovery.unlisted]
        self._expect(discovery.files)
        for found in discovery.files:
            advanced(found.path)
            results.append(self.check_file(found))
        return RunResult(tuple(sorted(results, key=lambda result: result.path.split(os.sep))), discovery.missing)

    def _expect(self, files: Iterable[Found]) -> None:
        """These files are going to be checked: one that another uses need not be parsed twice."""
        wanted: dict[tuple[str, Limits], dict[str, str]] = {}
        for found in files:
            names = wanted.setdefault((found.settings.root, found.settings.limits), {})
            names[found.path] = relative_posix(found.path, found.settings.root)
        for key, names in wanted.items():
            self._modules[key] = Modules(*key, names)

    def modules_for(self, found: Found) -> Modules | None:
        """The files of the project that a file is in; `None` for a text that is no file."""
        if not os.path.isabs(found.path):
            return None
        key = (found.settings.root, found.settings.limits)
        if key not in self._modules:
            self._modules[key] = Modules(*key)
        return self._modules[key]

    def check_file(self, found: Found) -> FileResult:
        """Read and check one file. Whatever is wrong with it becomes a finding."""
        filename = relative_posix(found.path, found.settings.root)
        try:
            data = read_file(found.path, found.settings.limits.max_file_size)
        except CannotRead as error:
            unreadable = OwnReports(self._index.pages, filename).unreadable(str(error))
            return FileResult(found.path, filename, found.settings, (unreadable,))
        except TooLarge as error:
            return self._too_large(error.size, found, filename)
        return self.check_bytes(data, found, filename)

    def check_bytes(self, data: bytes, found: Found, filename: str) -> FileResult:
        """Check the content of a file."""
        if len(data) > found.settings.limits.max_file_size:
            return self._too_large(len(data), found, filename)
        try:
            source = decode(data)
        except Undecodable as error:
            text = data.decode("utf-8", "replace")
            unreadable = OwnReports(self._index.pages, filename).unreadable(
                error.reason, error.position, _line(text, error.position)
            )
            return FileResult(found.path, filename, found.settings, (unreadable,), text=text)
        return self.check_text(source.text, found, filename)

    def check_text(self, text: str, found: Found, filename: str) -> FileResult:
        """Check a decoded text. A fault of the analysis is one more finding: it must not end the run."""
        own = OwnReports(self._index.pages, filename)
        findings: tuple[Finding, ...]
        gaps: tuple[Gap, ...] = ()
        suppressed, failure = 0, ""
        try:
            text, left_out = python_of(text, own)
            findings, suppressed, gaps = self._analysed(text, found, own)
            findings += left_out
        except (Unreadable, Undecodable) as error:
            findings = (own.unreadable(error.reason, error.position, _line(text, error.position)),)
        except OverLimit as error:
            outcome = self._suppressions(text).apply((own.over_limit(error),), enabled=lambda code: False)
            findings, suppressed = outcome.kept, len(outcome.suppressed)
        except Exception as error:
            findings = (own.internal(_summary(error)),)
            failure = "".join(format_exception(error))
        shown = in_cells(_shown(findings, found), filename, text)
        # An internal error is about no line.
        kept = text if shown and not failure else None
        modules = self.modules_for(found)
        used = modules.dependencies(found.path) if modules is not None else NOTHING
        return FileResult(found.path, filename, found.settings, shown, suppressed, gaps, kept, failure, used)

    def _analysed(self, text: str, found: Found, own: OwnReports) -> tuple[tuple[Finding, ...], int, tuple[Gap, ...]]:
        """The findings that no comment hides, how many one hid, and the gaps."""
        refuse_null(text)
        analysis = analyse(text, found, own.filename, self.modules_for(found))
        ignored = found.settings.ignored_in(found.path)
        outcome = self._suppressions(text).apply(
            analysis.findings,
            enabled=lambda code: code not in ignored and found.settings.selection.enabled(code),
        )
        about = tuple(own.about(problem, _at(text, problem.span)) for problem in outcome.problems)
        return (*outcome.kept, *about), len(outcome.suppressed), analysis.gaps

    def _suppressions(self, text: str) -> Suppressions:
        return Suppressions(text, self._index.expand, self._index.names)

    def _too_large(self, size: int, found: Found, filename: str) -> FileResult:
        maximum = found.settings.limits.max_file_size
        skipped = OwnReports(self._index.pages, filename).too_large(size, maximum)
        return FileResult(found.path, filename, found.settings, _shown((skipped,), found))

    def _unlisted(self, directory: Unlisted) -> FileResult:
        filename = relative_posix(directory.path, directory.settings.root) or "."
        unreadable = OwnReports(self._index.pages, filename).unreadable(directory.reason)
        return FileResult(directory.path, filename, directory.settings, (unreadable,))


def analyse(text: str, found: Found, filename: str, modules: Modules | None) -> Analysis:
    """The analysis of one file, among the others of its project if it has any. Raises `Unreadable` and `OverLimit`."""
    if modules is None:
        return analyse_alone(text, filename=filename, limits=found.settings.limits)
    return modules.analyse(found.path, text, filename)


def _shown(findings: Iterable[Finding], found: Found) -> tuple[Finding, ...]:
    """The findings that are selected, in order."""
    ignored = found.settings.ignored_in(found.path)
    selection = found.settings.selection
    kept = (finding for finding in findings if finding.code in ALWAYS | ASKED_FOR or finding.code not in ignored)
    return tuple(sorted((finding for finding in kept if selection.shows(finding)), key=lambda finding: finding.order))


def _line(text: str, position: Position | None) -> str:
    row = position.row if position else 1
    return next(iter(split_lines(text)[row - 1 : row]), "")


def _at(text: str, span: Span) -> str:
    """What stands at a span of one line."""
    return _line(text, span.start)[span.start.column - 1 : span.end.column - 1]


def _summary(error: Exception) -> str:
    """The exception and the innermost place in this package where it happened, in one line."""
    frames = extract_tb(error.__traceback__)
    text = " ".join(str(error).split())
    what = f"{type(error).__name__}: {text[:200]}" if text else type(error).__name__
    place = next((frame for frame in reversed(frames) if "torchcopylint" in frame.filename), None)
    return f"{what} ({os.path.basename(place.filename)}:{place.lineno} in {place.name})" if place else what
