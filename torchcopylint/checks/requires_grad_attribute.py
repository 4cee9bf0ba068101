"""TCL606: an attribute that looks like `requires_grad` and is not."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import confidence
from torchcopylint.flow.facts import AttributeSet, UnitFacts
from torchcopylint.flow.model import Kind

ACROSS_CALLS = True


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report misspelt flags on tensors and modules, and the flag set on a module."""
    for fact in unit.facts:
        if not isinstance(fact, AttributeSet):
            continue
        if fact.kind is Kind.UNKNOWN:
            continue
        op = f"{fact.attribute} = {fact.value}"
        yield Report(
            site=fact.site,
            points=(Point(Role.HERE, fact.site, "here.attribute", {"name": fact.name, "op": op}),),
            values={"name": fact.name, "op": op, "source": fact.value},
            confidence=confidence(fact.sure),
            variant="module" if fact.attribute == "requires_grad" else "",
        )
