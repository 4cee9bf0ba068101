"""Findings as text, one module a format. Pure: nothing here reads or writes anything.

Every format is a function `render(report, look) -> str`, whose result ends with a newline unless it is empty.
"""

from __future__ import annotations

from importlib import import_module

from torchcopylint.report.model import Look, Report

_MODULES = {
    "full": "full",
    "concise": "concise",
    "json": "as_json",
    "jsonl": "as_jsonl",
    "github": "github",
    "sarif": "sarif",
    "shard": "as_shard",
}
FOR_PEOPLE = frozenset({"full", "concise"})
"""The formats that people read: these alone have colours and a summary."""


def render(report: Report, output_format: str, look: Look) -> str:
    """Render a report in the format of this name; only that format's module is imported."""
    module = import_module(f"torchcopylint.report.{_MODULES[output_format]}")
    text: str = module.render(report, look)
    return text
