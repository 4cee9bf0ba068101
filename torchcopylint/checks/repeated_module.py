"""TCL706: one module with parameters stands in a container several times."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import confidence
from torchcopylint.flow.facts import Repeated, UnitFacts
from torchcopylint.flow.model import Kind

ACROSS_CALLS = True
_TRAINED = frozenset({Kind.MODULE, Kind.PARAMETER})
_PHRASES = {"shallow": "shared.copies"}


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report `[layer] * n` and comprehensions over one instance, or over shallow copies of one, unless a test decides
    between that and another way."""
    for fact in unit.facts:
        if isinstance(fact, Repeated) and fact.kind in _TRAINED and fact.stateful and not fact.chosen:
            yield Report(
                site=fact.site,
                points=(
                    Point(Role.SHARED, fact.site, _PHRASES.get(fact.form, f"shared.{fact.form}"), {"name": fact.name}),
                ),
                values={"name": fact.name},
                confidence=confidence(fact.sure),
                variant="shallow" if fact.form == "shallow" else "",
            )
