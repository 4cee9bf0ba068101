"""What the content of one file comes to, whoever asks: all that is known before comments and settings select from it.

This is what a worker sends back and what the cache keeps. It depends on the content, the file's name in findings, the
limits, and the other files in its `dependencies`, and on no other setting.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import NamedTuple, Protocol, TypeAlias

from torchcopylint.analysis import Analysis, Limits, OverLimit, Unreadable, within_limits
from torchcopylint.analysis import analyse as analyse_alone
from torchcopylint.base.collecting import rare_collections
from torchcopylint.base.finding import Finding, Position
from torchcopylint.base.gap import Gap
from torchcopylint.base.plain import to_plain
from torchcopylint.pages import Page
from torchcopylint.project.dependencies import NOTHING, Asked, Dependencies, Lookup, Used, digest_of
from torchcopylint.project.modules import Modules, Others, Recall
from torchcopylint.project.notebooks import python_of
from torchcopylint.project.own import OwnReports
from torchcopylint.project.read import CannotRead, TooLarge, read_file
from torchcopylint.project.shelf import Recalled, Summarised
from torchcopylint.project.sources import never
from torchcopylint.source.suppress import mentions_this_tool
from torchcopylint.source.text import Undecodable, decode, refuse_null, split_lines


class Request(NamedTuple):
    """A file to examine: its absolute path, its name in findings, and what holds for it.

    `root` is the absolute root of its project. A file whose path is not absolute, such as `<stdin>`, has no other files
    beside it. `screen` says whether files that cannot matter may be recognised without a full analysis.
    """

    path: str
    filename: str
    limits: Limits
    root: str
    screen: bool = True


class Outcome(StrEnum):
    """How far the examination of a file came: to its end, to a limit, to a text that is no Python, or to a fault of
    the linter or of the process that it ran in."""

    ANALYSED = "analysed"
    LIMITED = "limited"
    UNREADABLE = "unreadable"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Examined:
    """What one content came to.

    `findings` are all of them, whatever is selected. `digest` is that of the content, empty if there is none to speak
    of. `commented` says whether the text can have comments of this tool, about which something may be to say even if
    there is no finding. `dependencies` are what else it directly came to this by, and `asked` what the whole project
    said. `failure` is the traceback of an internal error, or empty.
    """

    outcome: Outcome
    findings: tuple[Finding, ...]
    digest: str = ""
    commented: bool = False
    gaps: tuple[Gap, ...] = ()
    dependencies: Dependencies = NOTHING
    failure: str = ""
    asked: tuple[Asked, ...] = ()

    @property
    def lasting(self) -> bool:
        """Whether the same content will come to the same again."""
        return bool(self.digest) and self.outcome is not Outcome.FAILED


class Seen(NamedTuple):
    """An examination together with the text that was examined, if it could be decoded or there is something to show.

    `used` are files that this or later examinations may have made use of; each is told of at least once a run.
    `summaries` are those of files that were followed for it, if somebody keeps them.
    """

    examined: Examined
    text: str | None = None
    used: tuple[Used, ...] = ()
    summaries: tuple[Summarised, ...] = ()


class Shelved(Protocol):
    """The summaries of a project from earlier runs."""

    def recall(self, path: str, asked: str, waiting: Collection[str]) -> Recalled | None:
        """See `project.shelf.Shelf`."""


Shelves: TypeAlias = Callable[[str], Shelved]
"""From the absolute root of a project to its summaries."""


def died(request: Request, how: str, pages: Mapping[str, Page]) -> Examined:
    """What a file came to whose examination ended the process that it was in."""
    reason = f"the process that checked the file died ({how})"
    return Examined(Outcome.FAILED, (OwnReports(pages, request.filename).internal(reason),), failure=f"{reason}\n")


class Projects:
    """The projects that files are examined in: in each, a file that others use is followed once."""

    def __init__(
        self, requests: Iterable[Request] = (), others: Others | None = None, shelves: Shelves | None = None
    ) -> None:
        """`requests` are what will be asked, as far as that is known: one that is used by another need not be parsed
        twice. `others` follow files too, and `shelves` know what was found out earlier."""
        self._modules: dict[tuple[str, Limits], Modules] = {}
        self._others = others
        self._shelves = shelves
        wanted: dict[tuple[str, Limits], dict[str, str]] = {}
        for request in requests:
            wanted.setdefault((request.root, request.limits), {})[request.path] = request.filename
        for key, names in wanted.items():
            self._modules[key] = self._new(*key, names)

    def of(self, request: Request) -> Modules | None:
        """The files of the project that a file is in, or `None` for a text that is no file."""
        if not os.path.isabs(request.path):
            return None
        key = (request.root, request.limits)
        if key not in self._modules:
            self._modules[key] = self._new(*key)
        return self._modules[key]

    def _new(self, root: str, limits: Limits, wanted: Mapping[str, str] | None = None) -> Modules:
        recall: Recall | None = None
        if self._shelves is not None:
            shelf, asked = self._shelves(root), asked_of(limits)

            def recall(path: str, waiting: Collection[str]) -> Recalled | None:
                return shelf.recall(path, asked, waiting)

        return Modules(root, limits, wanted, self._others, recall)

    def news(self) -> tuple[Used, ...]:
        """The files that were followed since this was last asked."""
        return tuple(used for modules in self._modules.values() for used in modules.news())

    def summarised(self) -> tuple[Summarised, ...]:
        """The summaries of the files that were followed since this was last asked, if somebody keeps them."""
        return tuple(one for modules in self._modules.values() for one in modules.summarised())


def asked_of(limits: Limits) -> str:
    """What the summary of a file depends on besides the contents of files."""
    return json.dumps(to_plain(limits), separators=(",", ":"))


def examine_file(request: Request, pages: Mapping[str, Page], projects: Projects) -> Seen:
    """Read and examine one file. Whatever is wrong with it becomes a finding."""
    data = content(request, pages)
    return data if isinstance(data, Seen) else examine_bytes(data, request, pages, projects)


def content(request: Request, pages: Mapping[str, Page]) -> bytes | Seen:
    """The content of a file, or what it comes to if it cannot be read or is too large."""
    try:
        return read_file(request.path, request.limits.max_file_size)
    except CannotRead as error:
        return Seen(Examined(Outcome.UNREADABLE, (OwnReports(pages, request.filename).unreadable(str(error)),)))
    except TooLarge as error:
        return _too_large(error.size, request, pages)


def examine_bytes(data: bytes, request: Request, pages: Mapping[str, Page], projects: Projects) -> Seen:
    """Examine the content of a file."""
    if len(data) > request.limits.max_file_size:
        return _too_large(len(data), request, pages)
    digest = digest_of(data)
    try:
        source = decode(data)
    except Undecodable as error:
        text = data.decode("utf-8", "replace")
        line = _line(text, error.position)
        finding = OwnReports(pages, request.filename).unreadable(error.reason, error.position, line)
        return Seen(Examined(Outcome.UNREADABLE, (finding,), digest), text)
    return examine_text(source.text, request, pages, projects, digest)


def examine_text(text: str, request: Request, pages: Mapping[str, Page], projects: Projects, digest: str = "") -> Seen:
    """Examine a decoded text. A fault of the analysis is one more finding: it must not end the run."""
    own = OwnReports(pages, request.filename)
    commented = False
    try:
        text, left_out = python_of(text, own)
        commented = mentions_this_tool(text)
        refuse_null(text)
        modules = projects.of(request)
        analysis, dependencies = analyse(text, request, modules, digest)
        asked = modules.asked(request.path) if modules is not None else ()
        summaries = projects.summarised()
    except (Unreadable, Undecodable) as error:
        finding = own.unreadable(error.reason, error.position, _line(text, error.position))
        return Seen(Examined(Outcome.UNREADABLE, (finding,), digest), text)
    except OverLimit as error:
        return Seen(Examined(Outcome.LIMITED, (own.over_limit(error),), digest, commented), text)
    except Exception as error:
        from traceback import format_exception  # for faults of our own only

        failure = "".join(format_exception(error))
        return Seen(Examined(Outcome.FAILED, (own.internal(_summary(error)),), digest, failure=failure), text)
    findings = (*analysis.findings, *left_out)
    examined = Examined(Outcome.ANALYSED, findings, digest, commented, analysis.gaps, dependencies, asked=asked)
    return Seen(examined, text, projects.news(), summaries)


def analyse(text: str, request: Request, modules: Modules | None, digest: str) -> tuple[Analysis, Dependencies]:
    """The analysis of a text among the other files of its project, if it has any, and what it depended on.

    Raises `Unreadable` and `OverLimit`.
    """
    # Before the screen, which parses; the analysis need not look again.
    within_limits(text, request.limits)
    if request.screen:
        from torchcopylint.screen import spares  # not needed where everything is known

        looked: list[Lookup] = []
        if spares(text, partial(_leads, request.path, modules, looked)):
            return Analysis((), ()), Dependencies((), tuple(looked))
    with rare_collections():
        if modules is None:
            return analyse_alone(text, filename=request.filename, limits=None), NOTHING
        analysis = modules.analyse(request.path, text, request.filename, digest, within_limits=True)
    return analysis, modules.dependencies(request.path)


def _leads(path: str, modules: Modules | None, looked: list[Lookup], name: str) -> bool:
    """Whether a module's name leads to a file of the project; what was looked up is noted."""
    if modules is None or never(name):
        return False
    lookup = modules.leads(path, name)
    looked.append(lookup)
    return bool(lookup.found)


def _too_large(size: int, request: Request, pages: Mapping[str, Page]) -> Seen:
    skipped = OwnReports(pages, request.filename).too_large(size, request.limits.max_file_size)
    return Seen(Examined(Outcome.LIMITED, (skipped,)))


def _line(text: str, position: Position | None) -> str:
    row = position.row if position else 1
    return next(iter(split_lines(text)[row - 1 : row]), "")


def _summary(error: Exception) -> str:
    """The exception and the innermost place in this package where it happened, in one line."""
    from traceback import extract_tb

    frames = extract_tb(error.__traceback__)
    text = " ".join(str(error).split())
    what = f"{type(error).__name__}: {text[:200]}" if text else type(error).__name__
    place = next((frame for frame in reversed(frames) if "torchcopylint" in frame.filename), None)
    return f"{what} ({os.path.basename(place.filename)}:{place.lineno} in {place.name})" if place else what
