"""TCL802: parameters are replaced after the optimizer was built."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import confidence
from torchcopylint.flow.facts import OptimizerStale, UnitFacts


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report each part that an optimizer does not know, where that optimizer goes on to be used; once a part."""
    seen: set[int] = set()
    for fact in unit.facts:
        if not isinstance(fact, OptimizerStale) or fact.loaded or fact.stored in seen:
            continue
        seen.add(fact.stored)
        names = {"name": fact.name, "optimizer": fact.optimizer}
        used = "read.optimizer_used" if fact.optimizer else "read.optimizer_returned"
        later = "" if fact.site > fact.stored else ".next"
        yield Report(
            site=fact.stored,
            points=(
                Point(Role.READ, fact.built, "read.parameters", names),
                Point(Role.KEPT, fact.stored, "kept.part", names),
                *((Point(Role.READ, fact.site, used + later, names),) if fact.site != fact.stored else ()),
            ),
            values=names,
            confidence=confidence(fact.sure),
        )
