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
            names = {"name": fact.name}
            told = (Point(Role.HERE, fact.told, "here.computed", names),) if fact.told >= 0 else ()
            yield Report(
                site=fact.site,
                points=(*told, Point(Role.READ, fact.site, "read.grad", names)),
                values=names,
                confidence=confidence(fact.sure),
                variant="shown" if fact.shown else "",
            )
