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

from torchcopylint import check_source
from torchcopylint.base.finding import Finding
from torchcopylint.pages import Example, Page, load_pages

_TAG = re.compile(r"[ \t]*# @(\d+)$", re.MULTILINE)
_MARK = re.compile(r"[ \t]*# <- .*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
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
        steps = " ".join(f"{role}@{row}" for role, row in self.steps)
        return f"{self.code}{variant}@{self.row} {self.severity}/{self.confidence} ({steps})"


@dataclass(frozen=True, slots=True)
class Variant:
    """A program after a transformation. `rows` leads from a statement's first row in `code` to its row in the original.

    `names` leads from each new name to the original one, where the transformation renamed.
    """

    code: str
    rows: Mapping[int, int]
    names: Mapping[str, str]

    @classmethod
    def of(cls, tagged: str, names: Mapping[str, str] | None = None) -> Variant:
        """From a transformed text with its tags. Raises `SyntaxError` if the transformation broke the program."""
        lines = tagged.splitlines()
        rows = {}
        for statement in statements(ast.parse(tagged)):
            first, last = header(statement)
            found = [int(match[1]) for line in lines[first - 1 : last] if (match := _TAG.search(line))]
            if found:
                rows[first] = found[-1]
        return cls(_TAG.sub("", tagged), rows, names or {})

    def origin(self, row: int) -> int:
        """The row, in the original program, of the statement that covers a row; 0 if the transformation added it."""
        covering = [first for first, last in map(header, statements(ast.parse(self.code))) if first <= row <= last]
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


def tagged(code: str) -> str:
    """The program with each statement's row as a comment at the end of its header, or of itself if it is simple."""
    lines = code.splitlines()
    for statement in statements(ast.parse(code)):
        first, last = header(statement)
        if not _TAG.search(lines[last - 1]):
            lines[last - 1] += f"  # @{first}"
    return "\n".join(lines) + "\n"


def statements(tree: ast.AST) -> Iterator[ast.stmt]:
    """Every statement, in order of the text."""
    found = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    yield from sorted(found, key=lambda node: (node.lineno, node.col_offset))


def header(statement: ast.stmt) -> tuple[int, int]:
    """The first and last row of a statement without the statements inside it. Decorators belong to it."""
    first = min([statement.lineno, *(node.lineno for node in getattr(statement, "decorator_list", []))])
    body = getattr(statement, "body", None)
    if not body:
        return first, statement.end_lineno or first
    parts = [node for node in ast.iter_child_nodes(statement) if not isinstance(node, ast.stmt | ast.ExceptHandler)]
    rows = [node.end_lineno for node in parts if isinstance(node, ast.expr | ast.arg | ast.keyword) and node.end_lineno]
    inner = [node.end_lineno for part in parts for node in ast.walk(part) if isinstance(node, ast.expr | ast.arg)]
    last = max([statement.lineno, *rows, *(row for row in inner if row)])
    return first, min(last, max(first, body[0].lineno - 1)) if body[0].lineno > first else first


def lint(code: str) -> list[Finding]:
    """The findings with every rule selected."""
    return check_source(code, filename="example.py", preset="strict")


def seen(variant: Variant) -> frozenset[Seen]:
    """What the linter says of a variant, in rows of the original program."""
    origins: dict[int, int] = {}

    def origin(row: int) -> int:
        if row not in origins:
            origins[row] = variant.origin(row)
        return origins[row]

    return frozenset(
        Seen(
            origin(finding.span.start.row),
            finding.code,
            finding.variant,
            finding.severity.value,
            finding.confidence.value,
            tuple(sorted((step.role.value, origin(step.span.start.row)) for step in finding.steps)),
        )
        for finding in lint(variant.code)
    )


def tokens(code: str) -> list[tokenize.TokenInfo]:
    """The tokens of a program."""
    return list(tokenize.generate_tokens(io.StringIO(code).readline))
