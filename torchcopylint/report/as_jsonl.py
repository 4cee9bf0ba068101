"""The objects of the JSON format, one a line."""

from __future__ import annotations

import json

from torchcopylint.report.as_json import entry
from torchcopylint.report.model import Look, Report


def render(report: Report, look: Look) -> str:
    """A line for each finding; nothing if there are none."""
    return "".join(json.dumps(entry(finding)) + "\n" for finding, _ in report.findings())
