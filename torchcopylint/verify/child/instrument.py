"""Puts an observation before and after every statement of a script, and finds the statements that marks stand on.

Statements are numbered in source order. `_tcl_at_` in a frame is the number of the statement that runs in it: a local
name, because frames of generators interleave and no stack of our own would follow them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

FILENAME = "<script>"
OBSERVER = "_tcl_"
AT = "_tcl_at_"

Replacements = dict[int, list[ast.stmt]]
"""By the number of a statement, what stands in its place."""
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_UNTOUCHED = (ast.Global, ast.Nonlocal, ast.Import, ast.ImportFrom, ast.Pass)


@dataclass(frozen=True, slots=True)
class Where:
    """The rows (1-based, inclusive) of a statement, or of the header of a compound one."""

    row: int
    end_row: int


@dataclass(frozen=True, slots=True)
class Numbered:
    """A script's tree, and each of its statements by number."""

    tree: ast.Module
    statements: tuple[ast.stmt, ...]
    wheres: tuple[Where, ...]

    def numbers(self, mark: dict[str, Any]) -> list[int]:
        """The numbers of the statements that a mark stands on: by rows, and by columns where it has any."""
        inside = [n for n, where in enumerate(self.wheres) if where.row <= mark["row"] <= where.end_row]
        if mark["column"] > 0:
            exact = [n for n in inside if _covers(self.statements[n], self.wheres[n], mark)]
            inside = exact or inside
        narrowest = min((self.wheres[n].end_row - self.wheres[n].row for n in inside), default=0)
        return [n for n in inside if self.wheres[n].end_row - self.wheres[n].row == narrowest]

    def is_made_first(self, number: int) -> bool:
        """Whether a statement is a definition at module level, or in a class there: its head runs unhooked."""
        statement = self.statements[number]
        classes = [node for node in self.tree.body if isinstance(node, ast.ClassDef)]
        there = (self.tree.body, *(node.body for node in classes))
        return isinstance(statement, _DEFINITIONS) and any(statement is node for body in there for node in body)


def parse(script: str) -> Numbered:
    """Number the statements of a script. Raises `SyntaxError`."""
    tree = ast.parse(script, FILENAME)
    statements = list(_statements(tree.body))
    return Numbered(tree, tuple(statements), tuple(_where(statement) for statement in statements))


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    waiting: list[ast.AST] = list(reversed(body))
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.stmt):
            yield node
        for field in reversed(_BLOCKS):
            waiting.extend(reversed(getattr(node, field, [])) if not isinstance(node, ast.expr) else [])


def _where(statement: ast.stmt) -> Where:
    body = getattr(statement, "body", None) or getattr(statement, "cases", None)
    end = statement.end_lineno or statement.lineno
    if body:
        first = body[0]
        start = first.pattern.lineno if isinstance(first, ast.match_case) else first.lineno
        decorated = [d.lineno for d in getattr(first, "decorator_list", [])]
        end = max(statement.lineno, min([start, *decorated]) - 1)
    return Where(statement.lineno, end)


def _covers(statement: ast.stmt, where: Where, mark: dict[str, Any]) -> bool:
    begin = (mark["row"], mark["column"])
    body = getattr(statement, "body", None)
    if body and begin >= (body[0].lineno, body[0].col_offset + 1):
        return False
    end = (mark["end_row"], mark["end_column"])
    last = (where.end_row, (statement.end_col_offset or 0) + 1)
    if where.end_row != statement.end_lineno:
        last = (where.end_row, 10**6)
    return (where.row, statement.col_offset + 1) <= begin and end <= last


def instrumented_one(
    numbered: Numbered, statement: ast.stmt, numbers: dict[int, int], replaced: Replacements, altered: range
) -> list[ast.stmt]:
    """A statement at module level with hooks; statements in `replaced` give way to what stands there.

    A replacement is treated as one statement of the same number. Those of the numbers `altered` may have parts without
    a place.
    """
    made = _block([statement], numbers, replaced)
    for number in altered:
        for part in replaced.get(number, ()):
            _placed(part, numbered.statements[number])
    for number in altered:
        if getattr(numbered.statements[number], "altered", False):
            ast.fix_missing_locations(numbered.statements[number])
    return made


