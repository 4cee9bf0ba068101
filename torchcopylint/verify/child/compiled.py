"""Code of instrumented scripts, kept from one script to the next: most of two scripts of one finding is the same.

Of each statement at module level, the code is kept by its text, its row, and the number of its first statement. What
stands before all of the user's, `fixed` rows of it, is kept as a whole, is not even parsed again, and has no hooks:
what only stands in is not looked at, and what it does happens in the user's statements.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from types import CodeType
from typing import Any

from . import instrument
from .instrument import Numbered, Replacements, Where

_MOST_HEADS = 64
_MOST_KEPT = 1000


@dataclass(frozen=True, slots=True)
class Head:
    """What stands before the user's statements. Its `statements` have no hooks and no marks."""

    code: tuple[CodeType, ...]
    statements: tuple[ast.stmt, ...]
    wheres: tuple[Where, ...]


_NO_HEAD = Head((), (), ())
_heads: dict[str, Head] = {}
_kept: dict[tuple[str, int, int], CodeType] = {}


def head_of(script: str, fixed: int) -> Head:
    """The head of a script. Raises `SyntaxError`."""
    text = "\n".join(script.split("\n", fixed)[:fixed])
    if not fixed or not text.strip():
        return _NO_HEAD
    if text not in _heads:
        if len(_heads) >= _MOST_HEADS:
            _heads.clear()
        numbered = instrument.parse(text)
        code = (compile(numbered.tree, instrument.FILENAME, "exec"),)
        _heads[text] = Head(code, numbered.statements, numbered.wheres)
    return _heads[text]


def parsed(script: str, fixed: int) -> tuple[Head, Numbered]:
    """The head of a script, and the rest of it, numbered with it. Raises `SyntaxError`."""
    head = head_of(script, fixed)
    if head is _NO_HEAD:
        return head, instrument.parse(script)
    rest = instrument.parse("\n" * fixed + script.split("\n", fixed)[-1])
    return head, Numbered(rest.tree, (*head.statements, *rest.statements), (*head.wheres, *rest.wheres))


def code_of(
    head: Head, numbered: Numbered, script: str, kind: str, marks: list[dict[str, Any]], replaced: Replacements
) -> list[CodeType]:
    """The code of a script, to be executed one after the other. `marks` are those that `kind` has altered."""
    lines = script.split("\n")
    changed = {number for mark in marks for number in numbered.numbers(mark)} if kind else set()
    if kind:
        changed |= replaced.keys() | {n for n, s in enumerate(numbered.statements) if getattr(s, "altered", False)}
    numbers = {id(statement): number for number, statement in enumerate(numbered.statements)}
    body, code = numbered.tree.body, list(head.code)
    firsts = [*(numbers[id(statement)] for statement in body), len(numbered.statements)]
    for statement, first, after in zip(body, firsts, firsts[1:], strict=False):
        if any(first <= number < after for number in changed):
            made = instrument.instrumented_one(numbered, statement, numbers, replaced, range(first, after))
            code.append(_compiled(made))
            continue
        row = min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", []))])
        key = ("\n".join(lines[row - 1 : statement.end_lineno]), statement.lineno, first)
        if key not in _kept:
            if len(_kept) >= _MOST_KEPT:
                _kept.clear()
            _kept[key] = _compiled(instrument.instrumented_one(numbered, statement, numbers, {}, range(0)))
        code.append(_kept[key])
    return code


def _compiled(body: list[ast.stmt]) -> CodeType:
    tree = ast.Module(body, [])
    try:
        return compile(tree, instrument.FILENAME, "exec")
    except TypeError:  # a part has no place
        return compile(ast.fix_missing_locations(tree), instrument.FILENAME, "exec")
