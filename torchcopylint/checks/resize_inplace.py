"""TCL510: what torch and NumPy share is resized in place, or what requires grad."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import confidence
from torchcopylint.flow.facts import Resized, UnitFacts
from torchcopylint.flow.model import How


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report each such call."""
    for fact in unit.facts:
        if not isinstance(fact, Resized):
            continue
        names = {"name": fact.name, "op": fact.op, "source": fact.other, "result": fact.name, "when": ""}
        shared: tuple[Point, ...] = ()
        if fact.how is not None:
            taken_of_it = (fact.how is How.NUMPY) is not fact.array
            side = {"result": fact.other, "source": fact.name} if taken_of_it else {}
            shared = (Point(Role.SHARED, fact.since, f"shared.{fact.how.value}", {**names, **side}),)
        yield Report(
            site=fact.site,
            points=(*shared, Point(Role.WRITTEN, fact.site, "written.resized", names)),
            values=names,
            confidence=confidence(fact.sure),
            variant="grad" if fact.how is None else "array" if fact.array else "",
        )
