"""TCL505: two parts of one tensor are swapped through views of it."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.report import Report
from torchcopylint.checks._common import confidence, read_point, shared_points, written_point
from torchcopylint.flow.facts import ReadAfter, UnitFacts
from torchcopylint.flow.model import CROSSWISE

ACROSS_CALLS = True


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report a view that is stored into its own base after the base was overwritten where the view lies."""
    for fact in unit.facts:
        if not isinstance(fact, ReadAfter) or fact.consumer != "swap":
            continue
        crosswise = fact.target == CROSSWISE
        write = unit.writes[fact.write]
        stored = write.form == "item" or write.op == "copy_"
        if not stored or write.reads_old or not (crosswise or (fact.certain and not fact.own)):
            continue
        views = tuple(link for link in fact.below_read if link.how is not None)
        links = views or fact.below_read
        if not links and not crosswise:
            continue
        yield Report(
            site=fact.site,
            points=(*shared_points(links), written_point(write), read_point(fact, write)),
            values={
                "name": links[0].result if links else fact.name,
                "source": links[0].source if links else write.root or write.name,
            },
            confidence=confidence(write.sure, fact.sure),
            variant="" if views or crosswise else "name",
        )
