"""TCL905: a tensor is made of a list of arrays, number by number."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import confidence
from torchcopylint.flow.facts import Constructed, UnitFacts

ACROSS_CALLS = True

NOT_SLOW = frozenset({"torch.autograd.Variable"})


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report `torch.tensor`, `torch.as_tensor` and the legacy constructors on a list that holds nothing but arrays."""
    for fact in unit.facts:
        if isinstance(fact, Constructed) and fact.arrays and fact.function not in NOT_SLOW:
            yield Report(
                site=fact.site,
                points=(Point(Role.HERE, fact.site, "here.list", {}),),
                values={"op": fact.op, "name": fact.name},
                confidence=confidence(fact.sure),
            )
