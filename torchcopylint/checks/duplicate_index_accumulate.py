"""TCL607: an augmented assignment through an index that names elements more than once."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import confidence
from torchcopylint.flow.facts import AccumulatedOnce, UnitFacts

ACROSS_CALLS = True


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report each such assignment."""
    for fact in unit.facts:
        if isinstance(fact, AccumulatedOnce):
            names = {"name": fact.name, "source": fact.chosen, "op": fact.op}
            yield Report(
                site=fact.site,
                points=(Point(Role.WRITTEN, fact.site, "written.once", names),),
                values=names,
                confidence=confidence(fact.sure),
            )
