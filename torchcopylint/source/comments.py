"""The comments of a text, found without a parser.

`tokenize` follows the grammar of the Python that runs it: before 3.12 it does not know nested quotes in f-strings. This
scanner knows strings, f-strings with replacement fields and comments, and nothing else, so it does not depend on the
running Python and never fails: on a text that is no Python it yields what it takes for comments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from torchcopylint.source.text import LineIndex

_STRING_OR_COMMENT = re.compile(r"#[^\r\n]*|(?:(?<!\w)[rRbBuUfFtT]{1,2})?(?:\"\"\"|'''|[\"'])")
# In a replacement field, brackets, the colon of the format and the closing brace matter as well.
_IN_FIELD = re.compile(r"#[^\r\n]*|(?:(?<!\w)[rRbBuUfFtT]{1,2})?(?:\"\"\"|'''|[\"'])|[][(){}:]")
_ESCAPE = r"\\(?:\r\n|.)"
_NAMED = r"\\N\{[^}\r\n]*\}"


class Comment(NamedTuple):
    """A comment, from its `#` to the end of its line.

    `row` and `column` are 1-based, columns count code points. `alone` says that only white space stands before it on
    its line.
    """

    row: int
    column: int
    text: str
    alone: bool


@dataclass(slots=True)
class _Literal:
    """An f-string that is open. `format` says that its text is a format specification inside a replacement field."""

    quote: str
    raw: bool
    format: bool = False


@dataclass(slots=True)
class _Field:
    """A replacement field that is open, inside `literal`; `depth` counts the brackets open in it."""

    literal: _Literal
    depth: int = 0


def comments(text: str) -> Iterator[Comment]:
    """Yield every comment of a text in order. Never raises; linear in the length of the text."""
    index = LineIndex(text)
    for start, end in _spans(text):
        position = index.position(start)
        before = text[start - position.column + 1 : start]
        yield Comment(position.row, position.column, text[start:end], not before.strip())


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Start and end offsets of the comments."""
    stack: list[_Literal | _Field] = []
    position = 0
    while position < len(text):
        top = stack[-1] if stack else None
        if isinstance(top, _Literal):
            position = _in_literal(text, position, top, stack)
            continue
        match = (_IN_FIELD if top else _STRING_OR_COMMENT).search(text, position)
        if not match:
            return
        token, position = match[0], match.end()
        if token[0] == "#":
            yield match.span()
        elif token[-1] in "\"'":
            position = _open_string(text, position, token, stack)
        elif top is not None:
            _bracket(token, top, stack)


def _open_string(text: str, position: int, token: str, stack: list[_Literal | _Field]) -> int:
    """Skip a plain string, or open an f-string. Returns where to go on."""
    quote = token.lstrip("rRbBuUfFtT")
    prefix = token[: len(token) - len(quote)].lower()
    if "f" in prefix or "t" in prefix:
        stack.append(_Literal(quote, "r" in prefix))
        return position
    for match in _plain_pattern(quote).finditer(text, position):
        if match[0][0] != "\\":
            return match.end()
    return len(text)


def _bracket(token: str, field: _Field, stack: list[_Literal | _Field]) -> None:
    """Follow a bracket or a colon in a replacement field."""
    if token in "([{":
        field.depth += 1
    elif field.depth and token in ")]}":
        field.depth -= 1
    elif not field.depth and token == "}":
        stack.pop()
    elif not field.depth and token == ":":
        stack[-1] = _Literal(field.literal.quote, field.literal.raw, format=True)


def _in_literal(text: str, position: int, literal: _Literal, stack: list[_Literal | _Field]) -> int:
    """Go on inside an f-string's text up to the next thing that matters. Returns where to go on."""
    match = _literal_pattern(literal).search(text, position)
    if not match:
        stack.clear()
        return len(text)
    token = match[0]
    if token == "{{" and literal.format:
        # In a format specification a doubled brace is no escape: it opens a field that starts with a bracket.
        stack.append(_Field(literal))
        return match.start() + 1
    if token == "{":
        stack.append(_Field(literal))
    elif token == "}" and literal.format:
        stack.pop()
    elif token == literal.quote or token in "\r\n":
        stack.pop()
        if literal.format:
            # Its closing brace is missing: the string around it ends here too.
            stack.pop()
    return match.end()


_PATTERNS: dict[tuple[str, str], re.Pattern[str]] = {}


def _plain_pattern(quote: str) -> re.Pattern[str]:
    return _pattern("plain", quote, rf"{_ESCAPE}|{quote}")


def _literal_pattern(literal: _Literal) -> re.Pattern[str]:
    # A backslash before a brace escapes nothing; in a raw string `\N{` is a backslash, an N and a field.
    named = "" if literal.raw else _NAMED + "|"
    closing = "}" if literal.format else "}}|}"
    kind = ("raw" if literal.raw else "cooked") + (" format" if literal.format else "")
    return _pattern(kind, literal.quote, rf"{named}\\\r\n|\\[^{{}}]|{{{{|{{|{closing}|{literal.quote}")


def _pattern(kind: str, quote: str, pattern: str) -> re.Pattern[str]:
    """The compiled pattern; strings of one quote end at a newline as well, which keeps a broken text readable."""
    key = (kind, quote)
    if key not in _PATTERNS:
        newline = r"|[\r\n]" if len(quote) == 1 and "format" not in kind else ""
        _PATTERNS[key] = re.compile(pattern + newline, re.DOTALL)
    return _PATTERNS[key]
