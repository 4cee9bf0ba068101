"""The file without the statements that do not run here, where the steps do not stand in them."""

from __future__ import annotations

import ast
import copy
from collections.abc import Collection, Mapping
from dataclasses import replace

from torchcopylint.verify.observed import Run
from torchcopylint.verify.slicing.plans import Plan
from torchcopylint.verify.slicing.source import bound_by

_BLOCKS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try)


class Skipper:
    """Leaves out more and more: whatever ended a run, wherever it stands. `rows` are those of the steps, which stay."""

    def __init__(self, rows: Collection[int]) -> None:
        self._rows = frozenset(rows)
        self._skipped: dict[int, str] = {}

    def learns(self, run: Run, row_of: Mapping[int, int]) -> bool:
        """Whether a run ended at a statement that can be left out, and will be. `row_of` as for `Learner.after`."""
        if run.failed or not run.ended or not run.raised or run.raised[-1].of_sandbox:
            return False
        error = run.raised[-1]
        rows = [row_of[row] for row in error.rows if row in row_of]
        if not rows or rows[-1] in self._rows or rows[-1] in self._skipped:
            return False
        self._skipped[rows[-1]] = error.kind
        return True

    def plan(self, plan: Plan) -> Plan:
        """The plan without what is left out so far."""
        if not self._skipped:
            return plan
        cutter = _Cutter(self._rows, frozenset(self._skipped))
        kept: list[ast.stmt] = []
        for statement in plan.kept:
            rows = range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)
            if any(row in self._skipped for row in rows):
                found = cutter.visit(copy.deepcopy(statement))
                kept += _listed(found)
            else:
                kept.append(statement)
        told = tuple(f"line {row} is left out: it raised {kind}" for row, kind in sorted(self._skipped.items()))
        return replace(plan, label="what runs of it", kept=tuple(kept), assumed=(*plan.assumed, *told), cut=True)


class _Cutter(ast.NodeTransformer):
    """Takes statements out by their rows. What they would have bound is something that takes everything."""

    def __init__(self, steps: frozenset[int], rows: frozenset[int]) -> None:
        self._steps = steps
        self._rows = rows

    def visit(self, node: ast.AST) -> ast.AST | list[ast.stmt] | None:
        """The statement, what takes its place, or `None`."""
        if isinstance(node, ast.stmt) and node.lineno in self._rows and not self._holds_step(node):
            return _instead(node)
        if isinstance(node, _BLOCKS) and node.lineno in self._rows:
            # A block with a step in it stays, without what cannot be asked.
            inner: list[ast.stmt] = [*getattr(node, "body", []), *getattr(node, "orelse", [])]
            if isinstance(node, ast.If):
                inner = node.body if any(map(self._holds_step, node.body)) else node.orelse
            return [part for one in inner for part in _listed(self.visit(one))]
        self.generic_visit(node)
        body = getattr(node, "body", None)
        if body == []:
            body.append(ast.copy_location(ast.Pass(), node))
        return node

    def _holds_step(self, node: ast.stmt) -> bool:
        first, last = node.lineno, node.end_lineno or node.lineno
        return any(first <= row <= last for row in self._steps)


def _listed(found: ast.AST | list[ast.stmt] | None) -> list[ast.stmt]:
    return found if isinstance(found, list) else [found] if isinstance(found, ast.stmt) else []


def _instead(node: ast.stmt) -> list[ast.stmt]:
    """What takes the place of a statement that does not run."""
    names = sorted(bound_by(node)) if isinstance(node, ast.Assign | ast.AnnAssign | ast.With | ast.For | ast.If) else []
    made = []
    for name in names:
        call = ast.Call(ast.Name("Anything", ast.Load()), [ast.Constant(name)], [])
        made.append(ast.Assign([ast.Name(name, ast.Store())], call, lineno=node.lineno))
    return [ast.fix_missing_locations(ast.copy_location(part, node)) for part in made]
