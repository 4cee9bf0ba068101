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
    body: list[ast.stmt] = []
    for node in source.tree.body:
        last = node.end_lineno or node.lineno
        held = any(node.lineno <= row <= last for row in rows)
        body.append(rare.visit(cloned(node)) if held and any(map(rare.leads, walked(node))) else node)
    if not rare.assumed:
        return source, ()
    return replace(source, tree=ast.Module(body, source.tree.type_ignores)), tuple(rare.assumed)


class _Rare(Rewriter):
    """Rewrites the conditions that lead to some rows every so many turns."""

    def __init__(self, rows: Collection[int]) -> None:
        self._rows = rows
        self.assumed: list[str] = []

    def leads(self, node: ast.AST) -> bool:
        """Whether a node is a condition with a number of turns, steps below it, and none in its other branch."""
        if not isinstance(node, ast.If) or not any(_is_counted(part) for part in _asked(node.test)):
            return False
        last = node.body[-1].end_lineno or node.body[-1].lineno
        end = node.end_lineno or last
        inside = any(node.lineno < row <= last or row == node.body[0].lineno for row in self._rows)
        return inside and not any(last < row <= end for row in self._rows)

    def visit_If(self, node: ast.If) -> ast.If:
        """Its number becomes one."""
        if self.leads(node):
            for part in filter(_is_counted, _asked(node.test)):
                assert isinstance(part, ast.Compare)
                assert isinstance(part.left, ast.BinOp)
                every = ast.unparse(part.left.right)
                self.assumed.append(f"what line {node.lineno} does every {every} turns, it does in each")
                part.left.right = ast.copy_location(ast.Constant(1), part.left.right)
                part.comparators = [ast.copy_location(ast.Constant(0), part.comparators[0])]
        self.generic_visit(node)
        return node


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
