"""TCL701: a state dict is kept as a snapshot while what it holds is overwritten."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchcopylint.base.finding import Confidence, Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import (
    at_most,
    confidence,
    first_reads,
    order_of,
    read_point,
    written_point,
)
from torchcopylint.flow.facts import FieldRead, Kept, Link, ReadAfter, UnitFacts, Write
from torchcopylint.flow.model import How


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report each snapshot by reference that is read after its parameters were written; once per snapshot."""
    seen: set[int] = set()
    for site, reads in sorted(first_reads(unit, own=False).items()):
        write = unit.writes[site]
        for read in sorted(reads, key=order_of):
            taken = [link for link in read.below_read if link.how is How.STATE]
            # On the path where it is no copy, it is none, however it is made on the others.
            if not taken or taken[-1].site in seen or not (read.certain or read.partly) or _own_doing(read, write):
                continue
            link = taken[0]
            seen.add(taken[-1].site)
            yield _report(read, write, link, taken[-1].site)


def check_class(methods: Sequence[UnitFacts]) -> Iterator[Report]:
    """Report snapshots that one method keeps in a field and another reads: between the calls, training goes on."""
    kept = [fact for unit in methods for fact in unit.facts if isinstance(fact, Kept) and fact.how is How.STATE]
    reads = [fact for unit in methods for fact in unit.facts if isinstance(fact, FieldRead)]
    steps = [write for unit in methods for write in unit.writes.values() if write.form == "step"]
    for fact in kept:
        restored = [r for r in reads if r.field == fact.field and r.consumer in ("load_state_dict", "return")]
        restored = [r for r in restored if r.method != fact.method]
        if restored:
            read = min(restored, key=lambda r: r.site)
            yield _report_class(fact, read, min(steps, key=lambda w: w.site) if steps else None)


def _report_class(fact: Kept, read: FieldRead, step: Write | None) -> Report:
    name = f"self.{fact.field}"
    source = fact.source.removesuffix(".state_dict()")
    return Report(
        site=fact.shared,
        points=(
            Point(Role.SHARED, fact.shared, "shared.state", {"source": source, "result": name, "when": ""}),
            *((written_point(step),) if step is not None else ()),
            Point(Role.READ, read.site, "read.field", {"name": name}),
        ),
        values={"name": name, "source": source, "cause": step.cause if step is not None else "training"},
        confidence=at_most(Confidence.MEDIUM, confidence(fact.sure)),
        variant="shallow" if fact.shallow else "",
    )


def _own_doing(read: ReadAfter, write: Write) -> bool:
    """The snapshot's own items were written on purpose, through the snapshot."""
    return bool(read.below_written) and any(link.how is How.STATE for link in read.below_written)


def _report(read: ReadAfter, write: Write, link: Link, taken: int) -> Report:
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
        confidence=at_most(
            Confidence.HIGH if read.certain else Confidence.MEDIUM, confidence(max(write.sure, read.sure), read.sure)
        ),
        variant=variant,
    )
