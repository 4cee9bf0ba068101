"""TCL801: a computed tensor is kept where a leaf is needed."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import confidence
from torchcopylint.flow.facts import NonleafKept, UnitFacts

INTO_HELPERS = True
ACROSS_CALLS = True


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report each computed tensor that is given to an optimizer, or set on a module in place of its parameter."""
    for fact in unit.facts:
        if not isinstance(fact, NonleafKept):
            continue
        names = {"name": fact.name, "source": fact.source, "when": fact.when, "optimizer": fact.optimizer}
        kept = "kept.optimizer" if fact.optimizer else "kept.field"
        yield Report(
            site=fact.site,
            points=(Point(Role.CUT, fact.made, "cut.leaf", names), Point(Role.KEPT, fact.site, kept, names)),
            values=names,
            confidence=confidence(fact.sure),
            variant="conditional" if fact.when else "" if fact.optimizer else "field",
        )
