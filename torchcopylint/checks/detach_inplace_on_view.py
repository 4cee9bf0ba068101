"""TCL302: `detach_()` on a view raises."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import confidence
from torchcopylint.flow.facts import DetachedInPlace, UnitFacts

ACROSS_CALLS = True


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report `detach_()` on what is surely a view."""
    for fact in unit.facts:
        if isinstance(fact, DetachedInPlace) and fact.view >= 0:
            names = {"name": fact.name, "source": fact.base}
            yield Report(
                site=fact.site,
                points=(
                    Point(Role.SHARED, fact.view, "shared.view", {"result": fact.name, "source": fact.base}),
                    Point(Role.CUT, fact.site, "cut.view", names),
                ),
                values=names,
                confidence=confidence(fact.sure),
            )
