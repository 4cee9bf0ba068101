"""TCL104: `.data` is read where `.detach()` would do."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Confidence, Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import confidence
from torchcopylint.flow.facts import DataAccess, UnitFacts
from torchcopylint.flow.model import Sure


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report each `.data` of a tensor that nothing is written through. A name such as `loss` is evidence enough.

    What has just been computed, `torch.cat(rows).data`, shares memory with nobody.
    """
    for fact in unit.facts:
        read = isinstance(fact, DataAccess) and fact.form == "read" and not fact.gradient
        if isinstance(fact, DataAccess) and read and not fact.unheld and fact.sure is not Sure.NOT:
            yield Report(
                site=fact.site,
                points=(Point(Role.READ, fact.site, "read.data", {"name": fact.name}),),
                values={"name": fact.name},
                confidence=Confidence.MEDIUM if fact.sure is Sure.HINT else confidence(fact.sure),
            )
