"""TCL304: a sum or a list keeps the graph of every iteration."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Confidence, Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import at_most, confidence, mode_is_on
from torchcopylint.flow.facts import Accumulated, UnitFacts

INTO_HELPERS = True
ACROSS_CALLS = True


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report each addition of a value with its graph to what outlives the iteration, if backward has used the graph."""
    for fact in unit.facts:
        if isinstance(fact, Accumulated) and fact.form in ("figure", "figures"):
            yield from _figure(unit, fact)
        elif isinstance(fact, Accumulated) and fact.form != "item":
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


def _figure(unit: UnitFacts, fact: Accumulated) -> Iterator[Report]:
    """A sum or list of which nobody uses the graph: in an evaluation that records, say."""
    mode = mode_is_on(unit, fact.assumed, local=False)
    if mode is Confidence.LOW and unit.recorded_elsewhere:
        mode = Confidence.MEDIUM
    if mode is None or mode is Confidence.LOW:
        return
    names = {"name": fact.name, "source": fact.source}
    points = [Point(Role.KEPT, fact.site, "kept.sum" if fact.form == "figure" else "kept.collected", names)]
    if fact.ran >= 0:
        points.append(Point(Role.HERE, fact.ran, f"here.{fact.form}", names))
    yield Report(fact.site, tuple(points), names, at_most(mode, confidence(fact.sure)), fact.form)
