"""TCL904: a second `clone`, `detach` or `deepcopy` that changes nothing."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import confidence
from torchcopylint.flow.facts import Redundant, UnitFacts

FORMS = {"copy": "", "detach": "detach", "item": "detach"}


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report each such operation."""
    for fact in unit.facts:
        if not isinstance(fact, Redundant) or fact.form not in FORMS:
            continue
        yield Report(
            site=fact.site,
            points=(Point(Role.HERE, fact.site, f"here.redundant_{fact.form}", {"op": fact.op, "cause": fact.before}),),
            values={"op": fact.op if fact.form != "item" else "detach", "cause": fact.before},
            confidence=confidence(fact.sure),
            variant=FORMS[fact.form],
        )
