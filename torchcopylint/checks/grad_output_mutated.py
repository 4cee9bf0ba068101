"""TCL210: `backward` or a gradient hook writes the gradient that it is handed."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.report import Report
from torchcopylint.checks._common import confidence, shared_points, writes_of_argument, written_point
from torchcopylint.flow.facts import UnitFacts


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report each write to an argument of `backward` of a `Function`, or of a gradient hook."""
    if unit.roles & {"backward", "gradient hook"}:
        for write in writes_of_argument(unit):
            links = tuple(reversed([link for link in write.chain if link.how is not None]))
            yield Report(
                site=write.site,
                points=(*shared_points(links), written_point(write)),
                values={"name": write.owner_name, "op": write.op},
                confidence=confidence(write.sure),
                variant="hook" if "gradient hook" in unit.roles else "",
            )
