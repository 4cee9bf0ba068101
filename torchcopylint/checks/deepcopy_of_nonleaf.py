"""TCL309: `copy.deepcopy` of a computed tensor, or of something that holds one."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import confidence
from torchcopylint.flow.facts import TensorCopied, UnitFacts

INTO_HELPERS = True
ACROSS_CALLS = True


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report each deep copy that comes to a tensor with a graph."""
    for fact in unit.facts:
        if isinstance(fact, TensorCopied) and fact.op == "deepcopy":
            names = {"name": fact.name}
            saved = (Point(Role.SAVED, fact.made, "saved.computed", names),) if fact.made >= 0 else ()
            yield Report(
                site=fact.site,
                points=(*saved, Point(Role.READ, fact.site, "read.deepcopy", names)),
                values=names,
                confidence=confidence(fact.sure),
            )
