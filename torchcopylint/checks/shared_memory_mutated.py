"""TCL407: a tensor is put into a queue between processes, and written before anybody has waited."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import confidence, shared_points, written_since
from torchcopylint.flow.facts import SentAndWritten, UnitFacts

ACROSS_CALLS = True


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report each place where something is put in, once, with the first write behind it."""
    seen: set[int] = set()
    for fact in unit.facts:
        if not isinstance(fact, SentAndWritten) or fact.put in seen:
            continue
        seen.add(fact.put)
        write = unit.writes[fact.site]
        yield Report(
            site=fact.put,
            points=(
                *shared_points(tuple(reversed(fact.links))),
                Point(Role.KEPT, fact.put, "kept.queue", {"name": fact.name, "container": fact.queue}),
                written_since(write, fact.put),
            ),
            values={"name": fact.name, "cause": write.cause or write.op},
            confidence=confidence(fact.sure, write.sure),
        )
