"""What LibCST must never see: texts that would crash it or take it quadratic time, or worse.

LibCST 1.9 dies of a stack overflow near 1,250 nested brackets and near 7,000 terms of one `and`, and takes quadratic
time in call chains (measured; a crash cannot be caught). Brackets inside one another in a `case` or after `del` take it
twice the time for each level, and more than some 3,500 strings behind one another are no Python to it. So the text is
measured before it is parsed, by one pass of one regular expression that knows strings, comments and brackets and
nothing else of Python's grammar.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_STRING_PREFIX = r"(?:[rRbBuUfFtT]{1,2})?"
_TOKEN = re.compile(
    rf"""
      {_STRING_PREFIX}(?P<triple>\"\"\"|''')
    | {_STRING_PREFIX}(?P<quote>["'])
    | (?P<comment>\#[^\r\n]*)
    | (?P<open>[(\[{{])
    | (?P<close>[)\]}}])
    | (?P<term>\b(?:and|or)\b)
    | (?P<word>\b(?:not|if|lambda|await|elif|else)\b)
    | (?P<for>\bfor\b)
    | (?P<del>\bdel\b)
    | (?P<dot>\.(?=\s*[^\W\d]))
    | (?P<operator>[-+*/%@&|^~<>=!]+)
    | (?P<comma>[,;])
    | (?P<newline>\r\n?|\n)
    """,
    re.VERBOSE,
)
_CASE = re.compile(r"[ \t\f]*case\b(?!\s*[=.,:)\]}])")
"""The start of a line with a pattern; not one on which a variable has that name."""
_UNARY = frozenset("-+~")
LOOPS = 10
"""What a `for` in brackets weighs: it is a loop inside of those before it."""
_TRIPLE_END = {'"""': re.compile(r'\\.|"""', re.DOTALL), "'''": re.compile(r"\\.|'''", re.DOTALL)}
_QUOTE_END = {'"': re.compile(r'\\(?:\r\n|.)|["\r\n]', re.DOTALL), "'": re.compile(r"\\(?:\r\n|.)|['\r\n]", re.DOTALL)}


class Peak(NamedTuple):
    """The largest value of a measure and the 1-based row where it is reached; 0 and 0 for an empty text."""

    value: int
    row: int


class Size(NamedTuple):
    """How deep the tree of a text can be.

    `nesting` counts brackets inside one another, `patterns` those on lines of `case` and `del`. `terms` counts `and`
    and `or`, `strings` strings, `chain` every other operator, dot and call, each between two commas of one logical line
    at one bracket depth: they bound the depth of LibCST's tree.
    """

    nesting: Peak
    patterns: Peak
    terms: Peak
    strings: Peak
    chain: Peak


class _Counter:
    """Counts of one measure, one entry per open bracket, and their peak."""

    def __init__(self) -> None:
        self.counts = [0]
        self.peak = Peak(0, 0)

    def add(self, row: int, weight: int = 1) -> None:
        self.counts[-1] += weight
        if self.counts[-1] > self.peak.value:
            self.peak = Peak(self.counts[-1], row)


def measure(text: str) -> Size:
    """Measure a text that may be anything, valid Python or not. Linear in its length; never raises."""
    row = 1
    terms, strings, chain = counters = _Counter(), _Counter(), _Counter()
    nesting = patterns = Peak(0, 0)
    slow = _CASE.match(text) is not None
    position = 0
    search = _TOKEN.search
    while match := search(text, position):
        position = match.end()
        kind = match.lastgroup
        if kind == "newline":
            row += 1
            if len(chain.counts) == 1 and not _continued(text, match.start()):
                for counter in counters:
                    counter.counts[0] = 0
                slow = _CASE.match(text, position) is not None
        elif kind == "comma":
            for counter in counters:
                counter.counts[-1] = 0
        elif kind == "open":
            chain.add(row)
            for counter in counters:
                counter.counts.append(0)
            depth = len(chain.counts) - 1
            if depth > nesting.value:
                nesting = Peak(depth, row)
            if slow and depth > patterns.value:
                patterns = Peak(depth, row)
        elif kind == "close":
            if len(chain.counts) > 1:
                for counter in counters:
                    counter.counts.pop()
        elif kind in ("triple", "quote"):
            strings.add(row)
            end = _string_end(text, position, match[kind], kind == "triple")
            row += _newlines(text, position, end)
            position = end
        elif kind == "term":
            terms.add(row)
        elif kind == "operator":
            chain.add(row, _operators(match[0]))
        elif kind == "del":
            slow = True
        elif kind == "for":
            if len(chain.counts) > 1:
                chain.add(row, LOOPS)
        elif kind != "comment":
            chain.add(row)
    return Size(nesting, patterns, terms.peak, strings.peak, chain.peak)


def _operators(text: str) -> int:
    """How many operators stand in a row: one of two operands at most, and any number of signs."""
    return 1 if len(text) < 3 else max(sum(character in _UNARY for character in text), 1)


def _continued(text: str, newline: int) -> bool:
    return newline > 0 and text[newline - 1] == "\\"


def _newlines(text: str, start: int, end: int) -> int:
    return text.count("\n", start, end) + len(re.findall(r"\r(?!\n)", text[start:end]))


def _string_end(text: str, position: int, quote: str, triple: bool) -> int:
    pattern = _TRIPLE_END[quote] if triple else _QUOTE_END[quote]
    while match := pattern.search(text, position):
        if match[0][0] != "\\":
            # A newline ends an unterminated string but is a newline all the same.
            return match.start() if match[0] in "\r\n" else match.end()
        position = match.end()
    return len(text)
