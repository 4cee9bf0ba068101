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
        plain = isinstance(fact, DefaultWritten) and fact.name.rpartition(".")[2]
        if not isinstance(fact, DefaultWritten) or not plain or fact.name in seen or plain.startswith("_"):
            continue
        seen.add(fact.name)
        names = {"name": fact.name, "op": fact.op}
        default = (Point(Role.HERE, fact.made, "here.default", names),) if fact.made >= 0 else ()
        yield Report(
            site=fact.site,
            points=(*default, written_point(unit.writes[fact.site])),
            values=names,
            confidence=confidence(fact.sure),
            variant="" if default else "attribute",
        )
