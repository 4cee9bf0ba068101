"""What the two rules about memory shared with NumPy have in common."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.report import Report
from torchcopylint.checks._common import (
    DIRECT_FORMS,
    confidence,
    first_reads,
    order_of,
    read_point,
    shared_points,
    suffers_caller,
    written_point,
)
from torchcopylint.flow.facts import Link, ReadAfter, UnitFacts, Write
from torchcopylint.flow.model import How


def reports(unit: UnitFacts, how: How) -> Iterator[Report]:
    """Writes on one side of such a sharing while the other side is read later, or belongs to the caller."""
    owns = first_reads(unit, own=True)
    others = first_reads(unit, own=False)
    for write in unit.writes.values():
        if write.form not in DIRECT_FORMS:
            continue
        reads = [read for read in others.get(write.site, []) if how in read.hows]
        reads = [read for read in reads if not _filled_on_purpose(read, write, owns.get(write.site, []))]
        if reads:
            read = min(reads, key=order_of)
            when = next((link.when for link in read.links if link.when), "")
            points = (*shared_points(read.links), written_point(write), read_point(read, write))
            yield _report(write, read.name, points_of=points, when=when, sures=(write, read))
        elif suffers_caller(unit, write) and write.named and how in {link.how for link in write.chain}:
            links = tuple(reversed([link for link in write.chain if link.how is not None]))
            if any(link.when for link in links) or set(write.storages) & unit.returns_sources:
                continue
            points = (*shared_points(links), written_point(write))
            yield Report(write.site, points, _values(write, write.owner_name, ""), confidence(write.sure), "caller")


def _report(write: Write, other: str, points_of: tuple, when: str, sures: tuple) -> Report:  # type: ignore[type-arg]
    found = confidence(write.sure, *(item.sure for item in sures))
    return Report(write.site, points_of, _values(write, other, when), found, "conditional" if when else "")


def _values(write: Write, other: str, when: str) -> dict[str, str]:
    return {"name": write.root or write.name, "op": write.op, "source": other, "when": when}


def _filled_on_purpose(read: ReadAfter, write: Write, owns: list[ReadAfter]) -> bool:
    """A buffer that was allocated empty is filled through its other side, and only that other side is used then."""
    carried = any(link.site > write.site for link in read.links) or read.element
    return write.blank and not owns and not carried


_ = Link
