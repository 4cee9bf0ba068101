"""TCL709: `load_state_dict(..., assign=True)` exchanges the parameters for tensors that somebody else holds."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import confidence
from torchcopylint.flow.facts import LoadedByAssignment, OptimizerStale, UnitFacts

ACROSS_CALLS = True


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report modules that share their tensors since, and optimizers that go on training what was there before."""
    seen: set[int] = set()
    for fact in unit.facts:
        if isinstance(fact, LoadedByAssignment):
            names = {"name": fact.name, "source": fact.source}
            point = Point(Role.SHARED, fact.site, "shared.loaded", names)
            yield Report(fact.site, (point,), names, confidence(fact.sure))
        elif isinstance(fact, OptimizerStale) and fact.loaded and fact.stored not in seen:
            seen.add(fact.stored)
            yield _stale(fact)


def _stale(fact: OptimizerStale) -> Report:
    names = {"name": fact.name, "optimizer": fact.optimizer, "source": fact.optimizer.removesuffix(".step()") or "it"}
    later = "" if fact.site > fact.stored else ".next"
    used = "read.optimizer_used" if fact.optimizer else "read.optimizer_returned"
    return Report(
        site=fact.stored,
        points=(
            Point(Role.READ, fact.built, "read.parameters", names),
            Point(Role.SHARED, fact.stored, "shared.exchanged", names),
            Point(Role.READ, fact.site, used + later, names),
        ),
        values=names,
        confidence=confidence(fact.sure),
        variant="optimizer",
    )
