"""TCL703: a gradient is kept by reference, and overwritten by the next backward pass or by zeroing."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import confidence, kept_gradient, order_of, read_point, written_since
from torchcopylint.flow.facts import ReadAfter, UnitFacts

INTO_HELPERS = True


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report gradients that are read under a name or in a container of their own after they were overwritten."""
    seen: set[int] = set()
    reads = [fact for fact in unit.facts if isinstance(fact, ReadAfter) and kept_gradient(unit, fact)]
    # What is taken from a kept gradient once it has been overwritten is the same fault.
    kept = {read.write for read in reads if 0 <= read.bound < read.write}
    # So is what a comprehension has in its hands of them.
    named = {read.write for read in reads if not read.name.startswith("...")}
    reads = [read for read in reads if read.write not in named or not read.name.startswith("...")]
    for read in sorted(reads, key=lambda read: (order_of(read), read.write < read.bound, read.write)):
        if read.bound in seen or read.bound < 0 or (read.write < read.bound and read.write in kept):
            continue
        seen.add(read.bound)
        write = unit.writes[read.write]
        name = read.name.partition("[")[0] if read.element else read.name
        yield Report(
            site=read.bound,
            points=(
                Point(Role.KEPT, read.bound, "kept.gradient", {"name": write.owner_name}),
                written_since(write, read.bound),
                read_point(read, write),
            ),
            values={"name": ".grad" if name == "..." else name, "cause": write.cause or write.op},
            confidence=confidence(read.sure),
        )
