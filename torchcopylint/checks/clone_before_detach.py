"""TCL901: `x.clone().detach()`."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import confidence
from torchcopylint.flow.facts import Redundant, UnitFacts


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report each chain in which the graph of the clone is made to be thrown away."""
    for fact in unit.facts:
        if isinstance(fact, Redundant) and fact.form == "order":
            name = fact.name if fact.name != "..." else "(...)"
            yield Report(
                site=fact.site,
                points=(Point(Role.CUT, fact.site, "cut.clone", {}),),
                values={"name": name},
                confidence=confidence(fact.sure),
            )
