"""TCL609: fractions are written into an integer dtype."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import confidence
from torchcopylint.flow.facts import Truncated, UnitFacts

ACROSS_CALLS = True


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report each such write: stored, the fraction is cut off; computed in place, the write is refused."""
    for fact in unit.facts:
        if not isinstance(fact, Truncated):
            continue
        names = {"name": fact.name, "op": fact.op, "source": fact.dtype}
        made = (Point(Role.HERE, fact.made, "here.integer", {**names, "op": fact.dtype}),) if fact.made >= 0 else ()
        yield Report(
            site=fact.site,
            points=(*made, Point(Role.WRITTEN, fact.site, "written.truncated", names)),
            values=names,
            confidence=confidence(fact.sure),
            variant="raises" if fact.form == "raises" else "",
        )
