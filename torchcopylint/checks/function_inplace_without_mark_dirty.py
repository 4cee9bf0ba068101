"""TCL209: the `forward` of a custom Function writes its input without keeping the rules for that."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import confidence
from torchcopylint.flow.facts import FunctionInput, UnitFacts


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report inputs that are written and returned without a mark, marked and not returned, or views of something,
    and what is marked and no input."""
    for fact in unit.facts:
        if isinstance(fact, FunctionInput):
            names = {"name": fact.name, "op": fact.op, "source": fact.op}
            yield Report(
                site=fact.site,
                points=_points(fact, names),
                values=names,
                confidence=confidence(fact.sure),
                variant="" if fact.why == "unmarked" else fact.why,
            )


def _points(fact: FunctionInput, names: dict[str, str]) -> tuple[Point, ...]:
    if fact.why == "lost":
        earlier = Point(Role.WRITTEN, fact.other, "written.dirty", names)
        return (earlier, Point(Role.WRITTEN, fact.site, "written.marked", names))
    if fact.why == "view":
        earlier = Point(Role.SHARED, fact.other, "shared.dirty", names)
        return (earlier, Point(Role.WRITTEN, fact.site, "written.function", names))
    if fact.why == "temporary":
        return (Point(Role.WRITTEN, fact.site, "written.temporary", names),)
    return (Point(Role.WRITTEN, fact.site, "written.dirty", names),)
