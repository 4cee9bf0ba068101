"""TCL103: `.data` is written where `with torch.no_grad():` would do."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import confidence
from torchcopylint.flow.facts import DataAccess, UnitFacts
from torchcopylint.flow.model import Sure


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report each write through `.data` of a tensor, but of a buffer, with which autograd has nothing to do."""
    for fact in unit.facts:
        if (
            not isinstance(fact, DataAccess)
            or fact.form == "read"
            or fact.gradient
            or fact.sure is Sure.NOT
            or fact.buffer
        ):
            continue
        variant = "idiom" if fact.context else "assign" if fact.form == "assign" else ""
        op = f"{fact.name}.data = ..." if fact.form == "assign" else fact.op
        yield Report(
            site=fact.site,
            points=(Point(Role.WRITTEN, fact.site, "written.data", {"name": fact.name, "op": op}),),
            values={"name": fact.name, "op": op, "context": fact.context, "source": "..."},
            confidence=confidence(fact.sure),
            variant=variant,
        )
