"""TCL306: what outlives a call or an iteration holds a value with its graph."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import at_most, confidence, mode_is_on
from torchcopylint.flow.facts import Accumulated, FieldKeepsGraph, UnitFacts

ACROSS_CALLS = True


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report fields that go from call to call with a graph, and tables that keep the graphs of a loop's iterations."""
    for fact in unit.facts:
        if isinstance(fact, FieldKeepsGraph):
            yield from _of_field(unit, fact)
        elif isinstance(fact, Accumulated) and fact.form == "item":
            names = {"name": fact.name, "source": fact.source}
            points = (
                Point(Role.READ, fact.ran, "read.run", names),
                Point(Role.KEPT, fact.site, "kept.table", names),
            )
            ordered = tuple(sorted(points, key=lambda point: point.site))
            yield Report(fact.site, ordered, names, confidence(fact.sure), "item")


def _of_field(unit: UnitFacts, fact: FieldKeepsGraph) -> Iterator[Report]:
    mode = mode_is_on(unit, fact.assumed, local=False)
    if mode is None:
        return
    names = {"name": fact.name, "source": fact.source}
    points = [Point(Role.KEPT, fact.site, f"kept.{fact.form}", names)]
    if fact.ran >= 0:
        points.append(Point(Role.READ, fact.ran, "read.run", names))
    yield Report(
        site=fact.site,
        points=tuple(sorted(points, key=lambda point: point.site)),
        values=names,
        confidence=at_most(mode, confidence(fact.sure)),
        variant="written" if fact.form == "written" else "",
    )
