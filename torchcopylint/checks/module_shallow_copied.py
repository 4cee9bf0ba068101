"""TCL705: a shallow copy of a module is used after the parameters that it shares were overwritten."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import confidence, written_since
from torchcopylint.flow.facts import ModuleShallow, UnitFacts


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report `copy.copy(module)` whose result outlives a write to the parameters; once a copy."""
    seen: set[int] = set()
    found = [fact for fact in unit.facts if isinstance(fact, ModuleShallow)]
    for fact in sorted(found, key=lambda fact: (fact.site < fact.write, fact.site)):
        if fact.made in seen:
            continue
        seen.add(fact.made)
        write = unit.writes[fact.write]
        names = {"source": fact.source, "result": fact.name, "name": fact.name}
        yield Report(
            site=fact.made,
            points=(
                Point(Role.SHARED, fact.made, "shared.shallow", names),
                written_since(write, fact.made),
                Point(Role.READ, fact.site, "read.shallow", names),
            ),
            values={"name": fact.name, "source": fact.source, "cause": write.cause or write.op},
            confidence=confidence(fact.sure),
        )
