"""TCL101: a write that autograd cannot see changes what a pending backward saved."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Confidence, Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import at_most, confidence, returns_to_training, shared_points, written_point
from torchcopylint.flow.facts import Clobbered, UnitFacts

INTO_HELPERS = True
ACROSS_CALLS = True


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report each unversioned write that spoils a saved value which backward reaches afterwards."""
    for fact in unit.facts:
        if not isinstance(fact, Clobbered):
            continue
        write = unit.writes[fact.write]
        if (write.versioned and not fact.hidden) or write.form in ("step", "load"):
            continue
        if fact.consumer == "return" and not returns_to_training(unit):
            continue
        found = confidence(fact.sure)
        if fact.consumer == "return":
            found = at_most(Confidence.MEDIUM, found)
        saved = fact.saved
        yield Report(
            site=fact.write,
            points=(
                Point(Role.SAVED, saved.site, f"saved.{saved.what}", {"op": saved.op, "name": saved.name}),
                *shared_points(fact.links),
                written_point(write),
                Point(Role.READ, fact.site, f"read.{fact.consumer}", {"name": saved.name, "target": ""}),
            ),
            values={"name": _plain(write.name), "op": write.op},
            confidence=found,
        )


def _plain(name: str) -> str:
    return name.partition(".data")[0]
