"""TCL504: a dataset edits the sample that it keeps, each time the sample is fetched; any object, what it keeps, each
time that it is asked for something made of that."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Confidence, Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import (
    DIRECT_FORMS,
    PARTS,
    at_most,
    confidence,
    edited_alone,
    edits_whole_field,
    first_reads,
    order_of,
    read_point,
    shared_points,
    written_point,
)
from torchcopylint.flow.facts import Link, ReadAfter, SampleEdited, SumScaled, UnitFacts, Write
from torchcopylint.flow.model import ARITHMETIC, FIELD, MEMO, How, Kind

ACROSS_CALLS = True

FETCHING = frozenset({"__getitem__", "__getitems__", "get"})
"""Methods that hand out a sample and leave the data as it is."""
GOING_THROUGH = "__iter__"
"""The method that hands out all samples, one after the other."""
AUGMENTING = ("augmented", "operator")
HANDED_ON = frozenset({"return", "operand", "look", "argument"})
# fmt: off
CHANGING = frozenset({
    "accumulate", "add", "advance", "append", "apply", "decay", "fit", "init", "initialize", "insert", "move", "push",
    "record", "refresh", "reset", "roll", "run", "set", "shift", "step", "train", "update", "write",
})
# fmt: on
"""First words of the names of methods that are there to change what the object keeps."""


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report the first write into each stored sample that is handed out afterwards, and into what a memo keeps."""
    yield from _memos(unit)
    yield from _transforms(unit)
    yield from _when_asked(unit)
    goes_through = unit.name == GOING_THROUGH
    if unit.class_number < 0 or not (unit.name in FETCHING or goes_through) or unit.class_kind is Kind.MODULE:
        return
    reads_after = {own: first_reads(unit, own=own) for own in (True, False)}
    seen: set[str] = set()
    for site, write in sorted(unit.writes.items()):
        links = tuple(link for link in write.chain if link.how is not None)
        reads = reads_after[True].get(site, []) + reads_after[False].get(site, [])
        stored = write.held or write.owner_name
        # What a helper writes and returns, the next fetch reads, whether or not this one looks at it again.
        used = bool(reads) or (write.form == "call" and not write.dropped)
        if not _edits_a_sample(write, links) or not used or stored in seen:
            continue
        handed_out = [read for read in reads if read.consumer == ("yield" if goes_through else "return")]
        if goes_through and not handed_out:
            continue
        seen.add(stored)
        yield _report(write, links, min(handed_out or reads, key=order_of, default=None))


def _transforms(unit: UnitFacts) -> Iterator[Report]:
    seen: set[str] = set()
    for fact in unit.facts:
        if isinstance(fact, SampleEdited) and fact.name not in seen:
            seen.add(fact.name)
            values = {"name": fact.name, "op": fact.op, "source": fact.source}
            handed = Point(Role.SHARED, fact.handed, "shared.handed", values)
            edited = Point(Role.WRITTEN, fact.site, "written", values)
            yield Report(
                fact.site, (handed, edited), values, at_most(Confidence.MEDIUM, confidence(fact.sure)), "transform"
            )


def _memos(unit: UnitFacts) -> Iterator[Report]:
    seen: set[str] = set()
    for site, write in sorted(unit.writes.items()):
        changes = write.reads_old or write.partial or write.form == "item"
        if write.owner == MEMO and write.form in DIRECT_FORMS and changes and write.owner_name not in seen:
            seen.add(write.owner_name)
            values = {"name": write.root or write.name, "op": write.op, "source": write.owner_name}
            kept = Point(Role.SHARED, write.chain[-1].site, "shared.memo", values)
            yield Report(site, (kept, written_point(write)), values, confidence(write.sure), "memo")


