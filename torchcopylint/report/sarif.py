"""SARIF 2.1.0, the interchange format of static analysis results, as code scanning reads it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from torchcopylint.base.finding import Confidence, Finding, Severity, Span, Step
from torchcopylint.pages import Page
from torchcopylint.report.as_json import verification
from torchcopylint.report.model import Look, Report, Source
from torchcopylint.report.verified import headline

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
HOME = "https://torchcopylint.github.io/torchcopylint/"
BASE = "%SRCROOT%"
ABOUT_THE_RUN = ("TCL000", "TCL004", "TCL005")
"""Reports about files that were not checked. They are results, and notifications of the invocation as well."""
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_PROBLEM = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "recommendation"}


def render(report: Report, look: Look) -> str:
    """One run with all rules. Findings that a comment hides are left out, as in every other format."""
    indices = {code: index for index, code in enumerate(report.pages)}
    run = {
        "tool": {
            "driver": {
                "name": "torchcopylint",
                "version": report.version,
                "semanticVersion": report.version,
                "informationUri": HOME,
                "rules": [_rule(page) for page in report.pages.values()],
                "notifications": [_notified(report.pages[code]) for code in ABOUT_THE_RUN if code in report.pages],
            }
        },
        "invocations": [_invocation(report)],
        "originalUriBaseIds": {BASE: {"uri": report.source_root}},
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding, sources, indices) for finding, sources in report.findings()],
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _rule(page: Page) -> dict[str, Any]:
    severity = page.severity()
    why = page.sections.get("Why it matters", "")
    properties = {
        "tags": ["pytorch", "tensor-copies", page.family.lower(), *filter(None, [page.get("effect")])],
        "precision": page.confidence().value,
        "problem.severity": _PROBLEM[severity],
    }
    return {
        "id": page.code,
        "name": page.name,
        "shortDescription": {"text": _first_sentence(page.summary)},
        "fullDescription": {"text": page.summary},
        "help": {"text": f"{page.summary}\n\n{why}\n\n{page.url}", "markdown": page.body},
        "helpUri": page.url,
        "defaultConfiguration": {"enabled": page.enabled(), "level": _LEVELS[severity]},
        "properties": properties,
    }


def _notified(page: Page) -> dict[str, Any]:
    return {"id": page.code, "name": page.name, "shortDescription": {"text": _first_sentence(page.summary)}}


def _first_sentence(text: str) -> str:
    end = text.find(". ")
    return text[: end + 1] if end >= 0 else text


def _result(finding: Finding, sources: Mapping[str, Source], indices: Mapping[str, int]) -> dict[str, Any]:
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": indices[finding.code],
        "level": _LEVELS[finding.severity],
        "message": {"text": f"{finding.message}\nfix: {finding.advice}" if finding.advice else finding.message},
        "locations": [_location(finding, sources)],
        # GitHub matches alerts of different runs by the first; neither depends on line numbers.
        "partialFingerprints": {
            "primaryLocationLineHash": f"{finding.fingerprint}:1",
            "torchcopylint/v1": finding.fingerprint,
        },
        "properties": {"confidence": finding.confidence.value, "variant": finding.variant},
        "rank": _RANKS[finding.confidence],
    }
    if finding.verification is not None:
        result["properties"]["verification"] = verification(finding.verification)
        result["message"]["text"] += f"\nrun: {headline(finding.verification)}"
    if len(finding.steps) > 1:
        result["relatedLocations"] = [
            {"id": number} | _location(step, sources, f"{number} {step.message}")
            for number, step in enumerate(finding.steps, start=1)
            if (step.span, step.filename, step.cell) != (finding.span, finding.filename, finding.cell)
        ]
        result["codeFlows"] = [_code_flow(finding, sources)]
    return result


_RANKS = {Confidence.HIGH: 90.0, Confidence.MEDIUM: 60.0, Confidence.LOW: 30.0}


def _code_flow(finding: Finding, sources: Mapping[str, Source]) -> dict[str, Any]:
    """The narration: every step in execution order."""
    steps = [
        {
            "executionOrder": number,
            "importance": "essential",
            "kinds": [step.role.value],
            "location": _location(step, sources, step.message),
        }
        for number, step in enumerate(finding.steps, start=1)
    ]
    return {"message": {"text": finding.message}, "threadFlows": [{"locations": steps}]}


def _location(at: Finding | Step, sources: Mapping[str, Source], message: str = "") -> dict[str, Any]:
    source = sources[at.filename]
    artifact = {"uri": source.uri} | ({"uriBaseId": BASE} if source.inside else {})
    location: dict[str, Any] = {
        "physicalLocation": {"artifactLocation": artifact, "region": _region(at.span, source, at.cell)}
    }
    if at.cell is not None:
        start = at.span.start
        where = f"cell {at.cell}:{start.row}:{start.column}"
        location["logicalLocations"] = [{"name": f"cell {at.cell}", "fullyQualifiedName": where, "kind": "cell"}]
        message = f"{where}: {message}" if message else where
    if message:
        location["message"] = {"text": message}
    return location


def _region(span: Span, source: Source, cell: int | None) -> dict[str, Any]:
    """Where a span is in its file. A line of a cell is no line of the file: as ruff does, the top stands for it."""
    if cell is not None:
        return {"startLine": 1, "startColumn": 1, "endLine": 1, "endColumn": 1}
    region: dict[str, Any] = {
        "startLine": span.start.row,
        "startColumn": span.start.column,
        "endLine": span.end.row,
        "endColumn": span.end.column,
    }
    line = source.line(span.start.row)
    if line is not None and span.start.row == span.end.row and span.end.column > span.start.column:
        region["snippet"] = {"text": line[span.start.column - 1 : span.end.column - 1]}
    return region


def _invocation(report: Report) -> dict[str, Any]:
    notifications = [
        {
            "level": _LEVELS[finding.severity],
            "message": {"text": finding.message},
            "descriptor": {"id": finding.code, "index": ABOUT_THE_RUN.index(finding.code)},
            "locations": [_location(finding, sources)],
        }
        for finding, sources in report.findings()
        if finding.code in ABOUT_THE_RUN
    ]
    notifications += [
        {"level": "error", "message": {"text": f"the path does not exist: {path}"}} for path in report.missing
    ]
    return {
        "executionSuccessful": report.exit_code != 2,
        "exitCode": report.exit_code,
        "toolExecutionNotifications": notifications,
    }
