"""TCL308: `.grad` of a tensor that is not a leaf."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import confidence
from torchcopylint.flow.facts import GradientRead, UnitFacts

ACROSS_CALLS = True


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report each read of `.grad` on a computed tensor that retains none.

    Where it is printed, that there is none is what is printed, beside the warning that torch gives.
    """
    for fact in unit.facts:
        if isinstance(fact, GradientRead):
            yield Report(
                site=fact.site,
                points=(Point(Role.READ, fact.site, "read.grad", {"name": fact.name}),),
                values={"name": fact.name},
                confidence=confidence(fact.sure),
                variant="shown" if fact.shown else "",
            )
