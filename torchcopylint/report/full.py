"""A finding with its code: the headline, a frame with every step, and the advice."""

from __future__ import annotations

from torchcopylint.report.concise import headline
from torchcopylint.report.frame import frames
from torchcopylint.report.model import Look, Report
from torchcopylint.report.summary import summary
from torchcopylint.report.terminal import Paint, clean
from torchcopylint.report.verified import lines as verified


def render(report: Report, look: Look) -> str:
    """Each finding followed by an empty line, then the summary."""
    paint = Paint(look.color)
    lines = []
    for finding, sources in report.findings():
        lines.append(headline(finding, sources, paint))
        lines += frames(finding, sources, paint)
        if finding.advice:
            lines.append(f"  {paint('fix:', 'good')} {clean(finding.advice)}")
        if finding.verification is not None:
            first, *further = verified(finding.verification)
            lines.append(f"  {paint('run:', 'bold')} {clean(first)}")
            lines += [f"       {clean(line)}" for line in further]
        lines.append("")
    return "".join(f"{line}\n" for line in [*lines, *summary(report, look)])
