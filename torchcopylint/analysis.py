"""One file's text in, its findings and gaps out: the phases, one line each."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import le
from typing import TYPE_CHECKING, Protocol

from torchcopylint.base.collecting import rare_collections
from torchcopylint.base.finding import Finding, Position, Role, Span, Step
from torchcopylint.base.gap import Gap
from torchcopylint.base.report import Point

if TYPE_CHECKING:
    import libcst

    from torchcopylint.flow.facts import FileFacts
    from torchcopylint.flow.files.world import World
    from torchcopylint.flow.lower import Lowered
    from torchcopylint.flow.values.outside import ModuleFacts
    from torchcopylint.narrate import Told


class Unreadable(Exception):
    """The text cannot be parsed. `position` is where, if the parser said."""

    def __init__(self, reason: str, position: Position | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.position = position


class OverLimit(Exception):
    """The text is valid, as far as we looked, but over a stated limit."""

    def __init__(self, limit: str, value: int, maximum: int, option: str, row: int) -> None:
        super().__init__(f"{limit}: {value} is over the limit of {maximum}")
        self.limit = limit
        self.value = value
        self.maximum = maximum
        self.option = option
        self.row = row


@dataclass(frozen=True, slots=True)
class Limits:
    """Stated limits of what is analysed. Each has an option and a configuration key of the same name.

    `max_file_size` is in characters. The others bound the depth of the syntax tree, see `source.limits`.
    """

    max_file_size: int = 8_000_000
    max_nesting: int = 200
    max_patterns: int = 8
    max_terms: int = 6_000
    max_strings: int = 3_000
    max_chain: int = 2_000


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Analysis:
    """What is known of one file before suppressions and selection."""

    findings: tuple[Finding, ...]
    gaps: tuple[Gap, ...]


class Surroundings(Protocol):
    """The other files of the project, as one of them sees them, by their paths."""

    @property
    def path(self) -> str:
        """The path of the file that looks."""

    def places(self, importer: str, dotted: str) -> tuple[tuple[str, str], ...]:
        """See `flow.outside.Modules`."""

    def facts(self, path: str) -> ModuleFacts | None:
        """See `flow.outside.Modules`."""

    def all_off(self, path: str, owner: str, name: str) -> bool:
        """See `flow.outside.Modules`."""

    def is_recorded(self, path: str, owner: str, name: str) -> bool:
        """See `flow.outside.Modules`."""

    def all_frozen(self, path: str, owner: str, name: str, parameter: str) -> bool:
        """See `flow.outside.Modules`."""

    def all_let_go(self, path: str, owner: str, name: str, parameter: str) -> bool:
        """See `flow.outside.Modules`."""

    def step_at(self, path: str, site: int) -> tuple[str, Span] | None:
        """The name for findings of a file, and where a site of it stands; `None` if that is not known."""


def analyse(
    text: str, *, filename: str, limits: Limits | None = DEFAULT_LIMITS, around: Surroundings | None = None
) -> Analysis:
    """Analyse one decoded source text. `filename` (relative, forward slashes) goes into findings and fingerprints.

    `around` are the other files of its project, if it has any. Raises `Unreadable` when the text does not parse,
    `OverLimit` when it is over one of the `limits`; with `None` it is known to be within them.
    """
    with rare_collections():
        run = followed(text, limits, around)
        analysis = run.findings(filename)
        run.let_go()
    return analysis


def followed(text: str, limits: Limits | None, around: Surroundings | None) -> Followed:
    """Follow memory through one decoded source text. Without `limits` it is known to be within them.

    The tree is a light one where that is possible, see `flow.light`. Raises `Unreadable` and `OverLimit`.
    """
    if limits is not None:
        within_limits(text, limits)
    from torchcopylint.flow.light import read
    from torchcopylint.flow.lower import lower
    from torchcopylint.source.questions import questions

    # A question stands at a place, which only LibCST knows.
    light = read(text) if not questions(text) else None
    if light is None:
        return _followed(text, parsed(text), around)
    lowered = lower(light)
    return Followed(text, lowered, world_of(lowered, around), around)


def _followed(text: str, module: libcst.Module, around: Surroundings | None) -> Followed:
    from torchcopylint.flow.lower import lower

    lowered, answers = _ask(text, module, lower(module))
    return Followed(text, lowered, world_of(lowered, around), around, module, answers)


def world_of(lowered: Lowered, around: Surroundings | None) -> World:
    """A lowered file, run among the other files of its project."""
    from torchcopylint.flow.examine import run
    from torchcopylint.flow.values.outside import Outside

    return run(lowered.program, Outside(around, around.path) if around is not None else None)


@dataclass(frozen=True, slots=True)
class Followed:
    """A file that memory has been followed through: what can be had from it while its tree is at hand.

    `module` is the tree, if LibCST has read it; `answers` are the spans of questions.
    """

    text: str
    lowered: Lowered
    world: World
    around: Surroundings | None
    module: libcst.Module | None = None
    answers: Mapping[int, Span] = field(default_factory=dict)

    def findings(self, filename: str) -> Analysis:
        """What the rules find. Raises `Unreadable` if there is something that LibCST cannot say the place of."""
        from torchcopylint.flow.examine import found_in
        from torchcopylint.narrate import settle

        facts = found_in(self.world)
        told = settle(told_of(facts))
        if not told and not facts.gaps:
            return Analysis((), ())
        spans = self._light_spans(told, facts)
        if spans is None:
            module = self.module or parsed(self.text)
            lowered = self._placed(module)
            if lowered is None:
                return _followed(self.text, module, self.around).findings(filename)
            spans = spans_of(self.text, module, lowered, told, facts, self.answers)
        further = further_steps(facts, self.around)
        guests = guest_spans(told, facts, self.around)
        found = findings_of(self.text, filename, self.lowered, told, spans, further, guests)
        return Analysis(found, gaps_of(filename, facts, self.lowered, spans))

    def _light_spans(self, told: Sequence[Told], facts: FileFacts) -> Mapping[int, Span] | None:
        """The spans of what is spoken of, if the tree is a light one and Python's parser tells all of them."""
        if self.module is not None:
            return None
        from torchcopylint.source.spans import light_spans

        sites = spoken_of(told, facts)
        found = light_spans(self.text, {site: self.lowered.nodes[site] for site in sites})
        return found if len(found) == len(sites) else None

    def _placed(self, module: libcst.Module) -> Lowered | None:
        """The program with LibCST's nodes at its sites; `None` if the tree says something else, or that cannot be
        told since it is too deep."""
        if module is self.module:
            return self.lowered
        from torchcopylint.flow.lower import lower

        lowered = lower(module)
        try:
            same = lowered.program == self.lowered.program
        except RecursionError:
            same = False
        return lowered if same else None

    def summary(self) -> ModuleFacts:
        """What other files may know: plain data, without the tree."""
        from torchcopylint.flow.files.exporting import exported

        return exported(self.world)

    def let_go(self) -> None:
        """Nothing more will be asked: memory can come back without a collection of cyclic garbage."""
        self.world.let_go()


