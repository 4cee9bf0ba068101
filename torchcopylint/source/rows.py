"""On which row each statement of a module starts, without writing the module out.

Statements start on logical lines, in the order in which they stand in the tree. So the logical lines of the text, which
a scan for strings, comments and brackets finds, are dealt out to the statements and clauses of the tree. If there are
not as many of the one as of the other, somebody has misread the text, and nothing is said.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

import libcst as cst

from torchcopylint.source.bounds import STRINGS
from torchcopylint.source.text import split_lines

# Stands for the end of a line inside a logical line.
_JOINED = "\1"
_CONTINUED = re.compile(r"\\(?:\r\n|\r|\n)")
_LINE_END = re.compile(r"\r\n|\r|\n")
_BLANK = " \t\f" + _JOINED


class Place(NamedTuple):
    """A statement or clause: the row that its node starts on, leading comments and blank lines included, and the
    indentation of its block."""

    node: cst.CSTNode
    row: int
    indents: tuple[str, ...]
    is_elif: bool = False


def places(text: str, module: cst.Module) -> Mapping[int, Place]:
    """The places of statements and clauses by the `id()` of their node, and by that of each expression in the head of a
    compound one; empty if text and tree do not match. Linear in both."""
    rows = _logical_rows(text)
    dealer = _Dealer(module, rows)
    try:
        for statement in module.body:
            dealer.statement(statement, ())
    except IndexError:
        return {}
    return dealer.places if dealer.position == len(rows) else {}


def _logical_rows(text: str) -> list[int]:
    """The 1-based rows on which logical lines start."""
    found = []
    row, depth = 1, 0
    for line in split_lines(_CONTINUED.sub(_JOINED, STRINGS.sub(_as_one_line, text.replace(_JOINED, " ")))):
        if not depth and line.strip(_BLANK):
            found.append(row + len(line) - len(line.lstrip(_JOINED)))
        depth += line.count("(") + line.count("[") + line.count("{")
        depth -= line.count(")") + line.count("]") + line.count("}")
        row += 1 + line.count(_JOINED)
    return found


def _as_one_line(match: re.Match[str]) -> str:
    token = match[0]
    if token[0] == "#":
        return ""
    # A string that ends in the middle of a line must leave something there.
    return "s" + _JOINED * len(_LINE_END.findall(token)) if "\n" in token or "\r" in token else "s"


class _Dealer:
    """Deals logical lines out to statements in order."""

    def __init__(self, module: cst.Module, rows: list[int]) -> None:
        self.indent = module.default_indent
        self.rows = rows
        self.position = 0
        self.places: dict[int, Place] = {}

    def statement(self, node: cst.CSTNode, indents: tuple[str, ...]) -> None:
        """Give a statement its lines, and what stands in it. Raises `IndexError` if there are no more lines."""
        if isinstance(node, cst.SimpleStatementLine):
            self._next(node, indents)
        elif isinstance(node, cst.FunctionDef | cst.ClassDef):
            place = self._next(node, indents, *(decorator.decorator for decorator in node.decorators), node.name)
            self.position += len(node.decorators)
            if isinstance(node, cst.ClassDef):
                self.places.update((id(base.value), place) for base in node.bases)
            self._suite(node.body, indents)
        elif isinstance(node, cst.If):
            self._conditions(node, indents)
        elif isinstance(node, cst.For | cst.While):
            heads = (node.iter, node.target) if isinstance(node, cst.For) else (node.test,)
            self._next(node, indents, *heads)
            self._suite(node.body, indents)
            self._clause(node.orelse, indents)
        elif isinstance(node, cst.With):
            self._next(node, indents, *(item.item for item in node.items))
            self._suite(node.body, indents)
        elif isinstance(node, cst.Try | cst.TryStar):
            self._next(node, indents)
            self._suite(node.body, indents)
            for handler in node.handlers:
                self._next(handler, indents, *((handler.type,) if handler.type is not None else ()))
                self._suite(handler.body, indents)
            self._clause(node.orelse, indents)
            self._clause(node.finalbody, indents)
        elif isinstance(node, cst.Match):
            self._next(node, indents, node.subject)
            inner = (*indents, self.indent if node.indent is None else node.indent)
            for case in node.cases:
                self._next(case, inner, case.pattern)
                self._suite(case.body, inner)

    def _conditions(self, node: cst.If, indents: tuple[str, ...]) -> None:
        """A chain of `elif` is walked, not recursed into."""
        current: cst.If | cst.Else | None = node
        while isinstance(current, cst.If):
            self._next(current, indents, current.test, is_elif=current is not node)
            self._suite(current.body, indents)
            current = current.orelse
        self._clause(current, indents)

    def _clause(self, node: cst.Else | cst.Finally | None, indents: tuple[str, ...]) -> None:
        if node is not None:
            self._next(node, indents)
            self._suite(node.body, indents)

    def _suite(self, suite: cst.BaseSuite, indents: tuple[str, ...]) -> None:
        if isinstance(suite, cst.IndentedBlock):
            inner = (*indents, self.indent if suite.indent is None else suite.indent)
            for statement in suite.body:
                self.statement(statement, inner)

    def _next(self, node: cst.CSTNode, indents: tuple[str, ...], *heads: cst.CSTNode, is_elif: bool = False) -> Place:
        leading = len(getattr(node, "leading_lines", ()))
        place = Place(node, self.rows[self.position] - leading, indents, is_elif)
        self.position += 1
        for known in (node, *heads):
            self.places[id(known)] = place
        return place
