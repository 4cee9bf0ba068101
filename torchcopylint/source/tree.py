"""Text to syntax tree. LibCST is imported here, in `positions` and in the lowering, and nowhere else."""

from __future__ import annotations

import ast
import re
import warnings

import libcst

from torchcopylint.base.finding import Position

_PLACE = re.compile(r"error at (\d+):(\d+)")


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
        raise _described(text, error) from None
    except (SyntaxError, RecursionError, MemoryError, ValueError) as error:
        # A bad coding cookie is a plain SyntaxError (facts about LibCST 1.9).
        raise ParseError(str(error) or type(error).__name__, None) from None


def _described(text: str, error: libcst.ParserSyntaxError) -> ParseError:
    """Where and what, in Python's own words where it refuses the text as well.

    LibCST's words name the next token that it looked at, often a line too late, and all that it would have liked there.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except SyntaxError as refusal:
        row, column = refusal.lineno or 1, max(refusal.offset or 1, 1)
        return ParseError(refusal.msg, Position(row, column))
    except (ValueError, RecursionError, MemoryError):
        pass
    found = _PLACE.search(error.message)
    position = Position(int(found[1]), int(found[2]) + 1) if found else Position(error.editor_line, error.editor_column)
    return ParseError("invalid syntax", position)
