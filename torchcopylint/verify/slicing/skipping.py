"""The file without the statements that do not run here, where the steps do not stand in them."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from dataclasses import replace

from torchcopylint.verify.observed import Run
from torchcopylint.verify.slicing.cutting import Cutter, listed
from torchcopylint.verify.slicing.plans import Plan
from torchcopylint.verify.slicing.source import cloned


class Skipper:
    """Leaves out more and more: whatever ended a run, wherever it stands. `rows` are those of the steps, which stay."""

    def __init__(self, rows: Collection[int]) -> None:
        self._rows = frozenset(rows)
        self._skipped: dict[int, str] = {}
        self._cut: dict[tuple[ast.stmt, frozenset[int]], list[ast.stmt]] = {}

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
        kept: list[ast.stmt] = []
        for statement in plan.kept:
            last = statement.end_lineno or statement.lineno
            rows = frozenset(row for row in self._skipped if statement.lineno <= row <= last)
            # The same statement each time: what was made of it can then be taken again.
            if rows and (statement, rows) not in self._cut:
                self._cut[statement, rows] = listed(Cutter(self._rows, rows).visit(cloned(statement)))
            kept += self._cut[statement, rows] if rows else [statement]
        told = tuple(f"line {row} is left out: it raised {kind}" for row, kind in sorted(self._skipped.items()))
        return replace(plan, label="what runs of it", kept=tuple(kept), assumed=(*plan.assumed, *told), cut=True)
