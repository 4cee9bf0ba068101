"""What the two rules about memory shared with NumPy have in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchcopylint.base.finding import Confidence, Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import (
    DIRECT_FORMS,
    LOOKED_AT,
    at_most,
    confidence,
    edited_alone,
    edits_field,
    expected_unchanged,
    fields_collected,
    first_of_each,
    first_reads,
    is_meant_for,
    links_of,
    once_a_sharing,
    only_shown,
    order_of,
    read_point,
    shared_points,
    suffers_caller,
    written_point,
)
from torchcopylint.flow.facts import FieldOver, FieldsShare, LayoutRefused, Link, ReadAfter, UnitFacts, Write
from torchcopylint.flow.model import FIELD, How, Sure


def reports(unit: UnitFacts, how: How) -> Iterator[Report]:
    """Writes on one side of such a sharing while the other side is read later, or belongs to the caller."""
    alone = edited_alone(unit)
    owns = first_reads(unit, own=True)
    others = first_reads(unit, own=False)
    found = []
    reaching, edits = [], []
    shown: set[int] = set()
    # A tensor over what must not be written is a fault by itself, and its writes are no other one.
    readonly = {fact.site for fact in unit.facts if isinstance(fact, LayoutRefused) and fact.form == "readonly"}
    for write in unit.writes.values():
        if write.form not in DIRECT_FORMS or any(link.site in readonly for link in write.chain):
            continue
        later = others.get(write.site, [])
        reads = [read for read in later if how in read.hows]
        expected = expected_unchanged(unit, write, reads)
        mine = owns.get(write.site, [])
        # `for row in array: row[:2] = 0`, and then the array.
        ours = [*mine, *(read for read in later if how not in read.hows)]
        reads = [read for read in reads if not _filled_on_purpose(read, write, mine, _is_being_filled(unit, write))]
        reads = [read for read in reads if not _two_of_several(read, write) and not is_meant_for(read, write, ours)]
        reads = expected or [read for read in reads if not _is_for_the_other(read, write, ours)]
        if reads:
            found.append((write, min(reads, key=order_of)))
            if only_shown(unit, reads, mine):
                shown.add(write.site)
        elif suffers_caller(unit, write) and (_is_sure_way(write, how) or _is_for_somebody(unit, write, how, mine)):
            if not set(write.storages) & unit.returns_sources:
                reaching.append((write, links_of(write)))
        elif how is How.NUMPY and _edits_field(write, owns.get(write.site, [])):
            yield _of_field(write, write.owner_name, confidence(write.sure))
        elif write.site in alone and how in {link.how for link in write.chain}:
            mine = owns.get(write.site, [])
            parameter = alone[write.site] if how is How.NUMPY and _is_data(write, mine) else ""
            if parameter or edits_field(unit, write, mine):
                edits.append((write, links_of(write)))
    for write, _ in first_of_each(edits):
        sure = at_most(Confidence.MEDIUM, confidence(write.sure))
        yield _of_field(write, alone[write.site] or write.owner_name, sure, _condition(write))
    yield from _collected(unit, how, {write.site for write, _ in found})
    yield from _left_in_field(unit, how, {write.site for write, _ in found})
    for write, links in first_of_each(reaching):
        points = (*shared_points(links), written_point(write))
        when = _condition(write)
        yield Report(
            write.site,
            points,
            _values(write, write.owner_name, when),
            confidence(write.sure),
            "conditional" if when else "caller",
        )
    for write, read in once_a_sharing(found):
        when = next((link.when for link in read.links if link.when), "")
        points = (*shared_points(read.links), written_point(write), read_point(read, write))
        sure = confidence(write.sure, max(read.sure, Sure.LIKELY))
        variant = "conditional" if when else "shown" if write.site in shown else ""
        yield Report(write.site, points, _values(write, read.name, when), sure, variant)


def of_fields(methods: Sequence[UnitFacts], how: How) -> Iterator[Report]:
    """Where a constructor has kept an array and a tensor over it in two fields, and a method edits one of them.

    Only if methods look at both: if not, the one that is edited is there for the other's sake.
    """
    written = [(unit, write) for unit in methods for write in unit.writes.values() if unit.name != "__init__"]
    sites = {write.site for _, write in written}
    for fact in [fact for unit in methods for fact in unit.facts if isinstance(fact, FieldsShare) and fact.how is how]:
        both = {fact.one, fact.other}
        edits = [
            (unit, write, write.owner_name.removeprefix(f"{unit.receiver}."))
            for unit, write in written
            if write.form in DIRECT_FORMS and write.reads_old and write.owner == FIELD
            if all(link.sure or link.when for link in write.chain)
        ]
        edits = [edit for edit in edits if edit[2] in both]
        looks = [(field, site) for field, site in fact.looks if site not in sites]
        others = [site for field, site in looks if edits and field != edits[0][2]]
        if others and len({field for field, _ in looks}) > 1:
            unit, write, _ = edits[0]
            name = f"{unit.receiver}.{(both - {edits[0][2]}).pop()}"
            when = next((link.when for link in fact.links if link.when), "")
            read = Point(Role.READ, min(others), "read.field", {"name": name})
            points = (*shared_points(fact.links), written_point(write), read)
            sure = at_most(Confidence.MEDIUM, confidence(fact.sure, write.sure))
            yield Report(write.site, points, _values(write, name, when), sure, "conditional" if when else "")


def _collected(unit: UnitFacts, how: How, told: set[int]) -> Iterator[Report]:
    """A method puts a field into a list of its object, by way of NumPy, and writes the field in place."""
    for fact, write in fields_collected(unit):
        if how in {link.how for link in fact.links} and write.site not in told:
            kept = Point(
                Role.KEPT, fact.site, "kept.append", {"name": fact.links[-1].result, "container": fact.container}
            )
            points = (*shared_points(fact.links), kept, written_point(write))
            sure = at_most(Confidence.MEDIUM, confidence(fact.sure, write.sure))
            yield Report(write.site, points, _values(write, fact.container, ""), sure)


def _left_in_field(unit: UnitFacts, how: How, told: set[int]) -> Iterator[Report]:
    """A constructor keeps one side in a field, and then computes with the other in place."""
    seen = set(told)
    for fact in unit.facts:
        if isinstance(fact, FieldOver) and fact.how is how and fact.site not in seen:
            seen.add(fact.site)
            write = unit.writes[fact.site]
            name = f"{unit.receiver}.{fact.field}"
            read = Point(Role.READ, fact.read, "read.field", {"name": name})
            points = (*shared_points(fact.links), written_point(write), read)
            sure = at_most(Confidence.MEDIUM, confidence(fact.sure, write.sure))
            yield Report(write.site, points, _values(write, name, ""), sure)


def _is_sure_way(write: Write, how: How) -> bool:
    """Whether what is written, under a name, shares its memory on no condition, by way of NumPy."""
    links = links_of(write)
    return write.named and how in {link.how for link in links} and not any(link.when for link in links)


def _is_for_somebody(unit: UnitFacts, write: Write, how: How, owns: list[ReadAfter]) -> bool:
    """Whether an array that was taken on a condition (`x.cpu().numpy()`) is edited for what is computed of it, and some
    caller in the file goes on to hold what it was taken from."""
    taken = write.named and how in {link.how for link in write.chain} and bool(_condition(write))
    return taken and write.owner_name in unit.held_by_callers and any(read.consumer in LOOKED_AT for read in owns)


def _of_field(write: Write, source: str, sure: Confidence, when: str = "") -> Report:
    points = (*shared_points(links_of(write)), written_point(write))
    return Report(write.site, points, _values(write, source, when), sure, "conditional" if when else "field")


def _is_data(write: Write, owns: list[ReadAfter]) -> bool:
    """Whether an array that sits on what it was taken from, surely or if nothing had to be converted (`.cpu()`), is
    edited under a name, and then looked at."""
    surely = all(link.sure and not link.when for link in write.chain) or bool(_condition(write))
    return write.named and surely and any(read.consumer in LOOKED_AT for read in owns)


def _condition(write: Write) -> str:
    """The condition on which an array sits on what it was taken from, if that is all that is not sure of it."""
    for link in reversed(write.chain):
        if link.when.startswith("when "):
            return link.when
        if not link.sure:
            return ""
    return ""


def _edits_field(write: Write, owns: list[ReadAfter]) -> bool:
    """Whether an array of what a field keeps is edited in place, surely, and is then returned as if it were new."""
    surely = len(write.storages) == 1 and all(link.sure and not link.when for link in write.chain)
    through = any(link.how is How.NUMPY for link in write.chain)
    returned = any(read.consumer == "return" for read in owns)
    return write.owner == FIELD and surely and through and write.named and write.reads_old and returned


def _values(write: Write, other: str, when: str) -> dict[str, str]:
    return {"name": write.root or write.name, "op": write.op, "source": other, "when": when}


def _filled_on_purpose(read: ReadAfter, write: Write, owns: list[ReadAfter], filling: bool) -> bool:
    """A buffer that was allocated empty is filled through its other side.

    Either only that other side is used then, or what was taken of it was there to fill it by, whatever is read of that.
    """
    carried = any(link.site > write.site for link in read.links) or read.element
    return write.blank and not carried and (not owns or (filling and bool(read.below_written)))


def _is_for_the_other(read: ReadAfter, write: Write, ours: Sequence[ReadAfter]) -> bool:
    """Whether elements are set of something that nobody looks at again, and the other side is returned: that is what
    it was done for. `grid = x.numpy(); grid[[0, 1]] = grid[[1, 0]]; return x`."""
    return write.form == "item" and write.named and not ours and read.consumer == "return"


def _is_being_filled(unit: UnitFacts, write: Write) -> bool:
    """Whether a write puts something in place of what was there, or comes after one that does, under the same name."""
    same = [one for one in unit.writes.values() if one.root == write.root and one.storages == write.storages]
    return any(one.site <= write.site and one.form == "item" and not one.reads_old for one in same)


def _two_of_several(read: ReadAfter, write: Write) -> bool:
    """What was written and what is read were taken from one of several things each, of which none is known to be the
    other: two elements of what a loop has filled. A read of the whole container meets all of them."""
    if read.certain:
        return False
    written = write.root or write.name
    if read.element and "[" in written and read.name.partition("[")[0] == written.partition("[")[0]:
        # Who fills one element after another of a list, and then takes the list, wants what was written.
        return True
    if not _one_of_several(read.below_written):
        return False
    return _one_of_several(read.below_read) or not (read.element or read.below_read)


def _one_of_several(links: tuple[Link, ...]) -> bool:
    """Whether the uppermost link is unsure, and not for a condition."""
    return bool(links) and not links[-1].sure and not links[-1].when
