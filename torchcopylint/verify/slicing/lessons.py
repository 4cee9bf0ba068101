"""Whether a file shares memory to show it: both sides are printed around a write, and nobody goes on with either."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from typing import TypeGuard

from torchcopylint.verify.slicing.source import bound_by, names_in, walked

_SHOWING = frozenset({"print", "display", "pprint"})
_BODIES = ("body", "orelse", "finalbody")


def is_lesson(tree: ast.Module, written: Collection[int], read: Collection[int]) -> bool:
    """Whether what statements in the rows `written` change is printed in the rows `read`, beside what shares its memory
    or after it was printed before, and neither is used for anything else until it is bound again.

    Nobody goes on with what has changed, and that it has changed stands there for everybody to see.
    """
    if not written or not read:
        return False
    first, last = min(written), max(read)
    body = next((found for found in _bodies(tree) if _has(found, {*written, *read})), None)
    if body is None or first >= min(read):
        return False
    before = [node for node in body if node.lineno < first]
    after = [node for node in body if node.lineno > max(written)]
    shown = {name for node in after if node.lineno in read for name in _shown(node)}
    writes = [node for node in body if node.lineno in written]
    # `made += 1` binds what it writes.
    changed = {name for node in writes for name in (*names_in(node), *bound_by(node))}
    bound = frozenset[str]().union(*(bound_by(node) for node in before))
    sides = (shown | changed) & bound
    if not shown & sides or not all(_only_shown(name, after) for name in sides):
        return False
    together = {name for node in after if node.lineno <= last + 1 for name in _shown(node)} & sides
    return len(together) > 1 or any(_is_shown_since_bound(name, before) for name in shown & sides)


def _bodies(tree: ast.Module) -> Iterator[list[ast.stmt]]:
    for node in walked(tree):
        for name in _BODIES:
            part = getattr(node, name, None)
            if isinstance(part, list) and part and isinstance(part[0], ast.stmt):
                yield part


def _has(body: list[ast.stmt], rows: Collection[int]) -> bool:
    """Whether each row is that of a statement of a body, and not of one inside of that."""
    return set(rows) <= {node.lineno for node in body if not hasattr(node, "body")}


def _shown(node: ast.stmt) -> set[str]:
    """The names of what a statement prints, and does nothing else with."""
    call = node.value if isinstance(node, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id not in _SHOWING:
        return set()
    return {name for argument in call.args for name in names_in(argument)} - {call.func.id}


def _only_shown(name: str, after: list[ast.stmt]) -> bool:
    """Whether statements print what has a name, and no more, until it is bound again, in a block for that block."""
    for node in after:
        if isinstance(node, ast.If | ast.For | ast.While | ast.With | ast.Try) and not _is_in_head(name, node):
            if not all(_only_shown(name, block) for block in _blocks(node)):
                return False
        elif name in bound_by(node):
            return not any(_loads(part) and part.id == name for part in walked(node))
        elif name in names_in(node) and name not in _shown(node):
            return False
    return True


def _blocks(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    for field in _BODIES:
        yield getattr(node, field, [])
    for handler in getattr(node, "handlers", []):
        yield handler.body


def _is_in_head(name: str, node: ast.stmt) -> bool:
    """Whether the part of a compound statement that is no block speaks of a name."""
    inside = {id(part) for block in _blocks(node) for statement in block for part in walked(statement)}
    return any(isinstance(part, ast.Name) and part.id == name for part in walked(node) if id(part) not in inside)


def _loads(part: ast.AST) -> TypeGuard[ast.Name]:
    return isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)


def _is_shown_since_bound(name: str, before: list[ast.stmt]) -> bool:
    """Whether the last statement that binds a name has one after it that prints it."""
    for node in reversed(before):
        if name in _shown(node):
            return True
        if name in bound_by(node):
            return False
    return False
