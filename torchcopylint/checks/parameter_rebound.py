"""TCL603: a name is bound to a new tensor where the parameter was to be changed."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import confidence
from torchcopylint.flow.facts import ParameterRebound, UnitFacts

INTO_HELPERS = True
ACROSS_CALLS = True


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report each such binding once: alone where nobody looks at what is bound, else with a later read of `.grad`."""
    seen: set[int] = set()
    for fact in unit.facts:
        if not isinstance(fact, ParameterRebound) or fact.bound in seen:
            continue
        seen.add(fact.bound)
        names = {"name": fact.name, "source": fact.source}
        points: tuple[Point, ...]
        if fact.form != "gradient":
            points = (Point(Role.DISCARDED, fact.bound, "discarded.rebound", names),)
        else:
            later = "" if fact.site > fact.bound else ".next"
            points = (
                Point(Role.DISCARDED, fact.bound, "discarded.leaf", names),
                Point(Role.READ, fact.site, f"read.grad{later}", names),
            )
        yield Report(fact.bound, points, names, confidence(fact.sure), "" if fact.form == "gradient" else fact.form)
