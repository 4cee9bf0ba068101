"""TCL602: the result of an out-of-place operation is dropped."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import confidence
from torchcopylint.flow.facts import Discarded, UnitFacts
from torchcopylint.flow.model import Sure


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report expression statements that only compute a new tensor."""
    for fact in unit.facts:
        if isinstance(fact, Discarded) and not fact.guarded and fact.sure is not Sure.NOT:
            op = fact.op if fact.operator else f"{fact.op}()" if fact.method else f"{fact.op}(...)"
            yield Report(
                site=fact.site,
                points=(Point(Role.DISCARDED, fact.site, "discarded", {"name": fact.name, "op": op}),),
                values={"name": fact.name, "op": op},
                confidence=confidence(fact.sure),
                variant="operator" if fact.operator else "",
            )
