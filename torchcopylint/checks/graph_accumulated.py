"""TCL304: a sum or a list keeps the graph of every iteration."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import confidence
from torchcopylint.flow.facts import Accumulated, UnitFacts


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report each addition of a value with its graph to what outlives the iteration, if backward has used the graph."""
    for fact in unit.facts:
        if isinstance(fact, Accumulated) and fact.form != "item":
            names = {"name": fact.name, "source": fact.source}
            points = [
                Point(Role.READ, fact.ran, "read.run", names),
                Point(Role.KEPT, fact.site, f"kept.{fact.form}", names),
            ]
            yield Report(
                site=fact.site,
                points=tuple(sorted(points, key=lambda point: point.site)),
                values=names,
                confidence=confidence(fact.sure),
                variant="collected" if fact.form == "collected" else "",
            )
