"""Evidence whose rows are not those of one text: other files of the project are told by name, notebooks by cells."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from torchcopylint.base.verification import Evidence
from torchcopylint.source.notebook import cell_at, row_called
from torchcopylint.verify.model import Attempt, Slice

_LINE = re.compile(r"\bline (-?\d+(?:, -?\d+)*)\b")


def as_told(evidence: Iterable[Evidence], piece: Slice) -> tuple[Evidence, ...]:
    """The evidence on a slice, with the rows that the user sees."""
    return tuple(_item(item, piece) for item in evidence)


def with_files(attempt: Attempt, piece: Slice) -> Attempt:
    """An attempt whose marks say in which file they are, and on which row there."""
    places = [piece.place(mark.user_row) for mark in attempt.marks]
    marks = [
        replace(mark, user_row=row, user_file=file) for mark, (file, row) in zip(attempt.marks, places, strict=True)
    ]
    return replace(attempt, marks=tuple(marks))


def _item(item: Evidence, piece: Slice) -> Evidence:
    text = _LINE.sub(lambda match: ", ".join(_row(int(row), piece) for row in match[1].split(", ")), item.text)
    row = item.row
    if row is not None and piece.place(row)[0]:
        row = None
    if row is not None and piece.cells:
        place = cell_at(row, piece.cells)
        row = row - place[1] if place is not None else row
    return replace(item, text=text, row=row)


def _row(row: int, piece: Slice) -> str:
    file, inner = piece.place(row)
    if file:
        return f"line {inner} of {file}"
    return row_called(row, piece.cells) if piece.cells else f"line {row}"
