"""A quick look at how deep the tree of a text can be at most, so that most texts need not be measured.

What `limits.measure` counts token by token is bounded from above here with a few passes of regular expressions and of
`str`: what is counted too much only costs a measurement. Nothing is counted too little.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from torchcopylint.source.limits import LOOPS

_DOUBLE = r'"""[^\\"]*(?:(?:\\.|"(?!""))[^\\"]*)*(?:"""|\\?\Z)'
_SINGLE = r"'''[^\\']*(?:(?:\\.|'(?!''))[^\\']*)*(?:'''|\\?\Z)"
STRINGS = re.compile(
    rf"""{_DOUBLE}|{_SINGLE}|"[^\\"\r\n]*(?:\\(?:\r\n|.)[^\\"\r\n]*)*"?|'[^\\'\r\n]*(?:\\(?:\r\n|.)[^\\'\r\n]*)*'?"""
    r"|#[^\\\r\n]*(?:\\(?![\r\n])[^\\\r\n]*)*",
    re.DOTALL,
)
"""Strings and comments; the `#` of a comment is the only one that a match can start with."""
_OTHER = re.compile(r"[^][(){}\r\n.+*/%@&|^~<>=!-]+")
_GROUP = re.compile(r"[(\[{][^][(){}]*[)\]}]")
# Substrings of all words that `measure` counts.
_WORDS = ("not", "if", "lambda", "await", "else")
_TERMS = ("and", "or")
_FOR = re.compile(r"\bfor\b")

DEEPEST = 24
"""Each level of brackets is one more pass, and nobody writes so many."""


class Bounds(NamedTuple):
    """What `limits.Size` has, each at most so large."""

    nesting: int
    patterns: int
    terms: int
    strings: int
    chain: int


def bounds(text: str) -> Bounds | None:
    """Upper bounds for a text; `None` if its brackets do not match or are nested deeper than `DEEPEST`.

    Linear in the length of the text; never raises.
    """
    bare, strings = STRINGS.subn("", text)
    code = _OTHER.sub("", bare.replace("\\\r\n", "").replace("\\\n", "").replace("\\\r", ""))
    words = sum(map(text.count, _WORDS)) + LOOPS * len(_FOR.findall(text))
    terms = sum(map(text.count, _TERMS))
    longest = nesting = 0
    while "(" in code or "[" in code or "{" in code:
        if nesting == DEEPEST:
            return None
        longest = max(longest, *map(len, _GROUP.findall(code)), 0)
        flat = _GROUP.sub(".", code)
        if len(flat) == len(code):
            return None
        code = flat
        nesting += 1
    if ")" in code or "]" in code or "}" in code:
        return None
    longest = max(longest, *map(len, re.split("[\r\n]", code)))
    return Bounds(nesting, nesting, terms, strings, longest + words)
