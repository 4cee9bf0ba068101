"""TCL106: `.data[0]` on a tensor without dimensions."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Confidence, Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import confidence
from torchcopylint.flow.facts import DataAccess, UnitFacts
from torchcopylint.flow.model import Fact, Sure

ACROSS_CALLS = True


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report `.data[0]` on a loss or another full reduction, or on something named as one."""
    for fact in unit.facts:
        if not isinstance(fact, DataAccess) or fact.op != "[0]" or fact.form != "read":
            continue
        if fact.scalar is Fact.YES and fact.sure is not Sure.NOT:
            found = confidence(fact.sure)
        elif fact.scalar is not Fact.NO and fact.named_loss:
            found = Confidence.MEDIUM
        else:
            continue
        yield Report(
            site=fact.site,
            points=(Point(Role.HERE, fact.site, "here.data_index", {"name": fact.name}),),
            values={"name": fact.name},
            confidence=found,
        )
