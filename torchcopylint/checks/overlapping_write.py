"""TCL506: an operation reads one part of a tensor while it writes another that overlaps with it."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import confidence, shared_points
from torchcopylint.flow.facts import OverlappingWrite, UnitFacts

ACROSS_CALLS = True


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report each such operation."""
    for fact in unit.facts:
        if isinstance(fact, OverlappingWrite):
            names = {"name": fact.name, "source": fact.source, "op": fact.op}
            yield Report(
                site=fact.site,
                points=(
                    *shared_points(fact.links),
                    Point(Role.WRITTEN, fact.site, "written.overlapping", names),
                ),
                values=names,
                confidence=confidence(fact.sure),
            )