def summary_of(lowered: Lowered, around: Surroundings) -> ModuleFacts:
    """What other files may know of a lowered file."""
    from torchcopylint.flow.files.exporting import exported

    world = world_of(lowered, around)
    summary = exported(world)
    world.let_go()
    return summary


def span_of(text: str, site: int) -> Span | None:
    """Where a site of a text stands that has been followed before. Raises `Unreadable`."""
    from torchcopylint.flow.light import read
    from torchcopylint.flow.lower import lower
    from torchcopylint.source.spans import light_spans

    light = read(text)
    if light is not None:
        nodes = lower(light).nodes
        found = light_spans(text, {site: nodes[site]} if site < len(nodes) else {})
        if found or site >= len(nodes):
            return found.get(site)
    from torchcopylint.source.positions import locate

    module = parsed(text)
    nodes = lower(module).nodes
    return locate(module, [nodes[site]]).get(id(nodes[site])) if site < len(nodes) else None


def within_limits(text: str, limits: Limits) -> None:
    """Raises `OverLimit` for a text that is over one of the limits."""
    from torchcopylint.source.bounds import Bounds, bounds
    from torchcopylint.source.limits import measure

    if len(text) > limits.max_file_size:
        raise OverLimit("size in characters", len(text), limits.max_file_size, "--max-file-size", 1)
    most = bounds(text)
    allowed = Bounds(limits.max_nesting, limits.max_patterns, limits.max_terms, limits.max_strings, limits.max_chain)
    if most is not None and all(map(le, most, allowed)):
        return
    size = measure(text)
    for name, peak, maximum, option in (
        ("nesting of brackets", size.nesting, limits.max_nesting, "--max-nesting"),
        ("nesting of brackets in a `case` or `del`", size.patterns, limits.max_patterns, "--max-patterns"),
        ("number of strings behind one another", size.strings, limits.max_strings, "--max-strings"),
        ("number of terms in one condition", size.terms, limits.max_terms, "--max-terms"),
        ("chain of operators and calls", size.chain, limits.max_chain, "--max-chain"),
    ):
        if peak.value > maximum:
            raise OverLimit(name, peak.value, maximum, option, peak.row)


