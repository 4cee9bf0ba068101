"""One line a finding: `path:row:column: severity[code]: message`."""

from __future__ import annotations

from collections.abc import Mapping

from torchcopylint.base.finding import Finding
from torchcopylint.report.model import Look, Report, Source, place
from torchcopylint.report.summary import summary
from torchcopylint.report.terminal import Paint, clean
from torchcopylint.report.verified import verdict_of


def render(report: Report, look: Look) -> str:
    """A line for each finding, then the summary."""
    paint = Paint(look.color)
    lines = [f"{headline(finding, sources, paint)}{_verdict(finding)}" for finding, sources in report.findings()]
    return "".join(f"{line}\n" for line in [*lines, *summary(report, look)])


def _verdict(finding: Finding) -> str:
    return f" [{verdict_of(finding.verification)}]" if finding.verification is not None else ""


def headline(finding: Finding, sources: Mapping[str, Source], paint: Paint) -> str:
    """The line that says where and what; alone it is enough to understand the finding."""
    source = sources.get(finding.filename)
    start = finding.span.start
    shown = clean(source.shown if source else finding.filename)
    where = f"{shown}:{place(start.row, finding.cell)}:{start.column}"
    kind = paint(f"{finding.severity}[{finding.code}]", finding.severity.value)
    return f"{paint(where, 'bold')}: {kind}: {clean(finding.message)}"
