"""Code frames: the lines that a finding speaks of, with its steps numbered in execution order.

    41 |     best = model.state_dict()
       |            ^^^^^^^^^^^^^^^^^^ 1 shared here
    44 |     optimizer.step()
       |     ---------------- 2 written here: moves the parameters of `model`
    52 | model.load_state_dict(best)
       |                       ---- 3 read here

Steps that stand within `REACH` lines of one another, in one cell if it is a notebook, share a frame. Others get one
each, under a line that says where.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from torchcopylint.base.finding import Finding, Role, Span, Step
from torchcopylint.report.model import Source, place
from torchcopylint.report.terminal import Paint, cells, clean

REACH = 12
WIDEST = 120
"""The columns of a line that are shown; of a longer one, those around the step."""
_BEFORE = 30
"""The columns shown before a step on a line that is too long."""


class _Mark(NamedTuple):
    """A step to draw: its number in execution order, and whether it takes the blame."""

    number: int
    step: Step
    blamed: bool


def frames(finding: Finding, sources: Mapping[str, Source], paint: Paint) -> list[str]:
    """The lines of all frames of a finding. A file whose lines are not at hand is named without them."""
    marks = [
        _Mark(number, step, _place(step) == (finding.filename, finding.cell or 0, finding.span))
        for number, step in enumerate(finding.steps, start=1)
    ]
    if not any(mark.blamed for mark in marks):
        marks.append(_Mark(0, Step(Role.HERE, "here", finding.filename, finding.span, finding.cell), True))
    gutter = max(len(str(mark.step.span.start.row)) for mark in marks) + 3
    lines = []
    for position, group in enumerate(_groups(marks)):
        filename = group[0].step.filename
        source = sources.get(filename)
        shown = clean(source.shown if source else filename)
        if position or not any(mark.blamed for mark in group):
            first = min(group, key=lambda mark: mark.number).step
            arrow = paint("-->", "frame")
            where = f"{place(first.span.start.row, first.cell)}:{first.span.start.column}"
            lines.append(f"{' ' * (gutter - 2)}{arrow} {shown}:{where}")
        for row in sorted({mark.step.span.start.row for mark in group}):
            on_row = sorted(mark for mark in group if mark.step.span.start.row == row)
            text = source.line(row, group[0].step.cell) if source else None
            lines += _row(row, text, on_row, gutter, finding, paint)
    return lines


def _place(step: Step) -> tuple[str, int, Span]:
    return step.filename, step.cell or 0, step.span


def _groups(marks: Iterable[_Mark]) -> list[list[_Mark]]:
    """Marks that share a frame, the frames in order of their first step."""
    groups: list[list[_Mark]] = []
    for mark in sorted(marks, key=lambda mark: (*_place(mark.step), mark.number)):
        last = groups[-1][-1].step if groups else None
        same = last and _place(last)[:2] == _place(mark.step)[:2]
        near = same and last and mark.step.span.start.row - last.span.start.row <= REACH
        if near:
            groups[-1].append(mark)
        else:
            groups.append([mark])
    return sorted(groups, key=lambda group: min(mark.number for mark in group))


def _row(row: int, text: str | None, marks: list[_Mark], gutter: int, finding: Finding, paint: Paint) -> list[str]:
    """One line of code with its marks under it; a line that is too long is shown once for each mark."""
    number = paint(f"{row:>{gutter}} |", "frame")
    margin = paint(f"{'':>{gutter}} |", "frame")
    numbered = len(finding.steps) > 1
    lines = []
    last = None
    for mark in marks:
        label = _label(mark, numbered)
        color = finding.severity.value if mark.blamed else "frame"
        if text is None:
            # Without the line there is nothing to point at, but a step is still worth its words.
            lines += [f"{number} {paint(label, color)}"] if label else []
            continue
        code, start, length = _window(text, mark.step.span)
        if code != last:
            lines.append(f"{number} {code}".rstrip())
            last = code
        marker = ("^" if mark.blamed else "-") * length
        lines.append(f"{margin} {' ' * start}{paint(f'{marker} {label}'.rstrip(), color)}")
    return lines


def _label(mark: _Mark, numbered: bool) -> str:
    span = mark.step.span
    text = "" if mark.step.message == "here" and not numbered else clean(mark.step.message)
    if span.end.row > span.start.row:
        text = f"{text} (to line {span.end.row})".lstrip()
    return f"{mark.number} {text}" if numbered and mark.number else text


def _window(text: str, span: Span) -> tuple[str, int, int]:
    """The part of a line to show, and where on it the mark starts and how long it is, in columns of a terminal."""
    shown = list(cells(text))
    first = min(span.start.column - 1, len(shown))
    # A step that goes on over further lines is marked up to the end of its first.
    last = len(text.rstrip()) if span.end.row > span.start.row else span.end.column - 1
    last = min(max(last, first), len(shown))
    start = sum(width for _, width in shown[:first])
    length = max(sum(width for _, width in shown[first:last]), 1)
    total = sum(width for _, width in shown)
    if total <= WIDEST:
        return "".join(part for part, _ in shown), start, length
    return _cut(shown, start, length, total)


def _cut(shown: list[tuple[str, int]], start: int, length: int, total: int) -> tuple[str, int, int]:
    """`_window` for a line that is too long: an ellipsis stands where it was cut."""
    left = max(0, min(start - _BEFORE, total - WIDEST))
    parts = []
    column = 0
    for part, width in shown:
        if column >= left and column + width <= left + WIDEST:
            parts.append(part)
        elif column < left < column + width:
            # Half of a wide character, or part of an escape, is not shown.
            parts.append(" " * (column + width - left))
        column += width
    before, after = ("…" if left else ""), ("…" if left + WIDEST < total else "")
    begin = start - left
    return f"{before}{''.join(parts)}{after}", len(before) + begin, max(1, min(length, WIDEST - begin))
