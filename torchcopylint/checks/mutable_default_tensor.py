"""TCL507: a function writes a parameter whose default is a tensor."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import confidence, written_point
from torchcopylint.flow.facts import DefaultWritten, UnitFacts


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report the first write of each such parameter; a name with an underscore says that it is kept on purpose."""
    seen: set[str] = set()
    for fact in unit.facts:
        if not isinstance(fact, DefaultWritten) or fact.name in seen or fact.name.startswith("_"):
            continue
        seen.add(fact.name)
        names = {"name": fact.name, "op": fact.op}
        yield Report(
            site=fact.site,
            points=(Point(Role.HERE, fact.made, "here.default", names), written_point(unit.writes[fact.site])),
            values=names,
            confidence=confidence(fact.sure),
        )
