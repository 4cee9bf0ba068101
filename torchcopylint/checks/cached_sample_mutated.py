"""TCL504: a dataset edits the sample that it keeps, each time the sample is fetched."""

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
    written_point,
)
from torchcopylint.flow.facts import Link, ReadAfter, UnitFacts, Write
from torchcopylint.flow.model import FIELD, How, Kind

FETCHING = frozenset({"__getitem__", "__getitems__", "get"})
"""Methods that hand out a sample and leave the data as it is."""
PARTS = frozenset({How.INDEX, How.ROW})


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report the first write into each stored sample that is handed out afterwards."""
    if unit.class_number < 0 or unit.name not in FETCHING or unit.class_kind is Kind.MODULE:
        return
    reads_after = {own: first_reads(unit, own=own) for own in (True, False)}
    seen: set[str] = set()
    for site, write in sorted(unit.writes.items()):
        links = tuple(link for link in write.chain if link.how is not None)
        reads = reads_after[True].get(site, []) + reads_after[False].get(site, [])
        stored = write.held or write.owner_name
        # What a helper writes and returns, the next fetch reads, whether or not this one looks at it again.
        used = bool(reads) or (write.form == "call" and not write.dropped)
        if not _edits_a_sample(write, links) or not used or stored in seen:
            continue
        seen.add(stored)
        handed_out = [read for read in reads if read.consumer == "return"]
        yield _report(write, links, min(handed_out or reads, key=order_of, default=None))


def _report(write: Write, links: tuple[Link, ...], read: ReadAfter | None) -> Report:
    return Report(
        site=write.site,
        points=(
            *(shared_points(tuple(reversed(links))) if not write.held else ()),
            written_point(write),
            *((read_point(read, write),) if read is not None else ()),
        ),
        values={"name": write.root or write.name, "op": write.op, "source": write.held or write.owner_name},
        confidence=confidence(write.sure),
    )


def _edits_a_sample(write: Write, links: tuple[Link, ...]) -> bool:
    """Whether a write goes into a part of what the object keeps.

    A write of the whole field, or one that does not look at the old content, fills a cache or a scratch buffer.
    """
    if (write.owner != FIELD and not write.held) or write.form not in DIRECT_FORMS:
        return False
    part = bool(write.held) or write.owner_name.endswith("]") or any(link.how in PARTS for link in links)
    filled = not write.reads_old and write.form != "item"
    return part and not filled and (bool(write.held) or _certain(write, links))


def _certain(write: Write, links: tuple[Link, ...]) -> bool:
    """A row of an array is a number where there is one dimension; what has items, or a tensor over it, is none."""
    is_array = write.form == "item" or any(link.how is How.FROM_NUMPY for link in links)
    return all(link.when == "" and (link.sure or is_array) for link in links)
