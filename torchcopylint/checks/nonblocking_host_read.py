"""TCL406: a copy to the host is read while it is still under way."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Confidence, Role
from torchcopylint.base.report import Point, Report
from torchcopylint.flow.facts import ReadInFlight, UnitFacts
from torchcopylint.flow.model import ANY_ELEMENT

ACROSS_CALLS = True


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report the first read of each such copy. That the source is on a device is not proven: the call says so."""
    first: dict[int, ReadInFlight] = {}
    for fact in unit.facts:
        if isinstance(fact, ReadInFlight):
            known = first.get(fact.copy)
            if known is None or _order(fact) < _order(known):
                first[fact.copy] = fact
    for fact in first.values():
        later = "" if fact.site >= fact.copy or fact.elsewhere else ".next"
        name = fact.name.replace(ANY_ELEMENT, "") or "(...)"
        yield Report(
            site=fact.site,
            points=(
                Point(Role.MOVED, fact.copy, "moved.host", {"source": fact.source}),
                Point(Role.READ, fact.site, "read.in_flight" + later, {"name": name}),
            ),
            values={"name": name, "source": fact.source},
            confidence=Confidence.MEDIUM,
        )


def _order(fact: ReadInFlight) -> tuple[bool, bool, int]:
    return (fact.elsewhere, fact.site < fact.copy, fact.site)
