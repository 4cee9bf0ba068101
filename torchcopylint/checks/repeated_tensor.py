"""TCL707: one tensor or array stands in a container several times, and one of the entries is written."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import DIRECT_FORMS, confidence, written_point
from torchcopylint.flow.facts import Repeated, UnitFacts, Write
from torchcopylint.flow.model import BUFFERS

FORMS = frozenset({"multiplied", "fromkeys"})


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report `[tensor] * n` and `dict.fromkeys(keys, tensor)` whose entries are written in place."""
    for fact in unit.facts:
        if isinstance(fact, Repeated) and fact.kind in BUFFERS and fact.form in FORMS:
            writes = [write for write in unit.writes.values() if _through_an_entry(write, fact)]
            if writes:
                write = min(writes, key=lambda w: (w.site < fact.site, w.site))
                yield Report(
                    site=fact.site,
                    points=(
                        Point(Role.SHARED, fact.site, f"shared.{fact.form}", {"name": fact.name}),
                        written_point(write),
                    ),
                    values={"op": write.op},
                    confidence=confidence(fact.sure, write.sure),
                )


def _through_an_entry(write: Write, fact: Repeated) -> bool:
    """The write goes to one entry, and to nothing else that it may be."""
    if write.form not in DIRECT_FORMS or {storage | 1 for storage in write.storages} != fact.storages:
        return False
    # Written under a name that it had before, it is a buffer that the entries are meant to follow.
    return write.bound >= fact.site
