"""Text to syntax tree. LibCST is imported here, in `positions` and in the lowering, and nowhere else."""

from __future__ import annotations

import ast
import re
import warnings

import libcst

from torchcopylint.base.finding import Position
from torchcopylint.source.text import LineIndex, split_lines

_PLACE = re.compile(r"error at (\d+):(\d+)")
_CONFLICT = tuple(re.compile(rf"^{mark}{{7}}(?:[ \r].*)?$", re.MULTILINE) for mark in "<=>")
_INDENTATION = re.compile(r"^[ \t]*\t[ \t]*", re.MULTILINE)
_COMMAND = re.compile(r"[ \t]*([%!]{1,2}[^\W\d]\w*)")


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
        module = _without_tabs(text)
        if module is None:
            raise _familiar(text, _described(text, error)) from None
        return module
    except (SyntaxError, RecursionError, MemoryError, ValueError) as error:
        # A bad coding cookie is a plain SyntaxError (facts about LibCST 1.9).
        raise ParseError(str(error) or type(error).__name__, None) from None


def _without_tabs(text: str) -> libcst.Module | None:
    """The module of a text that mixes tabs and spaces in a way that Python understands and LibCST does not.

    Each tab of an indentation becomes one space, so that rows and columns stay; `None` if that means anything else.
    """
    if "\t" not in text:
        return None
    spaced = _INDENTATION.sub(lambda found: found[0].replace("\t", " "), text)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if ast.dump(ast.parse(spaced)) != ast.dump(ast.parse(text)):
                return None
        return libcst.parse_module(spaced)
    except (libcst.ParserSyntaxError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


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


def _familiar(text: str, error: ParseError) -> ParseError:
    """The error in words that say what to do, where the text is one of the usual things that are not Python."""
    conflict = _conflict(text)
    if conflict is not None:
        reason = "it contains the conflict markers of a merge; resolve the conflict first"
        return ParseError(reason, LineIndex(text).position(conflict))
    if error.position is not None:
        lines = split_lines(text)[error.position.row - 1 : error.position.row]
        command = _COMMAND.match(lines[0]) if lines else None
        if command:
            return ParseError(f"`{command[1]}` is a command of IPython, not Python", error.position)
    return error


def _conflict(text: str) -> int | None:
    """The offset of the first line of a conflict that a merge left, or `None`. Linear in the length of the text."""
    offsets: list[int] = []
    for mark in _CONFLICT:
        found = mark.search(text, offsets[-1] if offsets else 0)
        if not found:
            return None
        offsets.append(found.start())
    return offsets[0]
