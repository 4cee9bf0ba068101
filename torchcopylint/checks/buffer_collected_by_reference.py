"""TCL708: one buffer is put into a container again and again, and overwritten in between."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Confidence, Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import (
    at_most,
    confidence,
    first_read_of,
    read_point,
    shared_points,
    written_since,
)
from torchcopylint.flow.facts import Collected, UnitFacts
from torchcopylint.flow.model import Kind


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report where the buffer is put in, once a place, if the elements are read later or seen from outside."""
    seen: set[int] = set()
    for fact in unit.facts:
        if not isinstance(fact, Collected) or fact.site in seen or fact.kind is Kind.STATE_DICT:
            # Snapshots that are collected are a rule of their own: TCL701.
            continue
        write = unit.writes[fact.write]
        read = first_read_of(unit, fact)
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
