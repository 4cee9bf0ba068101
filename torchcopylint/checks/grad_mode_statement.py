"""TCL605: a grad mode that is built and dropped, or entered without being called."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Confidence, Role
from torchcopylint.base.report import Point, Report
from torchcopylint.flow.facts import GradModeUnused, UnitFacts


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report `torch.no_grad()` as a statement, and `with torch.no_grad:`."""
    for fact in unit.facts:
        if isinstance(fact, GradModeUnused):
            op = fact.name if fact.form == "with" else f"{fact.name}()"
            yield Report(
                site=fact.site,
                points=(Point(Role.HERE, fact.site, f"here.mode_{fact.form}", {"op": op}),),
                values={"op": op},
                confidence=Confidence.HIGH,
                variant="with" if fact.form == "with" else "",
            )
