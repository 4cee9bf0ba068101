"""Questions to the engine, asked by comments: what is known of this name here?

    best = model.state_dict()  # torchcopylint: reveal[best]         after the statement on this line
    # torchcopylint: reveal[best, self.head.weight]                  before the statement on the next line

A comment alone on its line that is indented deeper than the next line of code is about the end of its block.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from torchcopylint.base.finding import Position, Span
from torchcopylint.source.comments import comments
from torchcopylint.source.text import split_lines

REVEAL = "reveal"
_ASKED = re.compile(r"#\s*torchcopylint\s*:\s*reveal(?![\w-])(?:\s*\[(?P<names>[^\]\r\n#]*)\]?)?", re.IGNORECASE)


class Question(NamedTuple):
    """What is known of `name`, a name or dotted path as written, at `span`. `before` is whether it is asked about the
    moment before the next statement; otherwise it is the one after the statement that stands on or above the row."""

    name: str
    span: Span
    before: bool


def questions(text: str) -> list[Question]:
    """The questions that the comments of a text ask, in order. A comment that names nothing asks about nothing, ``."""
    if REVEAL not in text.lower():
        return []
    lines = split_lines(text)
    found = []
    for comment in comments(text):
        for match in _ASKED.finditer(comment.text):
            before = comment.alone and not _ends_block(lines, comment.row, comment.column)
            parts = list(re.finditer(r"[^,\s]+", match["names"] or ""))
            start = comment.column + (match.start("names") if parts else 0)
            for part in parts:
                place = Position(comment.row, start + part.start())
                end = Position(comment.row, start + part.end())
                found.append(Question(part[0], Span(place, end), before))
            if not parts:
                place = Position(comment.row, comment.column + match.start())
                end = Position(comment.row, comment.column + match.end())
                found.append(Question("", Span(place, end), before))
    return found


def _ends_block(lines: list[str], row: int, column: int) -> bool:
    """Whether the next line of code is less indented than a comment, or there is none."""
    for line in lines[row:]:
        code = line.lstrip()
        if code and not code.startswith("#"):
            return len(line) - len(code) + 1 < column
    return True
