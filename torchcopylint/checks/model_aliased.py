"""TCL704: a second name for a model is treated as a second model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchcopylint.base.finding import Confidence, Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import at_most, confidence, written_point
from torchcopylint.flow.facts import FieldAliased, FieldsPaired, ModulePaired, PutAside, UnitFacts
from torchcopylint.flow.model import Kind, Sure

INTO_HELPERS = True
ACROSS_CALLS = True


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report names that hold one model and meet as if they were two, or of which one was to keep an earlier state.

    A second name alone is no fault: `net = model` is a way to write less.
    """
    seen: set[int] = set()
    found = [fact for fact in unit.facts if isinstance(fact, ModulePaired | PutAside) and fact.bound >= 0]
    found = [fact for fact in found if isinstance(fact, ModulePaired) or fact.kind is Kind.MODULE]
    for fact in sorted(found, key=_when):
        if fact.bound in seen:
            continue
        seen.add(fact.bound)
        values = {"name": fact.name, "source": fact.source}
        if isinstance(fact, ModulePaired):
            met = Point(Role.READ, fact.site, f"read.{fact.form}", values)
            # What others ask for both, and in files of their own, is not seen here.
            points = (_shared(fact.bound, values),) if fact.site == fact.bound else (_shared(fact.bound, values), met)
            yield Report(fact.bound, points, values, confidence(fact.sure))
            continue
        write = unit.writes[fact.write]
        if fact.consumer == "turns":
            back = Point(Role.READ, fact.site, "read.averaged", values)
            points = (Point(Role.SHARED, fact.bound, "shared.turn", values), back)
            values = {**values, "name": write.cause or write.op}
            yield Report(fact.bound, points, values, confidence(fact.sure), variant="turns")
            continue
        used = Point(Role.READ, fact.site, "read.module", values)
        yield Report(
            site=fact.bound,
            points=(_shared(fact.bound, values), written_point(write), used),
            values={**values, "cause": write.cause or write.op},
            confidence=confidence(fact.sure),
            variant="kept",
        )


def _when(fact: ModulePaired | PutAside) -> tuple[bool, bool, int]:
    """Sorts facts by when they happen: what stands before a write happens on the loop's next turn.

    Of what is compared with itself, that it was put aside before says more.
    """
    compared = isinstance(fact, ModulePaired) and fact.form == "compared"
    return (compared, isinstance(fact, PutAside) and fact.site < fact.write, fact.site)


def check_class(methods: Sequence[UnitFacts]) -> Iterator[Report]:
    """Report fields that one method sets to one model and another treats as two.

    Or that are set to the model in training where it has done better than before: it goes on to be trained.
    """
    aliased = [fact for unit in methods for fact in unit.facts if isinstance(fact, FieldAliased) and fact.copied < 0]
    paired = [fact for unit in methods for fact in unit.facts if isinstance(fact, FieldsPaired)]
    steps = [write for unit in methods for write in unit.writes.values() if write.form == "step"]
    for fact in aliased:
        met = [pair for pair in paired if {pair.field, pair.other} == {fact.field, fact.source}]
        met = [pair for pair in met if pair.handed is fact.handed]
        if (fact.record or fact.separate) and (steps or fact.trained is not None):
            met = [pair for pair in met if pair.form not in ("compared", "modes")]
        if met and fact.only:
            # One that is set in training is `None` until then.
            first = min(met, key=lambda pair: (pair.form in ("modes", "named"), pair.site))
            me = "" if fact.handed else "self."
            values = {"name": f"self.{fact.field}", "source": f"{me}{fact.source}"}
            met_as = {**values, "source": f"{me}{first.other}"}
            yield Report(
                site=fact.site,
                points=(_shared(fact.site, values), Point(Role.READ, first.site, f"read.{first.form}", met_as)),
                values=values,
                # What has parameters and a state is a module.
                confidence=at_most(
                    # Each call is given what the constructor was given, or another one is meant: so say names alone.
                    Confidence.MEDIUM if first.form in ("modes", "named") or fact.handed else Confidence.HIGH,
                    confidence(max(fact.sure, Sure.LIKELY)),
                ),
            )
    for fact in aliased:
        if fact.record and fact.handed:
            # Whoever hands it over goes on training it: else there were nothing to count.
            values = {"name": f"self.{fact.field}", "source": fact.source, "cause": "the caller"}
            yield Report(fact.site, (_shared(fact.site, values),), values, Confidence.MEDIUM, variant="kept")
        elif (fact.record or fact.separate) and (steps or fact.trained is not None):
            write = fact.trained or min(steps, key=lambda step: step.site)
            values = {"name": f"self.{fact.field}", "source": f"self.{fact.source}"}
            yield Report(
                site=fact.site,
                points=(_shared(fact.site, values), written_point(write)),
                values={**values, "cause": write.cause or write.op},
                confidence=at_most(Confidence.MEDIUM, confidence(max(fact.sure, Sure.LIKELY))),
                variant="kept",
            )


def _shared(site: int, values: dict[str, str]) -> Point:
    return Point(Role.SHARED, site, "shared.name", {"source": values["source"], "result": values["name"]})
