"""TCL508: `view` of a transposed tensor."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import confidence
from torchcopylint.flow.facts import UnitFacts, ViewImpossible

ACROSS_CALLS = True


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report each `view` that joins dimensions which lie apart in memory."""
    for fact in unit.facts:
        if isinstance(fact, ViewImpossible):
            names = {"name": fact.name}
            yield Report(
                site=fact.site,
                points=(
                    Point(Role.HERE, fact.made, "here.reordered", names),
                    Point(Role.HERE, fact.site, "here.view", names),
                ),
                values=names,
                confidence=confidence(fact.sure),
            )
