"""TCL708: one buffer is put into a container again and again, and overwritten in between."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Confidence, Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import (
    at_most,
    confidence,
    of_collected,
    order_of,
    read_point,
    shared_points,
    written_since,
)
from torchcopylint.flow.facts import Collected, ReadAfter, UnitFacts

SHORT_LIVED = frozenset({"text", "test"})
"""Reads that show nothing about the elements one by one."""


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report where the buffer is put in, once a place, if the elements are read later or seen from outside."""
    seen: set[int] = set()
    for fact in unit.facts:
        if not isinstance(fact, Collected) or fact.site in seen:
            continue
        write = unit.writes[fact.write]
        read = _first_read(unit, fact)
        if read is None and not fact.outside:
            continue
        seen.add(fact.site)
        yield Report(
            site=fact.site,
            points=(
                *shared_points(tuple(reversed(fact.links))),
                Point(Role.KEPT, fact.site, f"kept.{fact.form}", {"name": fact.name, "container": fact.container}),
                written_since(write, fact.site),
                *((read_point(read, write),) if read is not None else ()),
            ),
            values={"name": fact.name, "cause": write.cause or write.op},
            confidence=at_most(Confidence.HIGH if read is not None else Confidence.MEDIUM, confidence(fact.sure)),
            variant="yielded" if fact.form == "yield" else "",
        )


def _first_read(unit: UnitFacts, fact: Collected) -> ReadAfter | None:
    """Where an element is read that was put in before the write."""
    reads = [
        read
        for read in unit.facts
        if isinstance(read, ReadAfter)
        and not read.own
        and read.write == fact.write
        and read.site not in fact.put
        and read.consumer not in SHORT_LIVED
        and of_collected(read, fact)
    ]
    return min(reads, key=order_of, default=None)