def parsed(text: str) -> libcst.Module:
    """The tree of a text. Raises `Unreadable`."""
    from torchcopylint.source.tree import ParseError, parse

    try:
        return parse(text)
    except ParseError as error:
        raise Unreadable(error.reason, error.position) from None


def told_of(facts: FileFacts) -> list[Told]:
    """Every rule's reports over every unit."""
    from torchcopylint.narrate import Told
    from torchcopylint.registry import reported

    return [
        Told(rule.page, report, facts.statements[report.site])
        for rule, report in reported(facts)
        # What goes wrong in another file is told there.
        if report.site not in facts.guests
    ]


def further_steps(facts: FileFacts, around: Surroundings | None) -> Mapping[int, tuple[Step, ...]]:
    """By the sites of calls: the steps that lie in other files."""
    from torchcopylint.narrate import phrase

    found: dict[int, tuple[Step, ...]] = {}
    if around is None:
        return found
    for site, places in facts.elsewhere.items():
        steps = []
        for place in places:
            at = around.step_at(place.path, place.site)
            if at is not None:
                point = Point(Role.WRITTEN, -1, "written.elsewhere", {"target": place.function, "op": place.op})
                steps.append(Step(Role.WRITTEN, phrase(point), *at))
        found[site] = tuple(steps)
    return found


def guest_spans(told: Sequence[Told], facts: FileFacts, around: Surroundings | None) -> Mapping[int, tuple[str, Span]]:
    """Where the sites that are spoken of stand in other files, by name for findings, as far as that is known."""
    sites = {point.site for item in told for point in item.report.points} & facts.guests.keys()
    found = {site: around.step_at(*facts.guests[site]) for site in sorted(sites)} if around is not None else {}
    return {site: at for site, at in found.items() if at is not None}


def _ask(text: str, module: libcst.Module, lowered: Lowered) -> tuple[Lowered, Mapping[int, Span]]:
    """The lowered file with the questions of its comments on the tapes, and the spans that their answers stand at."""
    from torchcopylint.source.questions import questions

    asked = questions(text)
    statements = lowered.program.statements
    heads = [site for site, statement in enumerate(statements) if site == statement] if asked else []
    if not heads:
        return lowered, {}
    from torchcopylint.flow.asking import Asked, ask
    from torchcopylint.source.positions import locate

    found = locate(module, [lowered.nodes[site] for site in heads])
    rows = sorted(
        (found[id(lowered.nodes[site])].start.row, site) for site in heads if id(lowered.nodes[site]) in found
    )
    placed = [Asked(question.name, *_head(rows, question.span.start.row, question.before)) for question in asked]
    nodes = [*lowered.nodes, *(lowered.nodes[question.head] for question in placed)]
    answers = {len(statements) + number: question.span for number, question in enumerate(asked)}
    return lowered._replace(program=ask(lowered.program, placed), nodes=nodes), answers


