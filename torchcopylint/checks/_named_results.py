"""The result of a method that works in place gets a name of its own, and its receiver is read again beside it."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Confidence
from torchcopylint.base.report import Report
from torchcopylint.checks._common import at_most, confidence, order_of, read_point, written_point
from torchcopylint.flow.facts import ReadAfter, UnitFacts, Write

_WANTED = frozenset({"operand", "argument", "return"})


def of_results(unit: UnitFacts, owns: dict[int, list[ReadAfter]]) -> Iterator[Report]:
    """Report `kept = x.masked_fill_(mask, 0)` where `x` and `kept` are both used from there on, as two values."""
    for write in unit.writes.values():
        reads = owns.get(write.site, [])
        later = [read for read in reads if _is_source(read, write)] if _is_named(write) else []
        if later and any(read.name == write.result and read.consumer in _WANTED for read in reads):
            read = min(later, key=order_of)
            values = {"name": write.result, "op": write.op, "source": write.root}
            points = (written_point(write), read_point(read, write))
            yield Report(write.site, points, values, at_most(Confidence.MEDIUM, confidence(write.sure)), "result")


def _is_named(write: Write) -> bool:
    plain = write.root.isidentifier() and write.result.isidentifier() and write.result != write.root
    return write.form == "method" and plain and not write.derived and write.reads_old and not write.blank


def _is_source(read: ReadAfter, write: Write) -> bool:
    """Whether the receiver is read behind the write, as it was bound before it."""
    behind = read.site > write.site and read.bound < write.site and read.site not in write.used
    return behind and read.name == write.root and read.certain and read.consumer in _WANTED and not read.asked
