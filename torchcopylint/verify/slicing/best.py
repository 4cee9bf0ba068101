"""Where a loop keeps the best of many rounds: some round is no better, which a few rounds of a run need not show."""

from __future__ import annotations

import ast
from collections.abc import Collection
from dataclasses import replace

from torchcopylint.verify.slicing.plans import Plan
from torchcopylint.verify.slicing.source import Rewriter, bound_by, cloned, names_in, nodes_of, walked

_ORDERED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


class Best:
    """The conditions under which the best so far is replaced, with some of the steps below them, and some not. `rows`
    are those of the steps."""

    def __init__(self, tree: ast.Module, rows: Collection[int]) -> None:
        self._rows = frozenset(
            node.lineno
            for node in nodes_of(tree)
            if isinstance(node, ast.If) and _parts_steps(node, rows) and _replaces_best(node)
        )
        self._made: dict[ast.stmt, ast.stmt] = {}

    def once(self, plan: Plan) -> Plan | None:
        """The plan with the first of many rounds as the best; `None` if it has that, or keeps no best."""
        rows = [row for row in sorted(self._rows) if any(_spans(node, row) for node in plan.kept)]
        if not rows or plan.once:
            return None
        told = tuple(f"the condition of line {row} is met once, as no later round is better" for row in rows)
        kept = tuple(self._limited(node) if any(_spans(node, row) for row in rows) else node for node in plan.kept)
        return replace(plan, kept=kept, assumed=(*plan.assumed, *told), cut=True, once=True)

    def _limited(self, node: ast.stmt) -> ast.stmt:
        """The same statement each time: what was made of it can then be taken again."""
        if node not in self._made:
            self._made[node] = _Limiter(self._rows).visit(cloned(node))
        return self._made[node]


class _Limiter(Rewriter):
    def __init__(self, rows: frozenset[int]) -> None:
        self._rows = rows

    def visit_If(self, node: ast.If) -> ast.If:
        """Some conditions are met once."""
        self.generic_visit(node)
        if node.lineno in self._rows:
            first = ast.Call(ast.Name("first_time", ast.Load()), [ast.Constant(node.lineno)], [])
            both = ast.copy_location(ast.BoolOp(ast.And(), [node.test, first]), node.test)
            node.test = ast.fix_missing_locations(both)
        return node


def _parts_steps(node: ast.If, rows: Collection[int]) -> bool:
    """Whether some steps stand under a condition, and some do not."""
    last = node.body[-1].end_lineno or node.body[-1].lineno
    inside = [row for row in rows if node.body[0].lineno <= row <= last]
    return 0 < len(inside) < len(set(rows))


def _replaces_best(node: ast.If) -> bool:
    """Whether a condition compares something with what is replaced under it."""
    compared = {
        name
        for part in walked(node.test)
        if isinstance(part, ast.Compare) and isinstance(part.ops[0], _ORDERED)
        for name in _names(part)
    }
    replaced: set[str] = set()
    for statement in node.body:
        replaced |= bound_by(statement)
        replaced |= {
            ast.unparse(part)
            for part in walked(statement)
            if isinstance(part, ast.Attribute) and isinstance(part.ctx, ast.Store)
        }
    return bool(compared & replaced)


def _names(node: ast.expr) -> set[str]:
    return {*names_in(node), *(ast.unparse(part) for part in walked(node) if isinstance(part, ast.Attribute))}


def _spans(node: ast.stmt, row: int) -> bool:
    return node.lineno <= row <= (node.end_lineno or node.lineno)
