"""TCL805: an optimizer is given a parameter twice."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import confidence
from torchcopylint.flow.facts import ParameterTwice, UnitFacts

INTO_HELPERS = True
ACROSS_CALLS = True


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report each optimizer that is given some parameter in two groups, or twice in one."""
    for fact in unit.facts:
        if isinstance(fact, ParameterTwice):
            names = {"name": fact.name, "source": fact.source}
            yield Report(
                site=fact.site,
                points=(Point(Role.KEPT, fact.site, "kept.twice", names),),
                values=names,
                confidence=confidence(fact.sure),
                variant="" if fact.across else "one-group",
            )
