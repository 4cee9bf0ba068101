"""The files of a project as they know one another: each is followed once a run, before those that use it.

A file is loaded when another one uses what it imports from it, wherever it stands, whether or not it was named on the
command line. What is kept is its summary, not its tree. Files that use one another in a circle see nothing of one
another while they are summarised, so that it does not matter with which of them a run starts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from torchcopylint.analysis import Analysis, Followed, Limits, Unreadable, followed, span_of, summary_of
from torchcopylint.base.finding import Span
from torchcopylint.base.packed import pack
from torchcopylint.project.callers import Callers
from torchcopylint.project.dependencies import (
    About,
    Asked,
    Callee,
    Dependencies,
    Dependency,
    Lookup,
    Question,
    Used,
    digest,
    digest_of,
)
from torchcopylint.project.patterns import relative_posix
from torchcopylint.project.read import CannotRead, TooLarge, read_file
from torchcopylint.project.shelf import Recalled, Summarised
from torchcopylint.project.sources import Sources, never
from torchcopylint.source.text import Undecodable, decode, refuse_null

if TYPE_CHECKING:
    from torchcopylint.flow.lower import Lowered
    from torchcopylint.flow.values.outside import ModuleFacts

MAX_DEPTH = 60
"""So many files may wait for one another; what lies behind them is unknown."""


Recall: TypeAlias = Callable[[str, Collection[str]], Recalled | None]
"""From a path, and those of the files that wait for it, to what an earlier run has found out about the file, if that
holds and none of those depends on it."""


class Known(NamedTuple):
    """What a file that has been followed defines, if that can be known, and the digest of its content."""

    facts: ModuleFacts | None
    digest: str


class Others(Protocol):
    """Those who follow files of the same project at the same time."""

    def ask(self, root: str, limits: Limits, path: str) -> Known | None:
        """What one of them has found out about a file; `None` if it is for the one who asks to follow it."""

    def tell(self, root: str, limits: Limits, found: Mapping[str, Known]) -> dict[str, Known]:
        """What holds for some files from now on, by path: what was found out here, or, of each, what somebody did who
        was quicker. They are told at once: whoever learns of one can learn of all."""


@dataclass(slots=True)
class _Frame:
    """A file that is being followed. `lowest` is the place on the stack of the first file that waits for this one and
    that this one uses. `files` are those it has asked for, `given` those whose summary it got while it was not final.
    With `cut`, what is in a circle with the file is not shown to it."""

    path: str
    depth: int
    cut: bool = False
    lowest: int = 0
    files: set[str] = field(default_factory=set)
    given: set[str] = field(default_factory=set)
    lookups: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    asked: dict[Question, bool] = field(default_factory=dict)


class Modules:
    """The files below one project root, for one run."""

    def __init__(
        self,
        root: str,
        limits: Limits,
        wanted: Mapping[str, str] | None = None,
        others: Others | None = None,
        recall: Recall | None = None,
    ) -> None:
        """`wanted` are the paths of the files whose findings will be asked for, with the names for the findings: where
        one of them is loaded for another, they are found on that occasion. What `others` have followed, or an earlier
        run that `recall` asks, is not followed here."""
        self._root = root
        self._limits = limits
        self._wanted = wanted or {}
        self._others = others
        self._recall = recall
        self._recalled: list[Used] = []
        self._summarised: dict[str, ModuleFacts | None] = {}
        self._sources = Sources(root)
        self._callers = Callers(root, self._sources)
        self._stack: list[_Frame] = []
        self._summaries: dict[str, ModuleFacts | None] = {}
        self._provisional: dict[str, tuple[ModuleFacts | None, int]] = {}
        self._circles: dict[str, set[str]] = {}
        self._lowered: dict[str, Lowered] = {}
        self._digests: dict[str, str] = {}
        self._used: dict[str, _Frame] = {}
        self._fresh: dict[str, None] = {}
        self._spans: dict[tuple[str, int], Span | None] = {}
        self._ahead: dict[str, tuple[str, Analysis]] = {}

    # -- what a run asks for

    def analyse(
        self, path: str, text: str, filename: str, content: str = "", *, within_limits: bool = False
    ) -> Analysis:
        """The analysis of a file among the others. `content` is the digest of its content, if it is more than the text.
        `within_limits` says that it is known to be within them.

        Raises `Unreadable` and `OverLimit`.
        """
        content = content or digest(text)
        if not self._wanted:
            # A run over one content, which need not be that of the file.
            self._callers.show(path, text)
        known = self._ahead.pop(path, None)
        if known is not None and known[0] == content:
            return known[1]
        limits = None if within_limits else self._limits
        if path not in self._summaries:
            found = self._settle(path, text, content, lambda run: run.findings(filename), limits)
            if found is not None:
                return found
        with self.around(path) as view:
            run = followed(text, limits, view)
            analysis = run.findings(filename)
            run.let_go()
        return analysis

    def prepare(self, path: str, text: str) -> None:
        """Load what a file uses, so that `around` shows it to it. Raises `Unreadable` and `OverLimit`."""
        self._settle(path, text, digest(text), lambda run: None, self._limits)

    @contextmanager
    def around(self, path: str) -> Iterator[View]:
        """The other files as one file sees them, while it is followed."""
        frame = _Frame(path, len(self._stack), lowest=len(self._stack))
        self._stack.append(frame)
        try:
            yield View(self, path)
        except BaseException:
            self._provisional = {key: item for key, item in self._provisional.items() if item[1] < frame.depth}
            raise
        finally:
            self._stack.pop()
            before = self._used.get(path)
            if before is not None:
                # Another run of the same file: what others know of it may rest on either.
                frame.files |= before.files
                frame.lookups.update(before.lookups)
                frame.asked.update(before.asked)
            self._used[path] = frame
            self._fresh[path] = None

    def dependencies(self, path: str) -> Dependencies:
        """What the analysis of a file has made use of directly."""
        frame = self._used.get(path, _Frame(path, 0))
        return Dependencies(
            tuple(Dependency(used, self._digests.get(used, "")) for used in sorted(frame.files - {path})),
            tuple(Lookup(*key, found) for key, found in sorted(frame.lookups.items())),
        )

    def asked(self, path: str) -> tuple[Asked, ...]:
        """What the analysis of a file has asked of the whole project."""
        frame = self._used.get(path, _Frame(path, 0))
        return tuple(Asked(*item) for item in sorted(frame.asked.items()))

    def news(self) -> tuple[Used, ...]:
        """The files that were made use of, or may yet be, since this was last asked. What others followed is theirs to
        tell."""
        fresh, self._fresh = self._fresh, {}
        recalled, self._recalled = self._recalled, []
        followed = (Used(path, self._digests.get(path, ""), self.dependencies(path)) for path in sorted(fresh))
        return (*recalled, *followed)

    def summarised(self) -> tuple[Summarised, ...]:
        """The files that were followed since this was last asked, with their summaries, for later runs."""
        found, self._summarised = self._summarised, {}
        return tuple(Summarised(path, pack(summary)) for path, summary in found.items())

    def leads(self, path: str, dotted: str) -> Lookup:
        """Where a name in a file leads, without following any."""
        return Lookup(path, dotted, tuple(found for found, _ in self._sources.places(path, dotted)))

    # -- what files ask for

    def places(self, importer: str, dotted: str) -> tuple[tuple[str, str], ...]:
        """See `Surroundings`."""
        found = self._sources.places(importer, dotted)
        if self._stack and not never(dotted):
            # A plain text, since it goes into files.
            self._stack[-1].lookups[importer, str(dotted)] = tuple(path for path, _ in found)
        return found

    def facts(self, path: str) -> ModuleFacts | None:
        """See `Surroundings`."""
        frame = self._stack[-1]
        frame.files.add(path)
        if path == frame.path or (frame.cut and path in self._circles.get(frame.path, ())):
            return None
        if path in self._summaries:
            return self._summaries[path]
        waiting = next((other for other in self._stack if other.path == path), None)
        if waiting is not None:
            self._close_circle(waiting.depth)
            return None
        if path in self._provisional:
            summary, depth = self._provisional[path]
            self._close_circle(depth)
            frame.given.add(path)
            return summary
        if len(self._stack) >= MAX_DEPTH:
            return None
        if self._others is not None:
            known = self._others.ask(self._root, self._limits, path)
            if known is not None:
                self._digests[path] = known.digest
                self._summaries[path] = known.facts
                return known.facts
        if self._recall is not None:
            recalled = self._recall(path, [other.path for other in self._stack])
            if recalled is not None:
                self._digests[path] = recalled.digest
                self._recalled += recalled.used
                self._summaries[path] = recalled.facts
                return recalled.facts
        text = self._text(path)
        if text is None:
            self._fresh[path] = None
            return self._final(path, None)
        filename = self._wanted.get(path)
        try:
            found = self._settle(
                path,
                text,
                self._digests[path],
                lambda run: run.findings(filename) if filename is not None else None,
                self._limits,
            )
        except Exception:
            # What is wrong with a file, or with us, is told where the file itself is checked.
            return self._final(path, None)
        if found is not None:
            self._ahead[path] = (self._digests[path], found)
        if path in self._summaries:
            return self._summaries[path]
        frame.given.add(path)
        return self._provisional[path][0]

    def all_off(self, path: str, owner: str, name: str) -> bool:
        """See `Surroundings`."""
        return self._ask_callers(About.OFF, Callee(path, owner, name))

    def is_recorded(self, path: str, owner: str, name: str) -> bool:
        """See `Surroundings`."""
        return self._ask_callers(About.RECORDED, Callee(path, owner, name))

    def all_frozen(self, path: str, owner: str, name: str, parameter: str) -> bool:
        """See `Surroundings`."""
        return self._ask_callers(About.FROZEN, Callee(path, owner, name, parameter=parameter))

    def all_let_go(self, path: str, owner: str, name: str, parameter: str) -> bool:
        """See `Surroundings`."""
        return self._ask_callers(About.LET_GO, Callee(path, owner, name, parameter=parameter))

    def _ask_callers(self, about: About, callee: Callee) -> bool:
        question = Question(about, callee)
        answer = self._callers.answer(question)
        if self._stack:
            self._stack[-1].asked[question] = answer
        return answer

    def step_at(self, path: str, site: int) -> tuple[str, Span] | None:
        """See `Surroundings`. The tree is gone, so the file is parsed once more; few findings need this."""
        if (path, site) not in self._spans:
            before = self._digests.get(path)
            text = self._text(path)
            try:
                # Of a file that only others have followed, which have told what its users do, nothing is known yet.
                same = before is None or self._digests[path] == before
                span = span_of(text, site) if text is not None and same else None
            except Unreadable:
                span = None
            self._spans[path, site] = span
        span = self._spans[path, site]
        return (relative_posix(path, self._root), span) if span is not None else None

    # -- loading

    def _close_circle(self, depth: int) -> None:
        """The files that wait for one another from some place on the stack are in one circle."""
        circle: set[str] = set()
        for frame in self._stack[depth:]:
            frame.lowest = min(frame.lowest, depth)
            circle |= self._circles.get(frame.path, {frame.path})
        for path in circle:
            self._circles[path] = circle

    def _settle(
        self, path: str, text: str, content: str, use: Callable[[Followed], Analysis | None], limits: Limits | None
    ) -> Analysis | None:
        """Follow a file and keep its summary. Returns what `use` makes of the file, if it is in no circle.

        The files of a circle are settled with the first of them that was begun.
        """
        result = None
        with self.around(path) as view:
            self._digests[path] = content
            frame = self._stack[-1]
            run = followed(text, limits, view)
            summary = run.summary()
            if path not in self._circles:
                result = use(run)
            run.let_go()
        if path not in self._circles:
            self._final(path, summary)
            return result
        if frame.lowest < frame.depth:
            self._provisional[path] = (summary, frame.lowest)
            self._lowered[path] = run.lowered._replace(nodes=[])
            return None
        circle = self._circles[path]
        self._lowered[path] = run.lowered
        found: dict[str, ModuleFacts | None] = {}
        for member in sorted(circle):
            known, _ = self._provisional.pop(member, (None, 0))
            if member not in self._summaries:
                seen_whole = known is not None and not self._used[member].given & circle
                found[member] = known if seen_whole else self._alone(member)
            self._lowered.pop(member, None)
        self._all_final(found)
        return None

    def _final(self, path: str, summary: ModuleFacts | None) -> ModuleFacts | None:
        """Keep a summary for good, and return what holds."""
        self._all_final({path: summary})
        return self._summaries[path]

    def _all_final(self, found: Mapping[str, ModuleFacts | None]) -> None:
        """Keep summaries for good. Those of a circle are told at once, lest others mix them with their own."""
        if self._others is not None and found:
            known = {path: Known(summary, self._digests.get(path, "")) for path, summary in found.items()}
            told = self._others.tell(self._root, self._limits, known)
            found = {path: one.facts for path, one in told.items()}
        self._summaries.update(found)
        if self._recall is not None:
            self._summarised.update(found)

    def _alone(self, path: str) -> ModuleFacts | None:
        """The summary of a file that sees nothing of those that are in a circle with it."""
        lowered = self._lowered.get(path)
        try:
            with self.around(path) as view:
                self._stack[-1].cut = True
                summary = summary_of(lowered, view) if lowered is not None else None
        except Exception:
            summary = None
        return summary

    def _text(self, path: str) -> str | None:
        """The text of a file; `None` if there is none."""
        self._digests[path] = ""
        try:
            data = read_file(path, self._limits.max_file_size)
            self._digests[path] = digest_of(data)
            text = decode(data).text
            refuse_null(text)
        except (CannotRead, TooLarge, Undecodable):
            return None
        return text


class View:
    """The files of a project as one of them sees them."""

    def __init__(self, modules: Modules, path: str) -> None:
        self._modules = modules
        self.path = path

    def places(self, importer: str, dotted: str) -> tuple[tuple[str, str], ...]:
        """See `Surroundings`."""
        return self._modules.places(importer, dotted)

    def facts(self, path: str) -> ModuleFacts | None:
        """See `Surroundings`."""
        return self._modules.facts(path)

    def all_off(self, path: str, owner: str, name: str) -> bool:
        """See `Surroundings`."""
        return self._modules.all_off(path, owner, name)

    def is_recorded(self, path: str, owner: str, name: str) -> bool:
        """See `Surroundings`."""
        return self._modules.is_recorded(path, owner, name)

    def all_frozen(self, path: str, owner: str, name: str, parameter: str) -> bool:
        """See `Surroundings`."""
        return self._modules.all_frozen(path, owner, name, parameter)

    def all_let_go(self, path: str, owner: str, name: str, parameter: str) -> bool:
        """See `Surroundings`."""
        return self._modules.all_let_go(path, owner, name, parameter)

    def step_at(self, path: str, site: int) -> tuple[str, Span] | None:
        """See `Surroundings`."""
        return self._modules.step_at(path, site)
