"""TCL105: `.grad.data`."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import confidence
from torchcopylint.flow.facts import DataAccess, UnitFacts
from torchcopylint.flow.model import Sure


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report each `.data` of a gradient, read or written."""
    for fact in unit.facts:
        if isinstance(fact, DataAccess) and fact.gradient and fact.sure is not Sure.NOT:
            yield Report(
                site=fact.site,
                points=(Point(Role.HERE, fact.site, "here.grad_data", {"name": fact.name}),),
                values={"name": fact.name},
                confidence=confidence(fact.sure),
            )
