"""TCL213: what a custom Function returned as a view, or what a module with a backward hook takes, is written."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.report import Report
from torchcopylint.checks._common import refused_view
from torchcopylint.flow.facts import UnitFacts, ViewRefused

ACROSS_CALLS = True


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report each such write that some evidence places in grad mode."""
    for fact in unit.facts:
        if isinstance(fact, ViewRefused) and fact.why in ("custom", "hook", "chain"):
            for report in refused_view(unit, fact, "shared.custom" if fact.why == "custom" else "shared.hook"):
                yield report._replace(variant=report.variant if fact.why == "custom" else fact.why)
