"""TCL503: a function writes its argument, to return it or what it computes of it, and a caller still uses that."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import caller_suffers, confidence, written_point
from torchcopylint.flow.facts import UnitFacts

OF_GUESTS = True


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report the first write of each parameter for which there is such a caller."""
    for fact in caller_suffers(unit, in_network=False):
        write = unit.writes[fact.site]
        names = {"name": fact.name, "source": fact.passed, "op": fact.op, "target": unit.name, "result": fact.name}
        yield Report(
            site=fact.site,
            points=(
                Point(Role.SHARED, fact.call, "shared.passed", names),
                written_point(write),
                Point(Role.READ, fact.read, "read.caller", {"name": fact.passed}),
            ),
            values={**names, "name": fact.second or fact.name},
            confidence=confidence(fact.sure),
            variant="second" if fact.second else "worked" if fact.worked else "",
        )
