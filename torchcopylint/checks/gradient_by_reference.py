"""TCL703: a gradient is kept by reference, and overwritten by the next backward pass or by zeroing."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Confidence, Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import at_most, confidence, kept_gradient, order_of, read_point, written_since
from torchcopylint.flow.facts import GradientKept, ReadAfter, UnitFacts

INTO_HELPERS = True
ACROSS_CALLS = True
_ZEROING = "zero_grad(set_to_none=False)"


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report gradients that are read under a name or in a container of their own after they were overwritten."""
    seen: set[int] = set()
    for fact in unit.facts:
        if isinstance(fact, GradientKept):
            yield _in_field(fact) if fact.cause else _in_state(fact)
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


def _in_field(fact: GradientKept) -> Report:
    """What one method keeps in a field, and another one reads there."""
    values = {"name": fact.name, "cause": fact.cause}
    kept, written, read = (
        Point(Role.KEPT, fact.site, "kept.gradient", {"name": fact.source}),
        Point(Role.WRITTEN, fact.written, "written.cause", values),
        Point(Role.READ, fact.read, "read.field", values),
    )
    return Report(fact.site, (kept, written, read), values, at_most(Confidence.MEDIUM, confidence(fact.sure)))


def _in_state(fact: GradientKept) -> Report:
    """An optimizer does not know how its gradients are zeroed: in place, by some."""
    values = {"name": fact.name, "source": fact.source, "target": "", "cause": _ZEROING}
    kept, read = (
        Point(Role.KEPT, fact.site, "kept.gradient", {"name": fact.source}),
        Point(Role.READ, fact.read, "read.operand", values),
    )
    if fact.written >= 0:
        written = Point(Role.WRITTEN, fact.written, "written.cause", values)
        return Report(fact.site, (kept, written, read), values, Confidence.MEDIUM, "state")
    # Since torch 2.0 they are not, unless one asks for it.
    return Report(fact.site, (kept, read), values, Confidence.LOW, "state")
