"""Where nodes of a light tree stand, by what Python's parser says of its own tree.

Spans are those that LibCST's `PositionProvider` has, which is the oracle in the tests: brackets around an expression do
not belong to it. For what Python's parser does not tell there is no span, and LibCST must read the text.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Mapping
from types import SimpleNamespace as Node
from typing import Any

from torchcopylint.base.finding import Position, Span
from torchcopylint.source.bounds import STRINGS
from torchcopylint.source.text import split_lines

_HEAD = re.compile(r"(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)")


def light_spans(text: str, nodes: Mapping[int, Node]) -> dict[int, Span]:
    """The spans of some nodes of the light tree that `text` was read to, by the same keys, as far as they are known.

    Rows and columns are 1-based and count code points; ends are exclusive.
    """
    if not text.isascii() and not STRINGS.sub("", text).isascii():
        # Python's parser has other names than stand in the text, where it normalises them.
        return {}
    places = _Places(text)
    return {key: span for key, node in nodes.items() if (span := places.of(node)) is not None}


class _Places:
    def __init__(self, text: str) -> None:
        self._lines = split_lines(text)

    def of(self, node: Node) -> Span | None:
        """The span of one node."""
        sort = type(node).__name__
        if sort in ("SimpleStatementLine", "SimpleStatementSuite"):
            return self._between(node.body[0].at, node.body[-1].at)
        at = getattr(node, "at", None)
        if at is None:
            return None
        if isinstance(at, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return self._name(at)
        span = self._between(at, at)
        if self._lines[span.end.row - 1][span.end.column - 2] == ";":
            # Of what stands on one line behind a colon, LibCST does not count the last semicolon.
            return None
        return self._inside(span, always=sort == "GeneratorExp") if sort in ("GeneratorExp", "Tuple") else span

    def _between(self, first: Any, last: Any) -> Span:
        start = self._position(first.lineno, first.col_offset)
        return Span(start, self._position(last.end_lineno, last.end_col_offset))

    def _position(self, row: int, offset: int) -> Position:
        """Python's parser counts the bytes of UTF-8."""
        line = self._lines[row - 1]
        return Position(row, 1 + (offset if line.isascii() else len(line.encode()[:offset].decode())))

    def _name(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> Span | None:
        """The name that a definition defines, if it stands on the line of its first word."""
        row = node.lineno
        head = _HEAD.match(self._lines[row - 1], self._position(row, node.col_offset).column - 1)
        return Span(Position(row, head.start(1) + 1), Position(row, head.end(1) + 1)) if head else None

    def _inside(self, span: Span, *, always: bool) -> Span | None:
        """What stands in the brackets around a generator, which has them `always`, or around a tuple, if it has any."""
        start, end = span.start, span.end
        if start.row != end.row:
            return None
        line = self._lines[start.row - 1]
        inner = line[start.column : end.column - 2]
        if not always and not (line[start.column - 1] == "(" and _is_list(inner)):
            return span
        if inner != inner.strip():
            return None
        return Span(Position(start.row, start.column + 1), Position(end.row, end.column - 1))


def _is_list(text: str) -> bool:
    """Whether a text in brackets is a display of its own: `a), (b` is not."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(f"[{text}]", mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True
