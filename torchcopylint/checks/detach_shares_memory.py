"""TCL303: the result of `detach()` is written, and its source changes with it."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.report import Report
from torchcopylint.checks._common import (
    ARRAY_HOWS,
    DIRECT_FORMS,
    confidence,
    first_of_each,
    first_reads,
    once_a_sharing,
    order_of,
    read_point,
    shared_points,
    suffers_caller,
    written_point,
)
from torchcopylint.flow.facts import ReadAfter, UnitFacts, Write
from torchcopylint.flow.model import How


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report writes through a named `detach()` whose source is read later, or belongs to the caller."""
    others = first_reads(unit, own=False)
    found = []
    reaching = []
    for write in unit.writes.values():
        hows = {link.how for link in write.chain}
        if How.DETACH not in hows or hows & ARRAY_HOWS or write.form not in DIRECT_FORMS:
            continue
        reads = [read for read in others.get(write.site, []) if _below_detach(read)]
        if reads:
            found.append((write, min(reads, key=order_of)))
        elif write.named and suffers_caller(unit, write) and not set(write.storages) & unit.returns_sources:
            links = tuple(reversed([link for link in write.chain if link.how is not None]))
            reaching.append((write, links))
    for write, links in first_of_each(reaching):
        points = (*shared_points(links), written_point(write))
        yield Report(write.site, points, _values(write, write.owner_name), confidence(write.sure))
    for write, read in once_a_sharing(found):
        points = (*shared_points(read.links), written_point(write), read_point(read, write))
        yield Report(write.site, points, _values(write, read.name), confidence(write.sure, read.sure))


def _below_detach(read: ReadAfter) -> bool:
    return any(link.how is How.DETACH for link in read.below_written) and not read.hows & ARRAY_HOWS and read.certain


def _values(write: Write, source: str) -> dict[str, str]:
    return {"name": write.root or write.name, "op": write.op, "source": source}
