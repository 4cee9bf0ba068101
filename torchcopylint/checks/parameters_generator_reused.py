"""TCL608: a generator of parameters is gone through again."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Confidence, Role
from torchcopylint.base.report import Point, Report
from torchcopylint.flow.facts import GeneratorReused, UnitFacts

INTO_HELPERS = True
ACROSS_CALLS = True


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report each time that a generator is gone through when it has been before."""
    for fact in unit.facts:
        if not isinstance(fact, GeneratorReused):
            continue
        names = {"name": fact.name}
        before = [(fact.made, "here.generator"), (fact.first, "here.first")]
        later = "" if fact.first < fact.site or not fact.local else ".next"
        yield Report(
            site=fact.site,
            points=(
                *(Point(Role.HERE, site, phrase, names) for site, phrase in before if 0 <= site != fact.site),
                Point(Role.READ, fact.site, f"read.exhausted{later}", names),
            ),
            values=names,
            confidence=Confidence.HIGH if fact.local else Confidence.MEDIUM,
        )