def _placed(made: ast.stmt, near: ast.stmt) -> None:
    """Give what was made for a statement its place, as far as it has none."""
    if not hasattr(made, "lineno"):
        ast.copy_location(made, near)
    ast.fix_missing_locations(made)


def _block(body: list[ast.stmt], numbers: dict[int, int], replaced: Replacements) -> list[ast.stmt]:
    out: list[ast.stmt] = []
    for index, statement in enumerate(body):
        number = numbers[id(statement)]
        docstring = index == 0 and isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
        if docstring or isinstance(statement, _UNTOUCHED):
            out.append(statement)
            continue
        out.extend(_hooked(statement, number, numbers, replaced))
    return out


def _inner(statement: ast.stmt, numbers: dict[int, int], replaced: Replacements) -> None:
    """Instrument the blocks inside a compound statement, in place."""
    if isinstance(statement, ast.ClassDef):
        # Statements of a class body would leave names in the class.
        for inner in statement.body:
            if isinstance(inner, _DEFINITIONS):
                _inner(inner, numbers, replaced)
        return
    for field in _BLOCKS:
        block = getattr(statement, field, None)
        if not block:
            continue
        if field in ("handlers", "cases"):
            for part in block:
                part.body = _block(part.body, numbers, replaced)
        else:
            setattr(statement, field, _block(block, numbers, replaced))


def _hooked(statement: ast.stmt, number: int, numbers: dict[int, int], replaced: Replacements) -> list[ast.stmt]:
    if isinstance(statement, _DEFINITIONS):
        _inner(statement, numbers, replaced)
        return [statement]
    place = _place(statement)
    it = ast.Constant(number, None, **place)
    entered = ast.Call(_method("enter"), [it], [], **place)
    enter = ast.Assign(targets=[_AT], value=entered, type_comment=None, **place)
    bodies = replaced.get(number)
    if isinstance(statement, (ast.For, ast.AsyncFor)):
        if isinstance(statement, ast.For):
            statement.iter = ast.Call(_method("turns"), [it, statement.iter], [], **place)
        _inner(statement, numbers, replaced)
        return [enter, *(bodies or [statement])]
    if isinstance(statement, (ast.While, ast.If)):
        statement.test = ast.Call(_method("tested"), [entered, statement.test], [], **place)
        _inner(statement, numbers, replaced)
        return [enter, statement]
    if hasattr(statement, "body") or hasattr(statement, "cases"):
        _inner(statement, numbers, replaced)
        return [enter, statement]
    if isinstance(statement, ast.Return) and statement.value is not None:
        statement.value = ast.Call(_method("returned"), [it, statement.value], [], **place)
    leave = ast.Expr(ast.Call(_method("leave"), [it], [], **place), **place)
    return [enter, ast.Try(body=bodies or [statement], handlers=[], orelse=[], finalbody=[leave], **place)]


def call(method: str, arguments: list[ast.expr], near: ast.AST) -> ast.expr:
    """A call of a method of the observer, at the place of `near`."""
    return ast.Call(_method(method), arguments, [], **_place(near))


def _place(near: ast.AST) -> dict[str, Any]:
    """Where a node stands, as arguments for others."""
    written = near.__dict__
    return {name: written[name] for name in _PLACE}


@cache
def _method(name: str) -> ast.expr:
    """What is called, one node for all: a call's own place is what tracebacks and frames tell."""
    return ast.Attribute(ast.Name(OBSERVER, ast.Load(), **_FIRST), name, ast.Load(), **_FIRST)


_PLACE = ("lineno", "col_offset", "end_lineno", "end_col_offset")
_FIRST = dict(zip(_PLACE, (1, 0, 1, 0), strict=True))
_AT = ast.Name(AT, ast.Store(), **_FIRST)
