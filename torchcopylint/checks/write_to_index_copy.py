"""TCL601: what an advanced index copied is written, and the copy is dropped."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import DIRECT_FORMS, confidence, written_point
from torchcopylint.flow.facts import UnitFacts
from torchcopylint.flow.model import Sure

INTO_HELPERS = True
ACROSS_CALLS = True


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report each write into such a copy that nobody can see: it has no name, or its name is used for writes alone."""
    for write in unit.writes.values():
        if write.copied is Sure.NOT or write.form not in DIRECT_FORMS:
            continue
        # What `y = x[mask].mul_(2)` returns is used: a roundabout way of computing a new tensor.
        if write.form not in ("item", "augmented") and not write.dropped:
            continue
        copied = write.chain[-1].site
        yield Report(
            site=write.site,
            points=(
                Point(Role.HERE, copied, "here.index_copy", {"source": write.owner_name}),
                written_point(write),
            ),
            values={"name": write.root or write.owner_name, "op": write.op, "source": write.owner_name},
            confidence=confidence(write.copied, max(write.sure, Sure.LIKELY)),
            variant="named" if write.root else "",
        )
