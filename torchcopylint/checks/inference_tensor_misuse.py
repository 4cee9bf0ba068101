"""TCL207: a tensor made in inference mode is written, or kept for backward, outside of it."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import confidence
from torchcopylint.flow.facts import InferenceMisused, UnitFacts

ACROSS_CALLS = True


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report each write and each operation that would have to keep an inference tensor."""
    for fact in unit.facts:
        if isinstance(fact, InferenceMisused):
            names = {"name": fact.name, "op": fact.op}
            # What calls have passed was made there.
            shared = (Point(Role.SHARED, fact.made, "shared.inference", names),) if fact.made >= 0 else ()
            yield Report(
                site=fact.site,
                points=(*shared, Point(Role.HERE, fact.site, f"here.inference_{fact.what}", names)),
                values=names,
                confidence=confidence(fact.sure),
                variant="saved" if fact.what == "saved" else "",
            )
