"""Findings that are forced upon a program: its markers say the code and the steps (`# <- TCL701, shared`)."""

from __future__ import annotations

import re

from torchcopylint.base.finding import Confidence, Finding, Position, Role, Span, Step
from torchcopylint.pages import load_pages

_MARKER = re.compile(r"#\s*<-\s*(.+)$")
_CODE = re.compile(r"TCL\d{3}")


def forced(text: str, filename: str = "program.py") -> Finding:
    """The finding that the markers of a program ask for. Steps stand on whole lines, in the order of the lines."""
    lines = text.split("\n")
    steps, code, blamed = [], "", None
    for row, line in enumerate(lines, start=1):
        found = _MARKER.search(line)
        if not found:
            continue
        end = len(line[: found.start()].rstrip()) + 1
        span = Span(Position(row, len(line) - len(line.lstrip()) + 1), Position(row, end))
        for word in (part.strip() for part in found[1].split(",")):
            if _CODE.fullmatch(word):
                code, blamed = word, span
            else:
                steps.append(Step(Role(word), f"{word} here", filename, span))
    assert blamed is not None, "no marker names a rule"
    page = load_pages()[code]
    return Finding(
        code=code,
        name=page.name,
        message="forced",
        severity=page.severity(),
        confidence=Confidence.HIGH,
        filename=filename,
        span=blamed,
        statement=blamed,
        steps=tuple(steps),
        fingerprint="0" * 16,
        url=page.url,
    )


def forced_at(text: str, row: int, code: str, filename: str = "program.py") -> Finding:
    """A finding on one row (1-based) of a program, without steps of its own."""
    lines = text.split("\n")
    lines[row - 1] += f"  # <- {code}"
    return forced("\n".join(lines), filename)
