"""The last lines of a report for people: how much was found, and the statistics if asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from torchcopylint.base.finding import Severity
from torchcopylint.report.model import Look, Report
from torchcopylint.report.terminal import Paint, count
from torchcopylint.report.verified import verdict_of

_NOUNS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def summary(report: Report, look: Look) -> list[str]:
    """One line with the counts unless `quiet`, and the statistics if asked for."""
    lines = []
    if not look.quiet and report.checked:
        lines.append(_counts(report, Paint(look.color)))
    if look.statistics:
        lines += statistics(report)
    return lines


def _counts(report: Report, paint: Paint) -> str:
    found = Counter(finding.severity for finding, _ in report.findings())
    hidden = f" ({report.suppressed} suppressed)" if report.suppressed else ""
    if not found:
        return f"{paint('No findings', 'good')} in {count(report.checked, 'file')}{hidden}."
    parts = [
        paint(count(found[severity], noun), severity.value) for severity, noun in _NOUNS.items() if found[severity]
    ]
    return f"Found {_enumerate(parts)} in {len(report.files)} of {count(report.checked, 'file')}{hidden}."


def _enumerate(parts: Sequence[str]) -> str:
    if len(parts) == 1:
        return parts[0]
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def statistics(report: Report) -> list[str]:
    """How often each rule reported, what was suppressed, and what the analysis could not see, by reason."""
    rules = Counter((finding.code, finding.name) for finding, _ in report.findings())
    gaps = Counter(gap.reason for gap in report.gaps)
    lines = ["Findings by rule:", *_table([(number, f"{code} {name}") for (code, name), number in rules.items()])]
    verdicts = Counter(
        verdict_of(finding.verification) for finding, _ in report.findings() if finding.verification is not None
    )
    if verdicts:
        lines += ["Verdicts of running the code:", *_table([(number, name) for name, number in verdicts.items()])]
    lines += ["Gaps of the analysis by reason:", *_table([(number, reason) for reason, number in gaps.items()])]
    lines.append(f"Files checked: {report.checked}; with findings: {len(report.files)}.")
    lines.append(f"Findings suppressed by comments: {report.suppressed}.")
    return lines


def _table(rows: Sequence[tuple[int, str]]) -> list[str]:
    """The most frequent first."""
    return [f"{number:>6}  {what}" for number, what in sorted(rows, key=lambda row: (-row[0], row[1]))] or ["  none"]
