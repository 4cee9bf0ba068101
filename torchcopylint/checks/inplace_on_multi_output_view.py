"""TCL205: one of several views that an operation made at once is written while autograd records."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.report import Report
from torchcopylint.checks._common import refused_view
from torchcopylint.flow.facts import UnitFacts, ViewRefused

ACROSS_CALLS = True


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report each such write that some evidence places in grad mode."""
    for fact in unit.facts:
        if isinstance(fact, ViewRefused) and fact.why == "multi":
            yield from refused_view(unit, fact, "shared.several")
