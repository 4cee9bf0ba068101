"""Text on a terminal: colours, widths, and characters that must not reach it as they are."""

from __future__ import annotations

from collections.abc import Iterator

TAB = 4
_RESET = "\x1b[0m"
_CODES = {
    "error": "\x1b[1;31m",
    "warning": "\x1b[1;33m",
    "info": "\x1b[1;36m",
    "bold": "\x1b[1m",
    "frame": "\x1b[1;34m",
    "good": "\x1b[1;32m",
    "dim": "\x1b[2m",
}


class Paint:
    """Puts colours round text, or leaves it as it is."""

    def __init__(self, color: bool) -> None:
        self._color = color

    def __call__(self, text: str, role: str) -> str:
        """`text` in the colour of `role`: a severity, `bold`, `frame`, `good` or `dim`."""
        return f"{_CODES[role]}{text}{_RESET}" if self._color and text else text


def clean(text: str) -> str:
    """The text without characters that would steer a terminal or reorder a line: they are written as escapes."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(shown for shown, _ in cells(text))


def cells(text: str) -> Iterator[tuple[str, int]]:
    """For each character, what to print for it and how many columns that takes on a terminal.

    Tabs go to the next multiple of four, wide characters take two columns, combining ones none, and control and
    formatting characters become escapes.
    """
    column = 0
    for character in text:
        if character == "\t":
            width = TAB - column % TAB
            shown = " " * width
        else:
            shown, width = _cell(character)
        column += width
        yield shown, width


def _cell(character: str) -> tuple[str, int]:
    if " " <= character <= "~":
        return character, 1
    from unicodedata import category, east_asian_width

    kind = category(character)
    if kind in ("Mn", "Me"):
        return character, 0
    if kind in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"):
        shown = character.encode("unicode_escape", "surrogatepass").decode("ascii")
        return shown, len(shown)
    return character, 2 if east_asian_width(character) in "WF" else 1


def width(text: str) -> int:
    """How many columns a text takes on a terminal."""
    return sum(columns for _, columns in cells(text))


def count(number: int, noun: str) -> str:
    """`1 file`, `2 files`."""
    return f"{number} {noun}" + ("" if number == 1 else "s")
