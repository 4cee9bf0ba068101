"""TCL604: an item of a state dict is set, and the dict is dropped."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import confidence
from torchcopylint.flow.facts import StateItemLost, UnitFacts


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report each item that is set in a state dict which nobody reads."""
    for fact in unit.facts:
        if not isinstance(fact, StateItemLost):
            continue
        names = {"name": fact.name, "source": fact.source or fact.name}
        taken = (Point(Role.HERE, fact.taken, "here.state_dict", names),) if fact.held else ()
        yield Report(
            site=fact.site,
            points=(*taken, Point(Role.WRITTEN, fact.site, "written.state_item", names)),
            values=names,
            confidence=confidence(fact.sure),
        )
