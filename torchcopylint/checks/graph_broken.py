"""TCL307: backward is called on a value that has lost its graph."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import confidence
from torchcopylint.flow.facts import GraphLost, StepUnreached, TermCopied, UnitFacts

ACROSS_CALLS = True
WHERE_MADE = True


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report each cut in front of a `backward()`: of a value that was computed from one with a graph, and has none."""
    for fact in unit.facts:
        if isinstance(fact, GraphLost):
            names = {"name": fact.name, "source": fact.source, "op": fact.op}
            yield Report(
                site=fact.cut,
                points=(
                    Point(Role.CUT, fact.cut, "cut.graph", names),
                    Point(Role.READ, fact.site, "read.bare", names),
                ),
                values=names,
                confidence=confidence(fact.sure),
                instead=Point(Role.CUT, fact.wrapper, "cut.leaf.made", names) if fact.wrapper >= 0 else None,
                variant="wrapped" if fact.wrapped else "number" if fact.number else "",
            )
        elif isinstance(fact, TermCopied) and fact.loss:
            names = {"name": fact.loss, "source": fact.name, "op": fact.op}
            yield Report(
                site=fact.site,
                points=(
                    Point(Role.CUT, fact.site, "cut.graph", names),
                    Point(Role.DISCARDED, fact.ran, "discarded.term", names),
                ),
                values=names,
                confidence=confidence(fact.sure),
                variant="term",
            )
        elif isinstance(fact, StepUnreached):
            names = {"name": fact.name, "source": fact.source, "op": fact.op, "cause": fact.optimizer}
            yield Report(
                site=fact.cut,
                points=(
                    Point(Role.CUT, fact.cut, "cut.graph", names),
                    Point(Role.MOVED, fact.site, "moved.nothing", names),
                ),
                values=names,
                confidence=confidence(fact.sure),
                variant="unreached",
            )
