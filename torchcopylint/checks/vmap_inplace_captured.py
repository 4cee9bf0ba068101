"""TCL212: under `vmap`, a tensor that is not mapped is written with a value that is."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import confidence
from torchcopylint.flow.facts import MappedWrite, UnitFacts


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report each write of what is computed from a mapped parameter into a tensor that is not mapped."""
    for fact in unit.facts:
        if isinstance(fact, MappedWrite):
            names = {"name": fact.name, "op": fact.op, "source": fact.source}
            point = Point(Role.WRITTEN, fact.site, "written.mapped", names)
            yield Report(fact.site, (point,), names, confidence(fact.sure))
