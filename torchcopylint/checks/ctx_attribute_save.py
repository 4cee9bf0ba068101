"""TCL211: an autograd `Function` keeps an input or output in an attribute of its context."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import confidence
from torchcopylint.flow.facts import ContextKept, UnitFacts


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report each input or output of `forward` that is put into an attribute of the context."""
    for fact in unit.facts:
        if isinstance(fact, ContextKept):
            names = {"name": fact.attribute, "source": fact.name}
            yield Report(
                site=fact.site,
                points=(Point(Role.KEPT, fact.site, "kept.context", names),),
                values=names,
                confidence=confidence(fact.sure),
            )
