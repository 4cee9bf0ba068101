"""TCL502: what a conversion returned is written, and its source is still wanted."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.report import Report
from torchcopylint.checks._common import (
    DIRECT_FORMS,
    PLAIN_HOWS,
    confidence,
    expected_unchanged,
    first_reads,
    is_meant_for,
    once_a_sharing,
    order_of,
    read_point,
    shared_points,
    suffers_caller,
    written_point,
)
from torchcopylint.flow.facts import ConditionalWrite, ReadAfter, UnitFacts, Write
from torchcopylint.flow.model import ARGUMENT, TENSORS, How

ACROSS_CALLS = True

PICKED = "when nothing has to be converted"
HOWS = PLAIN_HOWS | {How.CONDITIONAL}


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report such writes: the source is read later, or belongs to the caller, or is an attribute."""
    owns = first_reads(unit, own=True)
    others = first_reads(unit, own=False)
    found = []
    for write in unit.writes.values():
        if write.form not in DIRECT_FORMS or write.kind not in TENSORS:
            continue
        mine = owns.get(write.site, [])
        reads = [read for read in others.get(write.site, []) if _of_a_source(read) or _meets_source(read, mine)]
        expected = [read for read in expected_unchanged(unit, write, reads) if read.hows <= HOWS]
        reads = expected or [read for read in reads if not is_meant_for(read, write, mine, partly=True)]
        if write.form == "item" and not write.named:
            # `pick(x, index)[0] = 1` has no other purpose than to change what it picks from.
            reads = [read for read in reads if not _is_picked(read)]
        if reads:
            found.append((write, min(reads, key=order_of)))
    told = {write.site for write, _ in found}
    for write, read in once_a_sharing(found):
        when = next(link.when for link in (*read.below_written, *read.below_read) if link.when)
        yield Report(
            site=write.site,
            points=(*shared_points(read.links), written_point(write), read_point(read, write)),
            values={"name": write.root or write.name, "op": write.op, "source": read.name, "when": when},
            confidence=confidence(write.sure, read.sure),
        )
    outside = [fact for fact in unit.facts if isinstance(fact, ConditionalWrite) and fact.site not in told]
    yield from _outside(unit, outside, owns)


def _is_picked(read: ReadAfter) -> bool:
    """Whether what was written is a part of what is read, unless the index that it was picked by makes a copy."""
    return {link.when for link in read.below_written if link.when} == {PICKED}


def _of_a_source(read: ReadAfter) -> bool:
    """Whether what is read is what the written value was converted from.

    Where the conversion itself reads it, on a loop's next turn, it is converted anew.
    """
    if any(link.site == read.site for link in read.links):
        return False
    if read.element and not read.name.endswith("']"):
        # Elements of a list are not told apart.
        return False
    conditions = {link.when for link in read.below_written if link.when}
    if read.asked:
        return False
    return read.conditional and bool(conditions) and read.hows <= HOWS and read.kind in TENSORS


def _meets_source(read: ReadAfter, owns: list[ReadAfter]) -> bool:
    """Whether the source was written, and meets in one operation what was converted from it before: `x - x.cpu()` of
    then. Who computes something of the two takes them for two."""
    plain = not read.below_written and not read.element and not read.asked and read.hows <= HOWS
    taken = any(link.when for link in read.below_read) and all(link.site != read.site for link in read.links)
    known = read.conditional and read.kind in TENSORS and read.consumer in ("operand", "argument")
    return plain and taken and known and any(own.site == read.site for own in owns)


def _outside(unit: UnitFacts, facts: list[ConditionalWrite], owns: dict[int, list[ReadAfter]]) -> Iterator[Report]:
    """Writes that reach what others hold: once for each source, at the first."""
    seen: set[int] = set()
    # What is written again and again, and then let go of, can only have been meant to change the source.
    looked = {fact.storage for fact in facts if any(not _writes_on(unit, read) for read in owns.get(fact.site, ()))}
    for fact in sorted(facts, key=lambda fact: fact.site):
        write = unit.writes[fact.site]
        if (
            fact.storage in seen
            or fact.storage not in looked
            or not owns.get(fact.site)
            or not {link.how for link in fact.links} <= HOWS
        ):
            continue
        field = fact.own or _is_measured(unit, fact, write)
        variant = "field" if field else "caller" if _suffers_caller(unit, fact, write) else ""
        if not variant or (fact.own and write.dropped and not write.named):
            # `self.count.reshape(-1).add_(x)` has no other purpose than to change the attribute.
            continue
        seen.add(fact.storage)
        yield Report(
            site=fact.site,
            points=(*shared_points(tuple(reversed(fact.links))), written_point(write)),
            values={"name": fact.name, "op": write.op, "source": fact.source, "when": fact.when},
            confidence=confidence(write.sure, fact.sure),
            variant=variant,
        )


def _writes_on(unit: UnitFacts, read: ReadAfter) -> bool:
    """Whether a read is that of a statement that writes the same name once more: `x.mul_(2)`, then `x.add_(1)`."""
    again = unit.writes.get(read.site)
    return again is not None and again.root == read.name and again.dropped


def _is_measured(unit: UnitFacts, fact: ConditionalWrite, write: Write) -> bool:
    """Whether a function that changes nothing else makes something of a gradient, which stays where it is: its norm in
    other units, say."""
    alone = all(other.root == write.root and other.storages == write.storages for other in unit.writes.values())
    return alone and not fact.owner and fact.source.endswith(".grad") and unit.returns_value and write.reads_old


def _suffers_caller(unit: UnitFacts, fact: ConditionalWrite, write: Write) -> bool:
    if write.op == "copy_" and not write.reads_old and not write.partial:
        # Of what was converted nothing is left: it is room that the caller lends, to be filled.
        return False
    argument = fact.owner == ARGUMENT and fact.storage not in unit.returns_sources
    return argument and write.form in DIRECT_FORMS and suffers_caller(unit, write._replace(owner=ARGUMENT))
