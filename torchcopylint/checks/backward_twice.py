"""TCL312: a second backward pass over a graph whose saved tensors the first has freed."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import confidence
from torchcopylint.flow.facts import BackwardAgain, ComputedOnce, NonleafKept, UnitFacts

INTO_HELPERS = True
ACROSS_CALLS = True


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report each backward pass that needs what an earlier one has freed, in the same iteration or the one before."""
    # An optimizer that refuses what it is given stands in front: nothing behind it is reached.
    refused = {fact.name: fact.site for fact in unit.facts if isinstance(fact, NonleafKept) and fact.optimizer}
    for fact in unit.facts:
        if isinstance(fact, BackwardAgain) and not fact.carrier:
            if refused.get(fact.before, fact.site) < fact.site:
                continue
            names = {"name": fact.name}
            kept = (Point(Role.KEPT, fact.kept, "kept.before", {"name": fact.before}),) if fact.before else ()
            yield Report(
                site=fact.site,
                points=(
                    *kept,
                    Point(Role.DISCARDED, fact.freed, "discarded.saved", names),
                    Point(Role.READ, fact.site, "read.again.next" if fact.before else "read.again", names),
                ),
                values=names,
                confidence=confidence(fact.sure),
            )
        elif isinstance(fact, ComputedOnce):
            names = {"name": fact.name}
            yield Report(
                site=fact.site,
                variant="constructed",
                points=(
                    Point(Role.KEPT, fact.site, "kept.constructed", names),
                    Point(Role.READ, fact.read, "read.each.call", names),
                ),
                values=names,
                confidence=confidence(fact.sure),
            )
