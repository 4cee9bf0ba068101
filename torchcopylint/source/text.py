"""From bytes to text, as Python reads source files, and from offsets to rows and columns."""

from __future__ import annotations

import codecs
import re
from bisect import bisect_right
from dataclasses import dataclass

from torchcopylint.base.finding import Position

_NEWLINE = re.compile(r"\r\n|\r|\n")
# PEP 263 gives this pattern, and only the first two lines count.
_COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_BLANK = re.compile(rb"^[ \t\f]*(?:#|$)")
_WIDE_MARKS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
START = Position(1, 1)


class Undecodable(Exception):
    """The bytes are not source text. `reason` says why, `position` where."""

    def __init__(self, reason: str, position: Position = START) -> None:
        super().__init__(reason)
        self.reason = reason
        self.position = position


@dataclass(frozen=True, slots=True)
class SourceText:
    """A decoded file. `text` has no byte order mark and keeps its newlines as they are; `bom` says there was one."""

    text: str
    encoding: str
    bom: bool


def decode(data: bytes) -> SourceText:
    """Decode a file as Python would: a byte order mark, else the encoding that PEP 263's comment declares, else UTF-8.

    Raises `Undecodable` for an unknown encoding, bytes that are not of the encoding, and null bytes.
    """
    for mark, name in _WIDE_MARKS:
        if data.startswith(mark):
            raise Undecodable(f"it is {name}, and Python source is UTF-8 unless a comment says otherwise")
    bom = data.startswith(codecs.BOM_UTF8)
    body = data[len(codecs.BOM_UTF8) :] if bom else data
    encoding, row = _declared(body)
    if bom and row and encoding != "utf-8":
        raise Undecodable(f"it declares {encoding} but starts with the byte order mark of UTF-8", Position(row, 1))
    try:
        text = body.decode(encoding)
    except UnicodeDecodeError as error:
        raise _wrong_byte(body, encoding, error.start, bool(row)) from None
    except LookupError:
        raise Undecodable(f"it declares `{encoding}`, which is no encoding of text", Position(row, 1)) from None
    except (UnicodeError, ValueError) as error:
        raise Undecodable(f"it cannot be decoded as {encoding}: {error}", Position(row or 1, 1)) from None
    refuse_null(text)
    return SourceText(text, encoding, bom)


def refuse_null(text: str) -> None:
    """Raise `Undecodable` if the text contains a null character, which Python refuses everywhere."""
    offset = text.find("\0")
    if offset >= 0:
        raise Undecodable("it contains a null byte", LineIndex(text).position(offset))


def split_lines(text: str) -> list[str]:
    """The lines without their ends. A line ends at LF, CR LF or CR and nowhere else: form feeds and the line
    separators of Unicode are part of a line, as they are for Python."""
    return _NEWLINE.split(text)


class LineIndex:
    """Rows and columns of offsets in one text."""

    __slots__ = ("_starts",)

    def __init__(self, text: str) -> None:
        self._starts = [0, *(match.end() for match in _NEWLINE.finditer(text))]

    def position(self, offset: int) -> Position:
        """The 1-based row and column (in code points) of an offset in code points."""
        row = bisect_right(self._starts, offset)
        return Position(row, offset - self._starts[row - 1] + 1)

    def offset(self, position: Position) -> int:
        """The offset of a row and column, the inverse of `position`. Rows past the end count as the last one."""
        row = min(position.row, len(self._starts))
        return self._starts[row - 1] + position.column - 1


def _declared(body: bytes) -> tuple[str, int]:
    """The canonical name of the declared encoding and its row, or `utf-8` and 0."""
    lines = re.split(rb"\r\n|\r|\n", body[:4096], maxsplit=2)[:2]
    for row, line in enumerate(lines, start=1):
        match = _COOKIE.match(line)
        if match:
            name = match[1].decode("ascii")
            try:
                return codecs.lookup(name).name, row
            except LookupError:
                raise Undecodable(f"it declares the unknown encoding `{name}`", Position(row, 1)) from None
        if not _BLANK.match(line):
            break
    return "utf-8", 0


def _wrong_byte(body: bytes, encoding: str, offset: int, declared: bool) -> Undecodable:
    before = re.split(rb"\r\n|\r|\n", body[:offset])
    position = Position(len(before), len(before[-1].decode(encoding, "replace")) + 1)
    hint = "" if declared else ", and no other encoding is declared"
    return Undecodable(f"byte 0x{body[offset]:02x} is not valid {encoding.upper()}{hint}", position)
