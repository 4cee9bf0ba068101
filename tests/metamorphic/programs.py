"""Examples as programs, variants of them, and where a statement of a variant came from.

A transformation works on a text in which every statement carries its row as a trailing comment (`# @12`), so that it
may move, wrap and rewrite statements as it likes: the rows travel along. `Variant.of` takes the comments out again.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import libcst as cst

from torchcopylint.analysis import analyse
from torchcopylint.base.finding import Finding
from torchcopylint.pages import Example, Page, load_pages

_TAG = re.compile(r"[ \t]*# @(\d+)$", re.MULTILINE)
_MARK = re.compile(r"[ \t]*# <- .*$", re.MULTILINE)


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """One example of a page. `name` is such as `data-read bad 2`; `code` is the program without its marks."""

    name: str
    page: Page
    example: Example
    code: str

    def rows(self, role: str) -> tuple[int, ...]:
        """The rows that carry a mark of this role."""
        return tuple(mark.row for mark in self.example.marks if mark.what == role)


class Seen(NamedTuple):
    """A finding as a statement of the original program sees it: rows are rows of the original, 0 for none of them."""

    row: int
    code: str
    variant: str
    severity: str
    confidence: str
    steps: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        variant = f"[{self.variant}]" if self.variant else ""
        return f"{self.code}{variant}@{self.row} {self.severity}/{self.confidence}"


class Words(NamedTuple):
    """What a finding says, in the names of the original program."""

    row: int
    code: str
    message: str
    advice: str
    steps: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Variant:
    """A program after a transformation.

    `headers` are the first and last rows of its statements; `rows` leads from first rows to rows of the original.
    `names` leads from each new name to the original one, where the transformation renamed.
    """

    code: str
    headers: tuple[tuple[int, int], ...]
    rows: Mapping[int, int]
    names: Mapping[str, str]

    @classmethod
    def of(cls, tagged: str, names: Mapping[str, str] | None = None) -> Variant:
        """From a transformed text with its tags. Raises `SyntaxError` if the transformation broke the program."""
        lines = tagged.splitlines()
        headers = tuple(map(header, statements(ast.parse(tagged))))
        rows = {}
        for first, last in headers:
            found = [int(match[1]) for line in lines[first - 1 : last] if (match := _TAG.search(line))]
            if found:
                rows[first] = found[-1]
        return cls(_TAG.sub("", tagged), headers, rows, names or {})

    def origin(self, row: int) -> int:
        """The row, in the original program, of the statement that covers a row; 0 if the transformation added it."""
        covering = [first for first, last in self.headers if first <= row <= last]
        return self.rows.get(max(covering), 0) if covering else 0

    def original_words(self, text: str) -> str:
        """A text with the new names replaced by the original ones."""
        if not self.names:
            return text
        return re.sub(r"\b[A-Za-z_]\w*\b", lambda word: self.names.get(word[0], word[0]), text)


@cache
def programs() -> tuple[Program, ...]:
    """Every example of every page, in order of code."""
    return tuple(
        Program(f"{page.name} {example.kind} {number}", page, example, _MARK.sub("", example.code))
        for page in load_pages().values()
        for number, example in enumerate(page.examples, start=1)
    )


@cache
def tagged(code: str) -> str:
    """The program with each statement's row as a comment at the end of its header, or of itself if it is simple."""
    lines = code.splitlines()
    for statement in statements(ast.parse(code)):
        first, last = header(statement)
        if not _TAG.search(lines[last - 1]):
            lines[last - 1] += f"  # @{first}"
    return "\n".join(lines) + "\n"


@cache
def syntax(program: Program) -> cst.Module:
    """LibCST's tree of the tagged program."""
    return cst.parse_module(tagged(program.code))


def statements(tree: ast.AST) -> Iterator[ast.stmt]:
    """Every statement, in order of the text."""
    found = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    yield from sorted(found, key=lambda node: (node.lineno, node.col_offset))


def header(statement: ast.stmt) -> tuple[int, int]:
    """The first and last row of a statement without the statements inside it. Decorators belong to it."""
    first = min([statement.lineno, *(node.lineno for node in getattr(statement, "decorator_list", []))])
    inside = [node.lineno for node in ast.walk(statement) if isinstance(node, ast.stmt) and node is not statement]
    if not inside:
        return first, statement.end_lineno or first
    own = [node for node in ast.iter_child_nodes(statement) if not isinstance(node, ast.stmt | ast.ExceptHandler)]
    ends = [end for part in own for node in ast.walk(part) if (end := getattr(node, "end_lineno", None))]
    return first, max([statement.lineno, *(end for end in ends if end < min(inside))])


@cache
def original(program: Program) -> Variant:
    """The program itself, as a variant."""
    return Variant.of(tagged(program.code))


def lint(code: str) -> tuple[Finding, ...]:
    """The findings of every rule. Straight from the analysis: there are thousands of programs and no settings."""
    return analyse(code, filename="example.py").findings


@cache
def seen(variant: Variant) -> frozenset[Seen]:
    """What the linter says of a variant, in rows of the original program."""
    return frozenset(
        Seen(
            variant.origin(finding.span.start.row),
            finding.code,
            finding.variant,
            finding.severity.value,
            finding.confidence.value,
            tuple(sorted({(step.role.value, variant.origin(step.span.start.row)) for step in finding.steps})),
        )
        for finding in lint(variant.code)
    )


def words(variant: Variant) -> list[Words]:
    """The words of the findings about a variant, sorted."""
    say = variant.original_words
    return sorted(
        Words(
            variant.origin(finding.span.start.row),
            finding.code,
            say(finding.message),
            say(finding.advice),
            tuple(say(step.message) for step in finding.steps),
        )
        for finding in lint(variant.code)
    )


def tokens(code: str) -> list[tokenize.TokenInfo]:
    """The tokens of a program."""
    return list(tokenize.generate_tokens(io.StringIO(code).readline))
