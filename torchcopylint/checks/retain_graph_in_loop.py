"""TCL311: `retain_graph=True` in a loop in which nothing else runs over the graph."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Confidence, Role
from torchcopylint.base.report import Point, Report
from torchcopylint.flow.facts import RetainedForNothing, UnitFacts

ACROSS_CALLS = True


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report each backward pass of a loop that retains its graph for no other pass of the same iteration."""
    for fact in unit.facts:
        if isinstance(fact, RetainedForNothing):
            yield Report(
                site=fact.site,
                points=(Point(Role.KEPT, fact.site, "kept.retained", {"name": fact.name}),),
                values={"name": fact.name},
                confidence=Confidence.HIGH if fact.carried else Confidence.MEDIUM,
                variant="carried" if fact.carried else "",
            )