def _head(rows: Sequence[tuple[int, int]], row: int, before: bool) -> tuple[int, bool]:
    """The statement that a question on a row is about, and whether about the moment before it: the first below the row,
    or the last that starts on it or above."""
    position = bisect_left(rows, (row + 1, 0))
    if before and position < len(rows):
        return rows[position][1], True
    return rows[max(position - 1, 0)][1], position == 0


def spoken_of(told: Sequence[Told], facts: FileFacts) -> set[int]:
    """Every site that a finding or a gap speaks of."""
    sites = {site for _, site in facts.gaps}
    for item in told:
        sites |= {item.report.site, item.statement, *(point.site for point in item.report.points)}
    return sites - facts.guests.keys()


def spans_of(
    text: str,
    module: libcst.Module,
    lowered: Lowered,
    told: Sequence[Told],
    facts: FileFacts,
    answers: Mapping[int, Span],
) -> Mapping[int, Span]:
    """The spans of every site that a finding or a gap speaks of; `answers` stand where they were asked."""
    from torchcopylint.source.positions import locate_few

    sites = spoken_of(told, facts)
    nodes, statements = lowered.nodes, lowered.program.statements
    found = locate_few(text, module, [(nodes[site], nodes[statements[site]]) for site in sites])
    return {site: answers.get(site) or found[id(nodes[site])] for site in sites}


def findings_of(
    text: str,
    filename: str,
    lowered: Lowered,
    told: Sequence[Told],
    spans: Mapping[int, Span],
    further: Mapping[int, tuple[Step, ...]],
    guests: Mapping[int, tuple[str, Span]],
) -> tuple[Finding, ...]:
    """What is told, as findings, in order of place and code. `further` are steps in other files, by the site of the
    writing step that they explain; `guests` says where sites stand that are none of this file."""
    from torchcopylint.base.fingerprint import fingerprint
    from torchcopylint.narrate import phrase

    if not told:
        return ()
    lines = _without_comments(text)
    units = lowered.program.units
    counts: dict[tuple[str, str, str], int] = {}
    found = []
    for item in sorted(told, key=lambda t: (spans[t.report.site].start, t.code)):
        report, page = item.report, item.page
        statement = spans[item.statement]
        scope = units[lowered.program.scopes[report.site]].qualname
        source = " ".join("\n".join(lines[statement.start.row - 1 : statement.end.row]).split())
        equal = (item.code, scope, source)
        counts[equal] = counts.get(equal, -1) + 1
        steps: list[Step] = []
        for point in report.points:
            at = guests.get(point.site) or ((filename, spans[point.site]) if point.site in spans else None)
            if at is not None:
                steps.append(Step(point.role, phrase(point), *at))
            if point.role is Role.WRITTEN:
                steps += further.get(point.site, ())
        found.append(
            Finding(
                code=page.code,
                name=page.name,
                message=page.fill("message", report.variant, report.values),
                severity=page.told_as(report.variant, report.confidence),
                confidence=report.confidence,
                filename=filename,
                span=spans[report.site],
                statement=statement,
                steps=tuple(steps),
                fingerprint=fingerprint(page.code, filename, scope, source, counts[equal]),
                url=page.url,
                variant=report.variant,
                advice=page.fill("fix_title", report.variant, report.values),
            )
        )
    return tuple(found)


def _without_comments(text: str) -> list[str]:
    """The lines of a text without their comments, so that a remark, or a suppression, changes no fingerprint."""
    from torchcopylint.source.comments import comments
    from torchcopylint.source.text import split_lines

    lines = split_lines(text)
    for comment in comments(text):
        lines[comment.row - 1] = lines[comment.row - 1][: comment.column - 1]
    return lines


def gaps_of(filename: str, facts: FileFacts, lowered: Lowered, spans: Mapping[int, Span]) -> tuple[Gap, ...]:
    """What the analysis gave up on."""
    return tuple(Gap(reason, filename, spans[site].start.row) for reason, site in facts.gaps)
