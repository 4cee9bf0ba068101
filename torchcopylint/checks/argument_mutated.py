"""TCL503: a function writes its argument, to return it or what it computes of it, and a caller still uses that."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import PLAIN_HOWS, confidence, suffers_caller, written_point
from torchcopylint.flow.facts import CallerSuffers, UnitFacts
from torchcopylint.flow.model import TENSORS, How

OF_GUESTS = True


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report the first write of each parameter for which there is such a caller."""
    seen: set[str] = set()
    for fact in unit.facts:
        if not isinstance(fact, CallerSuffers) or fact.name in seen:
            continue
        write = unit.writes[fact.site]
        plain = {link.how for link in write.chain} <= PLAIN_HOWS | {How.PARAMETER}
        if write.kind not in TENSORS or not plain or not suffers_caller(unit, write, part=fact.name.endswith("]")):
            continue
        seen.add(fact.name)
        names = {"name": fact.name, "source": fact.passed, "op": fact.op, "target": unit.name, "result": fact.name}
        yield Report(
            site=fact.site,
            points=(
                Point(Role.SHARED, fact.call, "shared.passed", names),
                written_point(write),
                Point(Role.READ, fact.read, "read.caller", {"name": fact.passed}),
            ),
            values={**names, "name": fact.second or fact.name},
            confidence=confidence(fact.sure),
            variant="second" if fact.second else "worked" if fact.worked else "",
        )
