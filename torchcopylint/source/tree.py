"""Text to syntax tree. LibCST is imported here, in `positions` and in the lowering, and nowhere else."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

import libcst

from torchcopylint.base.finding import Position

DEEP = 60_000
"""Python frames that one analysis may stack up. Calls between Python functions take no C stack (since Python 3.11)."""


class ParseError(Exception):
    """The text is not Python as LibCST knows it. `position` is 1-based, or `None` if the parser did not say."""

    def __init__(self, reason: str, position: Position | None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.position = position


def parse(text: str) -> libcst.Module:
    """Parse a whole file. Raises `ParseError`."""
    try:
        return libcst.parse_module(text)
    except libcst.ParserSyntaxError as error:
        # LibCST's columns are 0-based in `raw_column`; some messages carry a position of their own.
        position = Position(error.raw_line, error.raw_column + 1)
        raise ParseError(_reason(error), position) from None
    except (SyntaxError, RecursionError, MemoryError, ValueError) as error:
        # A bad coding cookie is a plain SyntaxError (facts about LibCST 1.9).
        raise ParseError(str(error) or type(error).__name__, None) from None


def _reason(error: libcst.ParserSyntaxError) -> str:
    message = error.message.strip().splitlines()
    return message[0].rstrip(".") if message else "invalid syntax"


@contextlib.contextmanager
def deep_recursion() -> Iterator[None]:
    """Allow deep recursion between Python functions while the body runs.

    Lowering and position finding recurse as deep as expressions nest, which the limits bound.
    """
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, DEEP))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
