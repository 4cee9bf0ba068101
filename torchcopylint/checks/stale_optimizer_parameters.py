"""TCL802: parameters are replaced after the optimizer was built."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchcopylint.base.finding import Confidence, Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import at_most, confidence
from torchcopylint.flow.facts import OptimizerHeld, OptimizerStale, PartReplaced, UnitFacts

INTO_HELPERS = True
ACROSS_CALLS = True
AT_CALLS = True


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report each part that an optimizer does not know, where that optimizer goes on to be used; once a part."""
    seen: set[int] = set()
    for fact in unit.facts:
        if not isinstance(fact, OptimizerStale) or fact.loaded or fact.stored in seen:
            continue
        seen.add(fact.stored)
        names = {"name": fact.name, "optimizer": fact.optimizer}
        used = "read.optimizer_used" if fact.optimizer else "read.optimizer_returned"
        later = "" if fact.site > fact.stored else ".next"
        yield Report(
            site=fact.stored,
            points=(
                Point(Role.READ, fact.built, "read.parameters", names),
                Point(Role.KEPT, fact.stored, "kept.part", names),
                *((Point(Role.READ, fact.site, used + later, names),) if fact.site != fact.stored else ()),
            ),
            values=names,
            confidence=confidence(fact.sure),
        )


def check_class(methods: Sequence[UnitFacts]) -> Iterator[Report]:
    """Report parts that a method sets of a module over which the constructor has built an optimizer that still steps.

    Or fields that a method gives another tensor than the leaf that the optimizer steps on.

    What the constructor calls itself may come before the optimizer.
    """
    optimizers = [fact for unit in methods for fact in unit.facts if isinstance(fact, OptimizerHeld)]
    replaced = [fact for unit in methods for fact in unit.facts if isinstance(fact, PartReplaced)]
    steps = [write for unit in methods for write in unit.writes.values() if write.form == "step"]
    for part in replaced:
        for held in optimizers:
            name = f"self.{held.field}"
            used = [write for write in steps if write.name == name]
            among = held.leaves if part.leaf else held.parts
            known = held.over == part.field if part.field else part.name.removeprefix("self.") in among
            # Who sets both the part and the optimizer anew does that for the two of them, and not for this method.
            field = part.field or part.name.removeprefix("self.")
            known = known and all(field in fields and method != part.whole for method, fields in held.renewed)
            if not known or part.method in held.calls or not used:
                continue
            step = min(used, key=lambda write: write.site)
            names = {"name": part.name, "optimizer": f"{name}.step()"}
            yield Report(
                site=part.site,
                points=(
                    Point(Role.READ, held.site, "read.parameters", names),
                    Point(Role.KEPT, part.site, "kept.part", names),
                    Point(Role.READ, step.site, "read.optimizer_used", names),
                ),
                values=names,
                confidence=at_most(Confidence.MEDIUM, confidence(part.sure, held.sure)),
            )
            break
