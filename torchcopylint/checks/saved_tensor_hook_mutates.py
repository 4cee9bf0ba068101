"""TCL214: a hook for saved tensors writes the tensor that it is to pack."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.report import Report
from torchcopylint.checks._common import confidence, shared_points, writes_of_argument, written_point
from torchcopylint.flow.facts import UnitFacts

OF_GUESTS = True


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report the first write to the argument of a pack hook."""
    if "pack hook" in unit.roles:
        for write in sorted(writes_of_argument(unit), key=lambda write: write.site)[:1]:
            links = tuple(reversed([link for link in write.chain if link.how is not None]))
            yield Report(
                site=write.site,
                points=(*shared_points(links), written_point(write)),
                values={"name": write.owner_name, "op": write.op},
                confidence=confidence(write.sure),
            )
