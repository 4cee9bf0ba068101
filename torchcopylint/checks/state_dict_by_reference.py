"""TCL701: a state dict is kept as a snapshot while what it holds is overwritten."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Confidence, Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import (
    at_most,
    confidence,
    first_reads,
    order_of,
    read_point,
    shared_point,
    written_point,
)
from torchcopylint.flow.facts import ReadAfter, UnitFacts, Write
from torchcopylint.flow.model import How


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report each snapshot by reference that is read after its parameters were written; once per snapshot."""
    seen: set[int] = set()
    for site, reads in sorted(first_reads(unit, own=False).items()):
        write = unit.writes[site]
        for read in sorted(reads, key=order_of):
            taken = [link for link in read.below_read if link.how is How.STATE]
            if not taken or taken[-1].site in seen or not read.certain or _own_doing(read, write):
                continue
            link = taken[0]
            seen.add(taken[-1].site)
            yield _report(read, write, link, taken[-1].site)


def _own_doing(read: ReadAfter, write: Write) -> bool:
    """The snapshot's own items were written on purpose, through the snapshot."""
    return bool(read.below_written) and any(link.how is How.STATE for link in read.below_written)


def _report(read: ReadAfter, write: Write, link, taken: int) -> Report:  # type: ignore[no-untyped-def]
    shallow = "shallow" in read.flags or read.element
    variant = "optimizer" if "optimizer state" in read.flags else "shallow" if shallow else ""
    name = read.name.partition("[")[0] if read.element else read.name
    cause = write.cause or f"{write.op}"
    return Report(
        site=taken,
        points=(
            Point(Role.SHARED, taken, "shared.state", {"source": link.source, "result": name, "when": ""}),
            written_point(write),
            read_point(read, write),
        ),
        values={"name": name, "source": link.source.removesuffix(".state_dict()"), "cause": cause},
        confidence=at_most(Confidence.HIGH, confidence(max(write.sure, read.sure), read.sure)),
        variant=variant,
    )


_ = shared_point
