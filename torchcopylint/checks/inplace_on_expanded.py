"""TCL204: an expanded tensor, in which one memory stands for many elements, is written."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Confidence, Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import at_most, confidence
from torchcopylint.flow.facts import ExpandedWritten, UnitFacts

ACROSS_CALLS = True


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report each write into an expanded tensor; whether its size was one before is not known."""
    for fact in unit.facts:
        if isinstance(fact, ExpandedWritten):
            names = {"name": fact.name, "op": fact.op}
            # What calls have passed was expanded there.
            shared = (Point(Role.SHARED, fact.made, "shared.expanded", names),) if fact.made >= 0 else ()
            yield Report(
                site=fact.site,
                points=(*shared, Point(Role.WRITTEN, fact.site, "written", names)),
                values=names,
                confidence=at_most(Confidence.MEDIUM, confidence(fact.sure)),
                variant="windows" if fact.windows else "part" if fact.part else "",
            )
