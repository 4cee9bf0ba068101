"""TCL208: `out=` is an operand that the operation still reads when it has begun to write."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import confidence
from torchcopylint.flow.facts import OutAliases, UnitFacts

ACROSS_CALLS = True


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report each call whose `out=` is such an operand."""
    for fact in unit.facts:
        if isinstance(fact, OutAliases):
            names = {"name": fact.name, "op": fact.op}
            point = Point(Role.WRITTEN, fact.site, "written.operand", names)
            yield Report(fact.site, (point,), names, confidence(fact.sure))
