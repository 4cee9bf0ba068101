"""TCL305: a value goes from one iteration into the next with a graph that backward has freed."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import confidence
from torchcopylint.flow.facts import BackwardAgain, UnitFacts

INTO_HELPERS = True
ACROSS_CALLS = True


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report each name that carries a freed graph into the next turn of a loop, where backward runs over it again."""
    for fact in unit.facts:
        if isinstance(fact, BackwardAgain) and fact.carrier:
            names = {"name": fact.carrier, "source": fact.name}
            freed = Point(Role.DISCARDED, fact.freed, "discarded.saved", names)
            kept = Point(Role.KEPT, fact.kept, "kept.carried", names)
            again = Point(Role.READ, fact.site, "read.again.next", {"name": fact.name})
            yield Report(
                site=fact.kept,
                points=(*sorted((freed, kept), key=lambda point: point.site), again),
                values=names,
                confidence=confidence(fact.sure),
            )
