"""The explanation of one line, as text for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from torchcopylint.base.finding import Finding
from torchcopylint.report.concise import headline
from torchcopylint.report.frame import frames
from torchcopylint.report.model import Source
from torchcopylint.report.terminal import Paint, clean


@dataclass(frozen=True, slots=True)
class Line:
    """One line as it is to be explained: `place` is its path and row, `code` what stands there.

    `hidden` pairs findings with the reason. `known` and `unknown` are sentences about values, `facts` and `gaps` what
    the engine stated and gave up on. `sources` has every file that the findings speak of.
    """

    place: str
    scope: str
    code: str
    shown: tuple[Finding, ...]
    elsewhere: tuple[Finding, ...]
    hidden: tuple[tuple[Finding, str], ...]
    unknown: tuple[str, ...]
    known: tuple[str, ...]
    facts: tuple[str, ...]
    gaps: tuple[str, ...]
    sources: Mapping[str, Source]


def render(line: Line, *, color: bool) -> str:
    """The findings with their stories, then what was hidden; without findings, what the engine knows."""
    paint = Paint(color)
    where = f"in `{line.scope}`" if line.scope else "at module level"
    lines = [f"{paint(clean(line.place), 'bold')} {where}: {clean(line.code.strip()) or '(empty)'}", ""]
    for finding in line.shown:
        lines.append(headline(finding, line.sources, paint))
        lines += frames(finding, line.sources, paint)
        lines += [f"  {paint('fix:', 'good')} {clean(finding.advice)}"] if finding.advice else []
        lines.append("")
    lines += _section("A step of findings on other lines:", [headline(f, line.sources, paint) for f in line.elsewhere])
    hidden = [f"{headline(finding, line.sources, paint)}\n    hidden: {clean(why)}" for finding, why in line.hidden]
    lines += _section("Findings that are not shown:", hidden)
    if not line.shown:
        lines += ["No finding is shown here.", ""] if not line.elsewhere else []
        lines += _section("Nothing is known of:", map(clean, line.unknown))
        lines += _section("What is known:", map(clean, line.known))
        lines += _section("Facts stated here:", map(clean, line.facts), "none, so no rule has anything to report here")
        lines += _section(f"Given up {where}:", map(clean, line.gaps), "nothing")
    return "".join(f"{part}\n" for part in lines).rstrip("\n") + "\n"


def _section(title: str, entries: Iterable[str], empty: str = "") -> list[str]:
    listed = list(entries) or ([empty] if empty else [])
    return [title, *(f"  {entry}" for entry in listed), ""] if listed else []
