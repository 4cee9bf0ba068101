"""Notebooks in a run: their Python before the analysis, their cells in the findings after it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from torchcopylint.base.finding import Finding, Position, Span
from torchcopylint.project.own import OwnReports
from torchcopylint.source.notebook import Fault, cell_at, cells, convert, is_notebook

WIDEST = 60
"""The characters of a line that a message shows."""


def python_of(text: str, own: OwnReports) -> tuple[str, tuple[Finding, ...]]:
    """The Python of a decoded file, with a finding for each cell that had to be left out; of a file that is no
    notebook, its text. Rows are those of the Python until `in_cells` changes them. Raises `Undecodable`."""
    if not is_notebook(own.filename):
        return text, ()
    notebook = convert(text)
    return notebook.text, tuple(
        own.unreadable(_left_out(fault), fault.position, fault.line) for fault in notebook.faults
    )


def in_cells(findings: Iterable[Finding], filename: str, text: str) -> tuple[Finding, ...]:
    """Findings about a text of `python_of` with rows that count within their cells; outside notebooks, as they are."""
    listed = tuple(findings)
    starts = cells(text) if listed and is_notebook(filename) else ()
    return tuple(_in_cell(finding, starts) for finding in listed) if starts else listed


def _left_out(fault: Fault) -> str:
    """The reason with the line, which is not among those of the Python."""
    code = fault.line.strip()
    quoted = f" in `{code if len(code) <= WIDEST else code[:WIDEST] + '...'}`" if code else ""
    return f"{fault.reason}{quoted}; only this cell is left out, the others are checked"


def _in_cell(finding: Finding, starts: tuple[tuple[int, int], ...]) -> Finding:
    steps = []
    for step in finding.steps:
        place = cell_at(step.span.start.row, starts) if step.filename == finding.filename else None
        steps.append(replace(step, span=_moved(step.span, place[1]), cell=place[0]) if place else step)
    place = cell_at(finding.span.start.row, starts)
    if place is None:
        return replace(finding, steps=tuple(steps))
    cell, row = place
    return replace(
        finding,
        span=_moved(finding.span, row),
        statement=_moved(finding.statement, row),
        steps=tuple(steps),
        cell=cell,
    )


def _moved(span: Span, rows: int) -> Span:
    return Span(Position(span.start.row - rows, span.start.column), Position(span.end.row - rows, span.end.column))
