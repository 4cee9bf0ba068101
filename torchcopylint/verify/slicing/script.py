"""Puts a script together and finds the steps of the witness in it again."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from torchcopylint.base.finding import Finding, Span
from torchcopylint.verify.model import Mark
from torchcopylint.verify.slicing.source import children, span_of

_NAMES = re.compile(r"`([^`]+)`")
_PRELUDE = """\
from __future__ import annotations

import random
import types

import numpy as np
import torch

random.seed({seed})
np.random.seed({seed})
torch.manual_seed({seed})
"""


def names_spoken(text: str) -> list[str]:
    """The user's names that a message speaks of."""
    found: list[str] = _NAMES.findall(text)
    return found


def prelude(seed: int, device: str) -> str:
    """The first lines of every script. `device` is where tensors are made that do not say where."""
    text = _PRELUDE.format(seed=seed)
    return text if device == "cpu" else f"{text}torch.set_default_device({device!r})\n"


class Placed:
    """A node in the user's file, and the one that was written of it. Spans are found when they are asked for."""

    __slots__ = ("_here", "_lines", "_there", "_written")

    def __init__(self, there: ast.AST, lines: tuple[str, ...], here: ast.AST, written: tuple[str, ...]) -> None:
        self._there, self._lines = there, lines
        self._here, self._written = here, written

    @property
    def there(self) -> Span:
        """Its span in the user's file."""
        return _span(self._there, self._lines)

    @property
    def here(self) -> Span:
        """Its span in the text that was written."""
        return _span(self._here, self._written)

    @property
    def rows(self) -> tuple[int, int]:
        """The rows on which it begins, in the text and in the file."""
        return self._here.lineno, self._there.lineno  # type: ignore[attr-defined]

    def covers(self, span: Span) -> bool:
        """Whether a span of the user's file lies in it."""
        first, last = self._there.lineno, self._there.end_lineno  # type: ignore[attr-defined]
        if first > span.start.row or last < span.end.row:
            return False
        there = self.there
        return there.start <= span.start and span.end <= there.end


def _span(node: ast.AST, lines: tuple[str, ...]) -> Span:
    span = span_of(node, lines)
    assert span is not None
    return span


def placed_in(module: ast.Module, text: str, lines: tuple[str, ...]) -> Iterator[Placed]:
    """Where each node of the user's file stands in a text that was written of it. `lines` are those of the file.

    Walks two trees of one shape side by side. Where the shapes part, what is below is left out.
    """
    written = tuple(text.split("\n"))
    pending: list[tuple[ast.AST, ast.AST]] = [(module, ast.parse(text))]
    while pending:
        one, two = pending.pop()
        if type(one) is not type(two):
            continue
        if getattr(one, "end_lineno", None) is not None and getattr(two, "end_lineno", None) is not None:
            yield Placed(one, lines, two, written)
        parts, others = children(one), children(two)
        if len(parts) == len(others):
            pending.extend(zip(parts, others, strict=True))


class Written(Protocol):
    """Statements of the user's as they are written, and where their nodes stand there: a `Piece`."""

    @property
    def text(self) -> str:
        """One or more lines, without a newline at the end."""

    @property
    def placed(self) -> tuple[Placed, ...]:
        """Rows are those of the text, the first is 1."""

    @property
    def begins(self) -> Mapping[int, int]:
        """For rows of the text on which statements begin, the rows of the user's file."""


def begins_of(placed: Iterable[Placed]) -> dict[int, int]:
    """What `Written.begins` is."""
    found: dict[int, int] = {}
    for item in placed:
        # A statement comes before its parts, and is what a row of the script stands for.
        found.setdefault(*item.rows)
    return found


@dataclass(frozen=True, slots=True)
class Script:
    """What stands before the user's statements, those, and what drives them."""

    before: str
    written: tuple[Written, ...]
    after: str

    @property
    def text(self) -> str:
        """The whole script."""
        body = "\n".join(part.text for part in self.written)
        return f"{self.before}{body}\n\n\n{self.after}" if self.after else f"{self.before}{body}\n"

    def parts(self) -> Iterator[tuple[int, Written]]:
        """The user's statements, each with the number of rows above it."""
        above = self.before.count("\n")
        for part in self.written:
            yield above, part
            above += part.text.count("\n") + 1

    def rows(self) -> dict[int, int]:
        """For rows of the script on which statements begin, the rows of the user's file."""
        return {row + above: there for above, part in self.parts() for row, there in part.begins.items()}

    def find(self, span: Span) -> Span | None:
        """Where the smallest node that covers a span of the user's file stands in the script."""
        best: Placed | None = None
        rows = 0
        for above, part in self.parts():
            if not part.placed or not part.placed[0].covers(span):
                continue
            for item in part.placed:
                if item.covers(span) and (best is None or _smaller(item.there, best.there)):
                    best, rows = item, above
        return _moved(best.here, rows) if best is not None else None


def assemble(before: str, written: Sequence[Written], after: str) -> Script:
    """A script of the user's statements as they are written, and what goes around them."""
    return Script(before.rstrip("\n") + "\n\n\n", tuple(part for part in written if part.text), after)


def _moved(span: Span, rows: int) -> Span:
    start, end = span.start, span.end
    return Span(type(start)(start.row + rows, start.column), type(end)(end.row + rows, end.column))


def marks_of(finding: Finding, script: Script) -> tuple[Mark, ...] | None:
    """The steps of a finding, in the script; `None` if one of them is not in it."""
    steps = [(step.role, step.message, step.span) for step in finding.steps if step.filename == finding.filename]
    if not steps:
        from torchcopylint.base.finding import Role

        steps = [(Role.HERE, finding.message, finding.span)]
    marks = []
    for role, message, span in steps:
        found = script.find(span)
        if found is None:
            return None
        names = tuple(dict.fromkeys(names_spoken(message)))
        marks.append(
            Mark(role, found.start.row, found.end.row, found.start.column, found.end.column, span.start.row, names)
        )
    return tuple(marks)


def _smaller(one: Span, two: Span) -> bool:
    return two.start <= one.start and one.end <= two.end and one != two
