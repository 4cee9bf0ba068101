"""Evidence about a notebook: its lines are told by their cells."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from torchcopylint.base.verification import Evidence
from torchcopylint.source.notebook import cell_at, row_called

_LINE = re.compile(r"\bline (\d+)\b")


def in_cells(evidence: Iterable[Evidence], cells: Sequence[tuple[int, int]]) -> tuple[Evidence, ...]:
    """Evidence with rows of a notebook's Python, told by the rows of its cells (as `source.notebook.cells` has them).

    Without cells, as it is.
    """
    return tuple(_in_cell(item, cells) for item in evidence) if cells else tuple(evidence)


def _in_cell(item: Evidence, cells: Sequence[tuple[int, int]]) -> Evidence:
    text = _LINE.sub(lambda match: row_called(int(match[1]), cells), item.text)
    place = cell_at(item.row, cells) if item.row else None
    return replace(item, text=text, row=item.row - place[1] if place and item.row else item.row)
