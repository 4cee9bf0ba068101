"""Workflow commands of GitHub Actions, which become annotations.

The format is that of GitHub's documentation of workflow commands: `%`, CR and LF are escaped in messages, `:` and `,`
in properties as well. A column makes sense on one line only, so an annotation of several lines has none.
"""

from __future__ import annotations

from collections.abc import Mapping

from torchcopylint.base.finding import Finding, Severity, Step
from torchcopylint.report.model import Look, Report, Source, place
from torchcopylint.report.verified import headline

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def render(report: Report, look: Look) -> str:
    """A command for each finding. The steps of its narration and the advice are further lines of its message."""
    return "".join(_command(finding, sources) + "\n" for finding, sources in report.findings())


def _command(finding: Finding, sources: Mapping[str, Source]) -> str:
    start, end = finding.span.start, finding.span.end
    properties: dict[str, str | int] = {
        "title": f"{finding.code} {finding.name}",
        "file": _path(finding.filename, sources),
    }
    if finding.cell is not None:
        # A line of a cell is no line of the file: as ruff does, the annotation stands at the top.
        properties |= {"line": 1, "endLine": 1}
    else:
        properties |= {"line": start.row, "endLine": end.row}
        if start.row == end.row:
            properties |= {"col": start.column, "endColumn": end.column}
    # The log shows the message alone, so it repeats where and which rule.
    where = f"{_path(finding.filename, sources)}:{place(start.row, finding.cell)}:{start.column}"
    lines = [f"{where}: {finding.code} {finding.message}"]
    if len(finding.steps) > 1:
        lines += [_step(number, step, sources) for number, step in enumerate(finding.steps, start=1)]
    if finding.advice:
        lines.append(f"fix: {finding.advice}")
    if finding.verification is not None:
        lines.append(f"run: {headline(finding.verification)}")
    listed = ",".join(f"{key}={escape_property(str(value))}" for key, value in properties.items())
    message = "\n".join(lines)
    return f"::{_COMMANDS[finding.severity]} {listed}::{escape_data(message)}"


def _step(number: int, step: Step, sources: Mapping[str, Source]) -> str:
    return f"{number} {_path(step.filename, sources)}:{place(step.span.start.row, step.cell)}: {step.message}"


def _path(filename: str, sources: Mapping[str, Source]) -> str:
    return sources[filename].annotated if filename in sources else filename


def escape_data(text: str) -> str:
    """Escape the message of a command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def escape_property(text: str) -> str:
    """Escape the value of a property of a command."""
    return escape_data(text).replace(":", "%3A").replace(",", "%2C")
