"""TCL705: a shallow copy of a module is used after the parameters that it shares were overwritten."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeGuard

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import DIRECT_FORMS, confidence, written_point, written_since
from torchcopylint.flow.facts import CopyFrozen, FieldAliased, FieldsPaired, ModuleShallow, Relation, UnitFacts, Write
from torchcopylint.flow.model import TENSORS, Sure

ACROSS_CALLS = True
OWN_PLACES = True


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

    for frozen in unit.facts:
        if isinstance(frozen, CopyFrozen) and frozen.made not in seen:
            seen.add(frozen.made)
            yield _frozen(frozen)


def _frozen(fact: CopyFrozen) -> Report:
    """Only the copy was to be frozen: a switch is a part of a parameter, and there is one parameter."""
    names = {"source": fact.source, "result": fact.name, "name": fact.name, "op": fact.op, "cause": fact.op}
    return Report(
        site=fact.made,
        points=(
            Point(Role.SHARED, fact.made, "shared.shallow", names),
            Point(Role.WRITTEN, fact.site, "written.cause", {**names, "cause": f"{fact.name}: {fact.op}"}),
        ),
        values=names,
        confidence=confidence(fact.sure),
        variant="frozen",
    )


def check_class(methods: Sequence[UnitFacts]) -> Iterator[Report]:
    """Report fields that the constructor sets to shallow copies of one another, where another method trains and treats
    them as two models; and to shallow copies of what it is handed, where a method makes running averages of them."""
    paired = [fact for unit in methods for fact in unit.facts if isinstance(fact, FieldsPaired)]
    yield from _averages(methods, paired)
    steps = [write for unit in methods for write in unit.writes.values() if write.form == "step"]
    for unit in methods:
        for fact in unit.facts:
            if not _is_copied(fact) or fact.handed:
                continue
            met = [pair for pair in paired if {pair.field, pair.other} == {fact.field, fact.source}]
            written = steps or _written_together(methods, met)
            if met and written:
                names = {"source": f"self.{fact.source}", "result": f"self.{fact.field}", "name": f"self.{fact.field}"}
                write = min(written, key=lambda one: one.site)
                yield Report(
                    site=fact.copied,
                    points=(
                        Point(Role.SHARED, fact.copied, "shared.shallow", names),
                        written_point(write),
                        Point(Role.READ, min(pair.site for pair in met), "read.shallow", names),
                    ),
                    values={**names, "cause": write.cause or write.op},
                    confidence=confidence(fact.sure),
                )


def _written_together(methods: Sequence[UnitFacts], met: Sequence[FieldsPaired]) -> list[Write]:
    """The writes of methods in which the parameters of two fields meet one by one, and those of the one are written:
    they are those of the other, whoever trains that. A shallow copy has the same parameters, not only their memory:
    `.data =` where they meet sets both as well."""
    found: list[Write] = []
    for unit in methods:
        mine = [pair.site for pair in met if pair in unit.facts and pair.form not in ("modes", "named")]
        writes = [write for write in unit.writes.values() if mine and write.site >= min(mine)]
        found += [write for write in writes if write.form in DIRECT_FORMS and write.kind in TENSORS]
        found += [write for write in writes if write.op == ".data =" and write.site in mine]
    return found


def _averages(methods: Sequence[UnitFacts], paired: Sequence[FieldsPaired]) -> Iterator[Report]:
    writes = {write.site: write for unit in methods for write in unit.writes.values()}
    for fact in (fact for unit in methods for fact in unit.facts):
        if not _is_copied(fact) or not fact.handed:
            continue
        met = [pair.site for pair in paired if pair.handed and pair.field == fact.field and pair.site in writes]
        if met:
            names = {"source": fact.source, "result": f"self.{fact.field}", "name": f"self.{fact.field}"}
            write = writes[min(met)]
            yield Report(
                site=fact.copied,
                points=(Point(Role.SHARED, fact.copied, "shared.shallow", names), written_point(write)),
                values={**names, "cause": write.cause or write.op},
                # What has parameters, or a state, of which averages are made is a model.
                confidence=confidence(max(fact.sure, Sure.LIKELY)),
            )


def _is_copied(fact: Relation) -> TypeGuard[FieldAliased]:
    return isinstance(fact, FieldAliased) and fact.copied >= 0 and fact.method == "__init__"
