"""TCL803: a registered parameter is set to a plain tensor."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import confidence
from torchcopylint.flow.facts import ParameterOverwritten, UnitFacts

ACROSS_CALLS = True


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report each field that is a parameter and is set to a tensor that is none."""
    for fact in unit.facts:
        if isinstance(fact, ParameterOverwritten):
            names = {"name": fact.name, "source": fact.source, "when": fact.when}
            yield Report(
                site=fact.site,
                points=(Point(Role.WRITTEN, fact.site, "written.parameter", names),),
                values=names,
                confidence=confidence(fact.sure),
                variant="conditional" if fact.when else "",
            )
