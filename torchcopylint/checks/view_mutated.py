"""TCL501: a view or second name is written while base and view are both wanted."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.report import Report
from torchcopylint.checks._common import (
    DIRECT_FORMS,
    PLAIN_HOWS,
    confidence,
    first_of_each,
    first_reads,
    kept_gradient,
    once_a_sharing,
    order_of,
    read_point,
    shared_points,
    suffers_caller,
    written_point,
)
from torchcopylint.flow.facts import ReadAfter, UnitFacts, Write
from torchcopylint.flow.model import How

_FORMS = DIRECT_FORMS | {"statistics"}
PARTS = frozenset({How.INDEX, How.ROW})


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report writes through one holder while another is read later as if it were something else."""
    owns = first_reads(unit, own=True)
    others = first_reads(unit, own=False)
    found = []
    reaching = []
    for write in unit.writes.values():
        if write.form not in _FORMS or (write.blank and not write.reads_old):
            continue
        reads = [read for read in others.get(write.site, []) if _plain(read) and not kept_gradient(unit, read)]
        wanted = [read for read in reads if _wanted_apart(read, owns.get(write.site, []))]
        if wanted:
            found.append((write, min(wanted, key=order_of)))
        elif _reaches_caller(unit, write, owns.get(write.site, [])):
            links = tuple(reversed([link for link in write.chain if link.how is not None]))
            reaching.append((write, links))
    for write, links in first_of_each(reaching):
        points = (*shared_points(links), written_point(write))
        values = {"name": write.root or write.name, "op": write.op, "source": write.owner_name}
        yield Report(write.site, points, values, confidence(write.sure), "caller")
    for write, read in once_a_sharing(found):
        points = (*shared_points(read.links), written_point(write), read_point(read, write))
        name, source = _pair(read, write)
        values = {"name": name, "op": write.op, "source": source}
        yield Report(write.site, points, values, confidence(write.sure, read.sure))


def _plain(read: ReadAfter) -> bool:
    # Where a name holds a copy on one path and the very object on the other, as of the best so far, both were meant.
    surely = read.certain or (read.partly and [link.result for link in read.links if link.how is None] == [read.name])
    return surely and read.hows <= PLAIN_HOWS | {How.CONDITIONAL} and read.consumer != "swap"


def _wanted_apart(read: ReadAfter, owns: list[ReadAfter]) -> bool:
    """Whether both are read later as different values.

    Editing through a part of something is an idiom: there the base is read on purpose. What was taken *before* its base
    is overwritten, and is read afterwards, is not. Neither is a second name for the whole, nor the result of a
    conversion that had nothing to convert: nobody converts a tensor in order to write the original.
    """
    if any(link.how is How.CONDITIONAL for link in read.below_written):
        return True
    if not read.below_written:
        # The base was written; the view (or second name) is read as it was.
        return bool(owns) and bool(read.links)
    if any(link.how in PARTS for link in read.below_written):
        return False
    return bool(owns)


def _pair(read: ReadAfter, write: Write) -> tuple[str, str]:
    mine = write.root or write.name
    if mine == read.name:
        # A call was handed both names, and reads the one through which it writes.
        names = (name for link in read.links for name in (link.result, link.source))
        mine = next((name for name in names if name and name != read.name), mine)
    return (mine, read.name) if read.below_written or not read.links else (read.name, mine)


def _reaches_caller(unit: UnitFacts, write: Write, owns: list[ReadAfter]) -> bool:
    if not suffers_caller(unit, write) or not write.named or set(write.storages) & unit.returns_sources:
        return False
    hows = {link.how for link in write.chain if link.how is not None}
    certain = all(link.sure and not link.when for link in write.chain)
    return certain and hows <= PLAIN_HOWS and bool(owns)
