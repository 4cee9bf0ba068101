"""TCL102: two tensors that both live on are put on one storage."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import confidence
from torchcopylint.flow.facts import DataShared, UnitFacts

ACROSS_CALLS = True


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report each assignment or constructor that takes over the storage of a live parameter or buffer."""
    for fact in unit.facts:
        if not isinstance(fact, DataShared):
            continue
        names = {"name": fact.target, "result": fact.target, "source": fact.source}
        earlier = (Point(Role.SHARED, fact.first, "shared.first", names),) if fact.first >= 0 else ()
        yield Report(
            site=fact.site,
            points=(*earlier, Point(Role.SHARED, fact.site, f"shared.{fact.form}", names)),
            values=names,
            confidence=confidence(fact.sure),
            variant="conversion" if fact.handed or fact.context else "",
        )
