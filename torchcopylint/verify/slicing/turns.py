"""What happens every so many turns happens in each: a run has few of them."""

from __future__ import annotations

import ast
from collections.abc import Collection
from dataclasses import replace

from torchcopylint.verify.slicing.source import Rewriter, Source, cloned, walked


def often(source: Source, rows: Collection[int]) -> tuple[Source, tuple[str, ...]]:
    """The file with one in place of the number of turns between two in which steps in some rows are got to, where that
    is a number, and what was assumed for that. It is the same file where there is none."""
    rare = _Rare(rows)
    held = [part for part in source.tree.body if any(part.lineno <= row <= _end(part) for row in rows)]
    leading = [node for part in held for node in _conditions(part) if rare.leads(node)]
    if not leading:
        return source, ()
    rare.asked = {ast.dump(part) for node in leading for part in _asked(node.test) if _is_counted(part)}
    body = [
        rare.visit(cloned(part)) if any(map(rare.is_rare, _conditions(part))) else part for part in source.tree.body
    ]
    return replace(source, tree=ast.Module(body, source.tree.type_ignores)), tuple(rare.assumed)


class _Rare(Rewriter):
    """Rewrites the conditions that lead to some rows every so many turns, and those that ask the same elsewhere: what
    is made every third turn is used every third turn. `asked` are those, as they are dumped."""

    def __init__(self, rows: Collection[int]) -> None:
        self._rows = rows
        self.asked: set[str] = set()
        self.assumed: list[str] = []

    def is_rare(self, node: ast.If) -> bool:
        """Whether a condition asks what one asks that leads to the steps, and has none in its other branch."""
        asks = any(_is_counted(part) and ast.dump(part) in self.asked for part in _asked(node.test))
        return asks and not any(_end(node.body[-1]) < row <= _end(node) for row in self._rows)

    def leads(self, node: ast.If) -> bool:
        """Whether a condition asks for a number of turns, with steps below it, and none in its other branch."""
        if not any(_is_counted(part) for part in _asked(node.test)):
            return False
        last, end = _end(node.body[-1]), _end(node)
        inside = any(node.lineno < row <= last or row == node.body[0].lineno for row in self._rows)
        return inside and not any(last < row <= end for row in self._rows)

    def visit_If(self, node: ast.If) -> ast.If:
        """Its number becomes one."""
        if self.is_rare(node):
            for part in [part for part in _asked(node.test) if ast.dump(part) in self.asked]:
                assert isinstance(part, ast.Compare)
                assert isinstance(part.left, ast.BinOp)
                every = ast.unparse(part.left.right)
                self.assumed.append(f"what line {node.lineno} does every {every} turns, it does in each")
                part.left.right = ast.copy_location(ast.Constant(1), part.left.right)
                part.comparators = [ast.copy_location(ast.Constant(0), part.comparators[0])]
        self.generic_visit(node)
        return node


def _conditions(part: ast.stmt) -> list[ast.If]:
    return [node for node in walked(part) if isinstance(node, ast.If)]


def _end(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


def _asked(test: ast.expr) -> list[ast.expr]:
    """The parts of a condition that all have to be met."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return [part for value in test.values for part in _asked(value)]
    return [test]


def _is_counted(part: ast.expr) -> bool:
    """Whether a part of a condition asks for a certain remainder of a division by a number."""
    if not isinstance(part, ast.Compare) or len(part.ops) != 1 or not isinstance(part.ops[0], ast.Eq):
        return False
    whole, rest = part.left, part.comparators[0]
    if not isinstance(whole, ast.BinOp) or not isinstance(whole.op, ast.Mod):
        return False
    return all(isinstance(side, ast.Constant) and type(side.value) is int for side in (whole.right, rest))
