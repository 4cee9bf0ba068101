"""A JSON list, one object a finding. Keys that ruff's JSON has as well mean the same."""

from __future__ import annotations

import json
from typing import Any

from torchcopylint.base.finding import Finding, Position
from torchcopylint.base.verification import Verification
from torchcopylint.report.model import Look, Report


def render(report: Report, look: Look) -> str:
    """The whole list, indented; `[]` if there are no findings. Only ASCII, so that no console can spoil it."""
    return json.dumps([entry(finding) for finding, _ in report.findings()], indent=2) + "\n"


def entry(finding: Finding) -> dict[str, Any]:
    """One finding. Rows and columns are 1-based, columns count code points, `end_location` is exclusive.
    In a notebook they are relative to the `cell`."""
    return {
        "code": finding.code,
        "name": finding.name,
        "message": finding.message,
        "severity": finding.severity.value,
        "confidence": finding.confidence.value,
        "filename": finding.filename,
        "location": _position(finding.span.start),
        "end_location": _position(finding.span.end),
        "cell": finding.cell,
        "url": finding.url,
        "fix": None,
        "related": [
            {
                "role": step.role.value,
                "message": step.message,
                "filename": step.filename,
                "location": _position(step.span.start),
                "end_location": _position(step.span.end),
                "cell": step.cell,
            }
            for step in finding.steps
        ],
        "verification": verification(finding.verification),
        "fingerprint": finding.fingerprint,
    }


def verification(result: Verification | None) -> dict[str, Any] | None:
    """What running the code showed; the keys are stable. `row` is 1-based, in the user's file."""
    if result is None:
        return None
    return {
        "verdict": result.verdict.value,
        "evidence": [{"kind": item.kind, "message": item.text, "row": item.row} for item in result.evidence],
        "torch_version": result.torch_version or None,
        "device": result.device or None,
        "seeds": list(result.seeds),
        "reproducer": result.reproducer,
    }


def _position(position: Position) -> dict[str, int]:
    return {"row": position.row, "column": position.column}
