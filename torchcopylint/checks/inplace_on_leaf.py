"""TCL201: a leaf that requires grad, or a view of one, is written in place while autograd records."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import at_most, confidence, mode_is_on
from torchcopylint.flow.facts import LeafWritten, UnitFacts

ACROSS_CALLS = True


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report each such write that some evidence places in grad mode."""
    for fact in unit.facts:
        if not isinstance(fact, LeafWritten):
            continue
        mode = mode_is_on(unit, fact.assumed, fact.local, fact.asked, fact.aside)
        if mode is None:
            continue
        variant = "out" if fact.out else "view" if fact.viewed >= 0 else ""
        names = {"name": fact.name, "op": fact.op, "source": fact.leaf}
        viewed = (Point(Role.SHARED, fact.viewed, "shared.view", {"result": fact.name, "source": fact.leaf}),)
        yield Report(
            site=fact.site,
            points=(
                *(viewed if variant == "view" else ()),
                Point(Role.WRITTEN, fact.site, "written.leaf" if not fact.out else "written.out", names),
            ),
            values=names,
            confidence=at_most(mode, confidence(fact.sure)),
            variant=variant,
        )
