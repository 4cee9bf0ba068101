"""TCL404: a tensor is made of an array that no tensor can be a window on: reversed, or read-only."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import confidence
from torchcopylint.flow.facts import LayoutRefused, UnitFacts

ACROSS_CALLS = True


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report each such array at the call that makes a tensor of it."""
    for fact in unit.facts:
        if isinstance(fact, LayoutRefused):
            name = fact.name if fact.name != "..." else "(...)"
            shared = Point(Role.SHARED, fact.since, f"shared.{fact.form}", {"result": name})
            read = Point(Role.READ, fact.site, f"read.{fact.form}", {"name": name})
            yield Report(
                site=fact.site,
                points=(*((shared,) if fact.since >= 0 else ()), read),
                values={"name": name, "op": fact.op},
                confidence=confidence(fact.sure),
                variant="readonly" if fact.form == "readonly" else "",
            )
