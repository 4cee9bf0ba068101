"""TCL510: a tensor is resized in place whose memory NumPy owns or looks at, or that requires grad."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import confidence
from torchcopylint.flow.facts import Resized, UnitFacts


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report each such call."""
    for fact in unit.facts:
        if not isinstance(fact, Resized):
            continue
        names = {"name": fact.name, "op": fact.op, "source": fact.other, "result": fact.name, "when": ""}
        shared: tuple[Point, ...] = ()
        if fact.how is not None:
            side = {"result": fact.other, "source": fact.name} if fact.how.value == "numpy" else {}
            shared = (Point(Role.SHARED, fact.since, f"shared.{fact.how.value}", {**names, **side}),)
        yield Report(
            site=fact.site,
            points=(*shared, Point(Role.WRITTEN, fact.site, "written.resized", names)),
            values=names,
            confidence=confidence(fact.sure),
            variant="grad" if fact.how is None else "",
        )
