"""TCL102: two tensors that both live on are put on one storage."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import (
    DIRECT_FORMS,
    confidence,
    first_reads,
    order_of,
    read_point,
    shared_point,
    written_point,
)
from torchcopylint.flow.facts import DataShared, ReadAfter, UnitFacts, Write
from torchcopylint.flow.model import How

ACROSS_CALLS = True
_WRITES = DIRECT_FORMS | {"step", "load"}
_WHOLE = frozenset({None, How.ASSIGNED, How.DATA, How.DETACH})
"""Ways to come to share all of a storage."""


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
            variant="conversion" if fact.handed or fact.context else "still" if fact.still else "",
        )
    told = {fact.site for fact in unit.facts if isinstance(fact, DataShared)}
    for write, read in _put_on_whole(unit):
        link = next(one for one in read.links if one.how is How.ASSIGNED)
        if link.site in told:
            continue
        told.add(link.site)
        points = (shared_point(link), written_point(write), read_point(read, write))
        values = {"name": link.result, "result": link.result, "source": link.source}
        yield Report(link.site, points, values, confidence(write.sure, read.sure))


def _put_on_whole(unit: UnitFacts) -> Iterator[tuple[Write, ReadAfter]]:
    """Where one of two tensors of which the one was given all of the storage of the other is written, and the other is
    read. What is given parts of one large tensor is to follow it."""
    for number, reads in sorted(first_reads(unit, own=False).items()):
        write = unit.writes[number]
        met = [read for read in reads if read.certain and How.ASSIGNED in read.hows <= _WHOLE and not read.asked]
        if met and write.form in _WRITES:
            yield write, min(met, key=order_of)
