"""TCL804: `requires_grad` is switched on a tensor that does not allow it."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import confidence
from torchcopylint.flow.facts import RequiresGradRefused, UnitFacts

ACROSS_CALLS = True


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report each switch that torch refuses: off for a computed tensor, or either way as an attribute, and on for an
    integer one."""
    for fact in unit.facts:
        if not isinstance(fact, RequiresGradRefused):
            continue
        names = {"name": fact.name, "op": fact.dtype}
        made = "here.integer" if fact.form == "integer" else "here.computed"
        earlier = (Point(Role.HERE, fact.made, made, names),) if 0 <= fact.made != fact.site else ()
        yield Report(
            site=fact.site,
            points=(*earlier, Point(Role.WRITTEN, fact.site, "written.requires_grad", names)),
            values=names,
            confidence=confidence(fact.sure),
            variant="" if fact.form == "nonleaf" else fact.form,
        )
