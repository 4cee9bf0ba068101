"""The same syntax tree in another layout: blank lines, comments, line breaks, semicolons, parentheses.

These need no torch: Python parses the same tree, so the program is the same. `Layout` finds statements by their number.
"""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Callable, Mapping
from functools import cache
from typing import NamedTuple

from torchcopylint.base.finding import Finding, Position

from .programs import Program, header, lint, statements, tokens


class Told(NamedTuple):
    """A finding without its place: `at` and the steps name statements by their number in the text, from 0."""

    at: int
    code: str
    variant: str
    severity: str
    confidence: str
    message: str
    advice: str
    steps: tuple[tuple[str, str, int], ...]

    def __str__(self) -> str:
        variant = f"[{self.variant}]" if self.variant else ""
        return f"{self.code}{variant} in statement {self.at} {self.severity}/{self.confidence}"


class Layout:
    """A program in some layout. Raises `SyntaxError` where it is none.

    `tree` is the syntax tree without places, `told` what the linter says, in an order that does not depend on the
    layout, and `fingerprints` those of the findings, sorted.
    """

    def __init__(self, code: str) -> None:
        tree = ast.parse(code)
        self.code = code
        self.tree = ast.dump(tree)
        self._ends = [(_start(node), (node.end_lineno or 0, node.end_col_offset or 0)) for node in statements(tree)]
        findings = lint(code)
        self.told = sorted(self._told(finding) for finding in findings)
        self.fingerprints = sorted(finding.fingerprint for finding in findings)

    def _told(self, finding: Finding) -> Told:
        return Told(
            self._number(finding.span.start),
            finding.code,
            finding.variant,
            finding.severity.value,
            finding.confidence.value,
            finding.message,
            finding.advice,
            tuple((step.role.value, step.message, self._number(step.span.start)) for step in finding.steps),
        )

    def _number(self, place: Position) -> int:
        """The number of the innermost statement at a place."""
        at = (place.row, place.column)
        return max(n for n, (start, end) in enumerate(self._ends) if start <= at and (at[0], at[1] - 1) <= end)


def _start(node: ast.stmt) -> tuple[int, int]:
    return header(node)[0], node.col_offset + 1


def _comment_lines(code: str) -> str:
    """Blank lines and a comment before each statement."""
    columns = {header(node)[0]: node.col_offset for node in statements(ast.parse(code))}
    lines = []
    for row, line in enumerate(code.splitlines(), start=1):
        if row in columns:
            lines += ["", "", " " * columns[row] + "# x.data = y  (a comment, no code)", ""]
        lines.append(line)
    return "\n".join(lines) + "\n"


def _trailing_comments(code: str) -> str:
    rows = {header(node)[1] for node in statements(ast.parse(code))}
    lines = [line + "  # why" if row in rows else line for row, line in enumerate(code.splitlines(), start=1)]
    return "\n".join(lines) + "\n"


def _other_white_space(code: str) -> str:
    """Tabs for indentation and the newlines of Windows."""
    indented = re.sub(r"^(?: {4})+", lambda spaces: "\t" * (len(spaces[0]) // 4), code, flags=re.MULTILINE)
    return indented.replace("\n", "\r\n")


def _broken_lines(code: str) -> str:
    """A line break behind every opening bracket and every comma inside brackets."""
    lines = [list(line) for line in code.splitlines()]
    depth = strings = 0
    for token in tokens(code):
        # From Python 3.12 on the parts of an f-string are tokens; before 3.12 it may not contain a line break.
        strings += {"FSTRING_START": 1, "FSTRING_END": -1}.get(tokenize.tok_name[token.type], 0)
        if token.type != tokenize.OP or strings:
            continue
        depth += (token.string in "([{") - (token.string in ")]}")
        if token.string in "([{" or (token.string == "," and depth):
            lines[token.end[0] - 1][token.end[1] - 1] += "\n          "
    return "\n".join("".join(line) for line in lines) + "\n"


def _backslashes(code: str) -> str:
    """A line break with a backslash behind every `=` of an assignment."""
    lines = code.splitlines()
    for node in statements(ast.parse(code)):
        if isinstance(node, ast.Assign) and node.lineno == node.end_lineno:
            line, column = lines[node.lineno - 1], node.value.col_offset
            if line[:column].endswith("= "):
                lines[node.lineno - 1] = line[:column] + "\\\n    " + line[column:]
    return "\n".join(lines) + "\n"


def _semicolons(code: str) -> str:
    """Simple statements that follow one another on one line."""
    lines = code.splitlines()
    joined: list[str] = []
    simple = {
        node.lineno: node.col_offset
        for node in statements(ast.parse(code))
        if not hasattr(node, "body") and node.lineno == node.end_lineno
    }
    last: int | None = None
    for row, line in enumerate(lines, start=1):
        if row in simple and last == simple[row]:
            joined[-1] += "; " + line.strip()
        elif line.strip():
            joined.append(line)
            last = simple.get(row)
    return "\n".join(joined) + "\n"


def _parentheses(code: str) -> str:
    """Superfluous parentheses around the value of every statement that has one."""
    lines = code.splitlines()
    for node in statements(ast.parse(code)):
        value = getattr(node, "value", None)
        if not isinstance(value, ast.expr) or value.lineno != value.end_lineno or value.end_col_offset is None:
            continue
        line = lines[value.lineno - 1]
        if not isinstance(value, ast.Tuple | ast.Starred) or line[value.col_offset] == "(":
            start, end = value.col_offset, value.end_col_offset
            lines[value.lineno - 1] = f"{line[:start]}({line[start:end]}){line[end:]}"
    return "\n".join(lines) + "\n"


LAYOUTS: Mapping[str, Callable[[str], str]] = {
    "comments on lines of their own": _comment_lines,
    "comments at the end of lines": _trailing_comments,
    "tabs and CR LF": _other_white_space,
    "line breaks in brackets": _broken_lines,
    "line breaks after a backslash": _backslashes,
    "semicolons": _semicolons,
    "parentheses": _parentheses,
}
SAME_FINGERPRINTS = ("comments on lines of their own", "comments at the end of lines", "tabs and CR LF")
"""Layouts in which the text of each statement is the same but for white space and comments."""


@cache
def original(program: Program) -> Layout:
    """The program as it is."""
    return Layout(program.code)


def laid_out(program: Program, layout: str) -> Layout:
    """The program in another layout."""
    return Layout(LAYOUTS[layout](program.code))
