"""One line of a file looked at closely: what was told, what was not and why, and what the engine knows there.

The analysis again, with a question about every value of the line, and with everything that a run throws away.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from torchcopylint.analysis import (
    DEFAULT_LIMITS,
    Limits,
    Surroundings,
    findings_of,
    further_steps,
    guest_spans,
    parsed,
    told_of,
    within_limits,
    world_of,
)
from torchcopylint.base.finding import Finding, Span
from torchcopylint.base.gap import Gap
from torchcopylint.source.notebook import cells, is_notebook, row_called
from torchcopylint.source.text import split_lines

if TYPE_CHECKING:
    from torchcopylint.flow.asking import Asked
    from torchcopylint.flow.facts import FileFacts, Relation, Write
    from torchcopylint.flow.lower import Lowered
    from torchcopylint.narrate import Told


class Superseded(NamedTuple):
    """A finding that is not told, and the one that is told in its place, if there is one."""

    finding: Finding
    by: Finding | None


class Value(NamedTuple):
    """What is known of one expression, as a phrase that follows its text; `known` says whether anything is."""

    text: str
    phrase: str
    known: bool


@dataclass(frozen=True, slots=True)
class Closeup:
    """What there is to say of one line. `scope` is the function around it, empty at module level.

    `findings` are all of the file that settled, `superseded` those of the line that did not. `facts` are what the
    engine stated there, in words, `gaps` what it gave up on in the same function.
    """

    scope: str
    findings: tuple[Finding, ...]
    superseded: tuple[Superseded, ...]
    values: tuple[Value, ...]
    facts: tuple[str, ...]
    gaps: tuple[Gap, ...]


def look(
    text: str, *, filename: str, row: int, limits: Limits = DEFAULT_LIMITS, around: Surroundings | None = None
) -> Closeup:
    """Look at one row (1-based) of a decoded source text; `around` are the other files of its project.

    Raises `Unreadable` when the text does not parse, `OverLimit` when it is over one of the `limits`.
    """
    within_limits(text, limits)
    module = parsed(text)
    from torchcopylint.flow.asking import ask
    from torchcopylint.flow.examine import found_in
    from torchcopylint.flow.lower import lower
    from torchcopylint.narrate import outdone, settle
    from torchcopylint.source.positions import locate

    lowered = lower(module)
    located = locate(module, lowered.nodes)
    spans = {site: located[id(node)] for site, node in enumerate(lowered.nodes) if id(node) in located}
    there = frozenset(site for site, span in spans.items() if span.start.row == row)
    first = len(lowered.nodes)
    asked = _questions(lowered, there)
    for number, (_, question) in enumerate(asked):
        spans[first + number] = spans[question.head]
    lines = split_lines(text)
    starts = cells(text) if is_notebook(filename) else ()
    written = {first + number: _slice(lines, spans[site]) for number, (site, _) in enumerate(asked)}
    nodes = [*lowered.nodes, *(lowered.nodes[question.head] for _, question in asked)]
    lowered = lowered._replace(program=ask(lowered.program, [question for _, question in asked]), nodes=nodes)
    facts = found_in(world_of(lowered, around))
    told = told_of(facts)
    answers = [item for item in told if item.report.site >= first]
    told = [item for item in told if item.report.site < first]
    kept = settle(told)
    dropped = [(item, by) for item, by in outdone(told, kept) if _covers(spans[item.report.site], row)]

    def found(items: Sequence[Told]) -> tuple[Finding, ...]:
        guests = guest_spans(items, facts, around)
        return findings_of(text, filename, lowered, items, spans, further_steps(facts, around), guests)

    return Closeup(
        scope=_scope(lowered, there),
        findings=found(kept),
        superseded=tuple(Superseded(found([item])[0], found([by])[0] if by else None) for item, by in dropped),
        values=tuple(_values(facts, {item.report.site: item.report.values["value"] for item in answers}, written)),
        facts=tuple(_facts(facts, there, spans, starts)),
        gaps=tuple(_gaps(filename, facts, lowered, there, spans)),
    )


def _covers(span: Span, row: int) -> bool:
    return span.start.row <= row <= span.end.row


def _questions(lowered: Lowered, there: frozenset[int]) -> list[tuple[int, Asked]]:
    """A question about each value that an expression of the line makes, with the site of the expression."""
    from torchcopylint.flow import tape as t
    from torchcopylint.flow.asking import Asked

    program = lowered.program
    found = []
    for unit in program.units:
        for register, event in enumerate(unit.definitions):
            silent = event is None or isinstance(event, t.Const | t.Import | t.Function | t.Class | t.Text)
            if event is not None and not silent and event.site in there:
                head = program.statements[event.site]
                if program.scopes[head] == unit.number:
                    found.append((event.site, Asked("", head, False, register)))
    return found


def _scope(lowered: Lowered, there: frozenset[int]) -> str:
    if not there:
        return ""
    return lowered.program.units[lowered.program.scopes[max(there)]].qualname


def _slice(lines: Sequence[str], span: Span) -> str:
    """What stands at a span, up to the end of its first line."""
    line = lines[span.start.row - 1]
    if span.end.row > span.start.row:
        return f"{line[span.start.column - 1 :].rstrip()}..."
    return line[span.start.column - 1 : span.end.column - 1]


def _values(facts: FileFacts, answers: Mapping[int, str], written: Mapping[int, str]) -> Iterator[Value]:
    """What is known of the objects among the values, once for each text; what nothing is known of first."""
    from torchcopylint.flow.facts import Revealed
    from torchcopylint.flow.model import Kind

    found: dict[str, Value] = {}
    for unit in facts.units:
        for fact in unit.facts:
            if isinstance(fact, Revealed) and fact.site in answers and (fact.objects or not fact.reached):
                known = fact.reached and any(known.kind is not Kind.UNKNOWN for known in fact.objects)
                text = written[fact.site]
                found[text] = Value(text, answers[fact.site], known)
    yield from sorted(found.values(), key=lambda value: value.known)


def _facts(
    facts: FileFacts, there: frozenset[int], spans: Mapping[int, Span], starts: Sequence[tuple[int, int]]
) -> Iterator[str]:
    """The facts that were stated at the line, one phrase each."""
    from torchcopylint.flow.facts import Revealed

    for unit in facts.units:
        stated: list[Relation | Write] = [write for site, write in sorted(unit.writes.items()) if site in there]
        stated += [fact for fact in unit.facts if fact.site in there and not isinstance(fact, Revealed)]
        for fact in stated:
            yield f"{type(fact).__name__}: {', '.join(_fields(fact, spans, starts))}"


_SITES = frozenset({"write", "cut", "made", "shared", "viewed", "view", "first"})
_UNTOLD = frozenset({"site", "below_written", "below_read", "links", "chain", "storages", "flags"})


def _fields(fact: Relation | Write, spans: Mapping[int, Span], starts: Sequence[tuple[int, int]]) -> Iterator[str]:
    for name, value in fact._asdict().items():
        if name in _UNTOLD:
            continue
        if name in _SITES and type(value) is int:
            if value in spans:
                yield f"{name} on {row_called(spans[value].start.row, starts)}"
        elif isinstance(value, Enum):
            yield f"{name} {value.name.lower().replace('_', ' ')}"
        elif isinstance(value, bool):
            yield name if value else f"not {name}"
        elif isinstance(value, str) and value:
            yield f"{name} `{value}`"


def _gaps(
    filename: str, facts: FileFacts, lowered: Lowered, there: frozenset[int], spans: Mapping[int, Span]
) -> Iterator[Gap]:
    """What was given up on in the functions that the line belongs to."""
    scopes = {lowered.program.scopes[site] for site in there}
    for reason, site in facts.gaps:
        if lowered.program.scopes[site] in scopes and site in spans:
            yield Gap(reason, filename, spans[site].start.row)
