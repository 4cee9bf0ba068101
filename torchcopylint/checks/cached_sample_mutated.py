"""TCL504: a dataset edits the sample that it keeps, each time the sample is fetched."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Confidence, Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import (
    DIRECT_FORMS,
    PARTS,
    at_most,
    confidence,
    first_reads,
    order_of,
    read_point,
    shared_points,
    written_point,
)
from torchcopylint.flow.facts import Link, ReadAfter, SampleEdited, UnitFacts, Write
from torchcopylint.flow.model import FIELD, MEMO, How, Kind

ACROSS_CALLS = True

FETCHING = frozenset({"__getitem__", "__getitems__", "get"})
"""Methods that hand out a sample and leave the data as it is."""
GOING_THROUGH = "__iter__"
"""The method that hands out all samples, one after the other."""


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report the first write into each stored sample that is handed out afterwards, and into what a memo keeps."""
    yield from _memos(unit)
    yield from _transforms(unit)
    goes_through = unit.name == GOING_THROUGH
    if unit.class_number < 0 or not (unit.name in FETCHING or goes_through) or unit.class_kind is Kind.MODULE:
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
        handed_out = [read for read in reads if read.consumer == ("yield" if goes_through else "return")]
        if goes_through and not handed_out:
            continue
        seen.add(stored)
        yield _report(write, links, min(handed_out or reads, key=order_of, default=None))


def _transforms(unit: UnitFacts) -> Iterator[Report]:
    seen: set[str] = set()
    for fact in unit.facts:
        if isinstance(fact, SampleEdited) and fact.name not in seen:
            seen.add(fact.name)
            values = {"name": fact.name, "op": fact.op, "source": fact.source}
            handed = Point(Role.SHARED, fact.handed, "shared.handed", values)
            edited = Point(Role.WRITTEN, fact.site, "written", values)
            yield Report(
                fact.site, (handed, edited), values, at_most(Confidence.MEDIUM, confidence(fact.sure)), "transform"
            )


def _memos(unit: UnitFacts) -> Iterator[Report]:
    seen: set[str] = set()
    for site, write in sorted(unit.writes.items()):
        changes = write.reads_old or write.partial or write.form == "item"
        if write.owner == MEMO and write.form in DIRECT_FORMS and changes and write.owner_name not in seen:
            seen.add(write.owner_name)
            values = {"name": write.root or write.name, "op": write.op, "source": write.owner_name}
            kept = Point(Role.SHARED, write.chain[-1].site, "shared.memo", values)
            yield Report(site, (kept, written_point(write)), values, confidence(write.sure), "memo")


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
