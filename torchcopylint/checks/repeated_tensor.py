"""TCL707: one tensor or array stands in a container several times, and one of the entries is written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchcopylint.base.finding import Confidence, Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import DIRECT_FORMS, at_most, confidence, written_point
from torchcopylint.flow.facts import Repeated, UnitFacts, Write
from torchcopylint.flow.model import BUFFERS, FIELD

INTO_HELPERS = True
ACROSS_CALLS = True
WHERE_MADE = True
FORMS = frozenset({"multiplied", "fromkeys", "comprehension", "display"})


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report `[tensor] * n` and `dict.fromkeys(keys, tensor)` whose entries are written in place."""
    for fact in unit.facts:
        if isinstance(fact, Repeated) and fact.kind in BUFFERS and fact.form in FORMS:
            writes = [write for write in unit.writes.values() if _through_an_entry(write, fact)]
            if writes:
                yield _report(fact, min(writes, key=lambda w: (w.site < fact.site, w.site)))


def check_class(methods: Sequence[UnitFacts]) -> Iterator[Report]:
    """Report those that a method puts into a field, where another method writes an element of what the field holds when
    it begins."""
    for unit in methods:
        for fact in unit.facts:
            if not isinstance(fact, Repeated) or fact.kind not in BUFFERS or fact.form not in FORMS:
                continue
            if not unit.receiver or not fact.container.startswith(f"{unit.receiver}."):
                continue
            writes = [
                write
                for other in methods
                for write in other.writes.values()
                if other is not unit and write.form in DIRECT_FORMS and _is_entry_of(write, fact.container)
            ]
            if writes:
                found = _report(fact, min(writes, key=lambda w: w.site))
                yield found._replace(confidence=at_most(Confidence.MEDIUM, found.confidence))


def _report(fact: Repeated, write: Write) -> Report:
    return Report(
        site=fact.site,
        points=(
            Point(Role.SHARED, fact.site, f"shared.{fact.form}", {"name": fact.name}),
            written_point(write),
        ),
        values={"op": write.op},
        confidence=confidence(fact.sure, write.sure),
    )


def _is_entry_of(write: Write, container: str) -> bool:
    """Whether an element of what a field has held since before the method is written, under whatever name."""
    return write.owner == FIELD and write.owner_name.startswith(f"{container}[")


def _through_an_entry(write: Write, fact: Repeated) -> bool:
    """The write goes to one entry, and to nothing else that it may be."""
    if write.form not in DIRECT_FORMS or {storage | 1 for storage in write.storages} != fact.storages:
        return False
    # Written under a name that it had before, it is a buffer that the entries are meant to follow. What a loop has made
    # of such lists is reached through two of them. An entry is what it is called by its place: `rows[i] += 1`.
    unnamed = len(write.storages) > 1 and not write.named
    unnamed = unnamed or (not write.root and write.name.startswith(f"{fact.container}["))
    return write.bound >= fact.site or (unnamed and write.site > fact.site)
