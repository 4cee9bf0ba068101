"""TCL509: a view is written to a file, and its whole storage with it."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import confidence
from torchcopylint.flow.facts import UnitFacts, ViewStored


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report each view that is saved."""
    for fact in unit.facts:
        if isinstance(fact, ViewStored):
            names = {"name": fact.name, "source": fact.source, "result": fact.name, "when": ""}
            yield Report(
                site=fact.site,
                points=(
                    Point(Role.SHARED, fact.taken, f"shared.{fact.how.value}", names),
                    Point(Role.SAVED, fact.site, "saved.file", names),
                ),
                values=names,
                confidence=confidence(fact.sure),
            )