def _when_asked(unit: UnitFacts) -> Iterator[Report]:
    """What a method takes for a copy of a field, edits from its old content and hands out, or what it makes of it.

    Who sets a field of its object on the way keeps its state by that, and so does who is called for doing so.
    """
    asks = unit.class_number >= 0 and unit.name not in FETCHING and unit.name != GOING_THROUGH
    first_word = unit.name.strip("_").partition("_")[0].lower()
    if not asks or unit.sets_fields or not unit.returns_value or first_word in CHANGING or unit.name.endswith("_"):
        return
    reads_after = first_reads(unit, own=True)
    seen: set[str] = set()
    alone, others = edited_alone(unit), first_reads(unit, own=False)
    scaled = {fact.site for fact in unit.facts if isinstance(fact, SumScaled)}
    for site, write in sorted(unit.writes.items()):
        field = write.owner_name
        if write.owner != FIELD or not write.reads_old:
            # Who begins by filling all of it has it for room to work in.
            seen |= {field} if write.owner == FIELD and not write.partial and write.form in DIRECT_FORMS else set()
            continue
        read = min(reads_after.get(site, []), key=order_of, default=None)
        if read is None or read.consumer not in HANDED_ON or field in seen or not _for_a_copy(unit, write):
            continue
        if others.get(site) or site in scaled:
            # Another name is read for what it was, or other methods go on adding to it: that is the pair to tell.
            continue
        hows = {link.how for link in write.chain if link.how is not None}
        if site in alone and any(
            edits_whole_field(unit, write, reads_after[site], by) for by in {*hows - PARTS, How.VIEW}
        ):
            # Nothing comes in from elsewhere: the rules on how the two share tell it.
            continue
        if hows & PARTS and not unit.parameters <= {unit.receiver}:
            # Who is told which part to take may be there to bring it up to date.
            continue
        seen.add(field)
        values = {"name": write.root, "op": write.op, "source": field, "cause": unit.name}
        links = tuple(reversed(write.chain))
        points = (*shared_points(links), written_point(write), read_point(read, write))
        yield Report(site, points, values, at_most(Confidence.MEDIUM, confidence(write.sure)), "method")


def _for_a_copy(unit: UnitFacts, write: Write) -> bool:
    """Whether a part of a field is surely edited through another name, in a way that a second call does once more.

    Who changes all of a field by a short name for it (`mean = self.mean`, `mean *= 0.9`) lets it fade, or goes on.
    """
    again = write.op in ARITHMETIC if write.form == "method" else write.form in (*AUGMENTING, "item")
    if not again or not write.partial or not write.root.isidentifier():
        return False
    surely = all(link.sure and link.when == "" for link in write.chain) and len(write.storages) == 1
    field = write.owner_name.removeprefix(f"{unit.receiver}.")
    return surely and field.isidentifier() and field not in unit.properties


def _report(write: Write, links: tuple[Link, ...], read: ReadAfter | None) -> Report:
    return Report(
        site=write.site,
        points=(
            *(shared_points(tuple(reversed(links))) if not write.held else ()),
            written_point(write),
            *((read_point(read, write),) if read is not None else ()),
        ),
        values={"name": write.root or write.name, "op": write.op, "source": write.held or write.owner_name},
        confidence=confidence(write.sure),
    )


def _edits_a_sample(write: Write, links: tuple[Link, ...]) -> bool:
    """Whether a write goes into a part of what the object keeps.

    A write of the whole field, or one that does not look at the old content, fills a cache or a scratch buffer.
    """
    if (write.owner != FIELD and not write.held) or write.form not in DIRECT_FORMS:
        return False
    part = bool(write.held) or "[" in write.owner_name or any(link.how in PARTS for link in links)
    filled = not write.reads_old and write.form != "item"
    return part and not filled and (bool(write.held) or _certain(write, links))


def _certain(write: Write, links: tuple[Link, ...]) -> bool:
    """A row of an array is a number where there is one dimension; what has items, or a tensor over it, is none."""
    is_array = write.form == "item" or any(link.how is How.FROM_NUMPY for link in links)
    return all(link.when == "" and (link.sure or is_array) for link in links)
