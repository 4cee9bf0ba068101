"""TCL501: a view or second name is written while base and view are both wanted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchcopylint.base.finding import Confidence, Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import (
    DIRECT_FORMS,
    LOOKED_AT,
    PARTS,
    PLAIN_HOWS,
    at_most,
    confidence,
    edited_alone,
    edits_openly,
    edits_whole_field,
    expected_unchanged,
    first_of_each,
    first_of_parts,
    first_reads,
    kept_gradient,
    links_of,
    once_a_sharing,
    only_shown,
    order_of,
    read_point,
    shared_points,
    suffers_caller,
    written_point,
)
from torchcopylint.checks._named_results import of_results
from torchcopylint.checks._renamed import of_renamed
from torchcopylint.flow.facts import (
    CallerSuffers,
    EditedEachTurn,
    EntriesEdited,
    EntryWritten,
    FieldIsGlobal,
    FieldsTwins,
    Link,
    PartHandedOut,
    PartSuffers,
    ReadAfter,
    ScratchEdited,
    SumScaled,
    UnitFacts,
    Write,
)
from torchcopylint.flow.model import FIELD, How

OF_GUESTS = True

_FORMS = DIRECT_FORMS | {"statistics"}
_WANTED = frozenset({"operand", "argument", "return"})
_KEPT = _WANTED | {"store", "yield"}
_SHARING = PLAIN_HOWS | {How.CONDITIONAL, How.PARAMETER}
"""Ways to share of which a pair is told: of a detached one, and of one that was put on the storage of another, other
rules tell."""
_STEPPED = _SHARING | {How.PARAMETERS, How.FIELD}
"""The same of what an optimizer steps on."""


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report writes through one holder while another is read later as if it were something else."""
    owns = first_reads(unit, own=True)
    others = first_reads(unit, own=False)
    alone = edited_alone(unit)
    handed_out = {fact.site for fact in unit.facts if isinstance(fact, PartHandedOut) and not fact.whole}
    scratch = {fact.site for fact in unit.facts if isinstance(fact, ScratchEdited)}
    found = []
    reaching, edits = [], []
    for write in unit.writes.values():
        later = others.get(write.site, [])
        if write.form == "step":
            # What an optimizer steps on is rarely looked at by another name, and then for what it has become.
            kept = [read for read in expected_unchanged(unit, write, later) if read.certain and read.hows <= _STEPPED]
            found += [(write, read) for read in kept[:1]]
        if write.form not in _FORMS or _says_so(unit, write):
            continue
        reads = _of_other_holders(unit, write, later)
        own = owns.get(write.site, [])
        expected = expected_unchanged(unit, write, reads)
        if write.blank and not write.reads_old and not expected:
            reads = _of_filled(unit, write, reads, own)
            if not reads:
                continue
        wanted = expected or _wanted(unit, write, reads, own)
        if write.site in alone and not wanted and _for_the_moment(own, _ours(unit, write)):
            wanted = reads
        if write.site in handed_out and not wanted and _goes_on_with_part(unit, write, reads, own):
            # By its own name, if it is read by that, and not as what the next call hands out.
            wanted = [read for read in reads if not read.name.endswith(")")] or reads
        if write.site in scratch and not wanted and not own and not (unit.takes_inplace or unit.name.endswith("_")):
            wanted = _uses_base(write, reads)
        if wanted:
            found.append((write, min(wanted, key=order_of)))
        elif _reaches_caller(unit, write, own, reads):
            reaching.append((write, links_of(write)))
        elif write.site in alone and edits_whole_field(unit, write, own):
            edits.append((write, links_of(write)))
    told = {link.site for _, read in found if not read.second for link in read.links}
    found = [(write, read) for write, read in found if not read.second or told.isdisjoint(x.site for x in read.links)]
    yield from _of_edits(edits)
    yield from _of_reaching(unit, reaching)
    told = {write.site for write, _ in (*found, *reaching, *edits)}
    apart = (*of_results(unit, owns), *of_renamed(unit, owns, others))
    yield from (report for report in apart if report.site not in told)
    yield from _of_turns(unit, {*told, *(link.site for _, read in found for link in read.links)})
    yield from _of_entries(unit, told)
    yield from (_of_part(unit, fact) for fact in _parts(unit, owns) if fact.site not in told)
    for write, read in once_a_sharing(found):
        points = (*shared_points(read.links), written_point(write), read_point(read, write))
        name, source = _pair(read, write)
        if not source:
            continue
        values = {"name": name, "op": write.op, "source": source}
        limit = Confidence.MEDIUM if write.site in handed_out | scratch else Confidence.HIGH
        shown = only_shown(unit, others.get(write.site, []), owns.get(write.site, []))
        variant = "shown" if shown else ""
        yield Report(write.site, points, values, at_most(limit, confidence(write.sure, read.sure)), variant)


def _of_edits(edits: list[tuple[Write, tuple[Link, ...]]]) -> Iterator[Report]:
    """What is written for the moment, and is a field of an object."""
    for write, links in first_of_each(edits):
        points = (*shared_points(links), written_point(write))
        values = {"name": write.root or write.name, "op": write.op, "source": write.owner_name}
        yield Report(write.site, points, values, at_most(Confidence.MEDIUM, confidence(write.sure)), "field")


def _of_reaching(unit: UnitFacts, reaching: list[tuple[Write, tuple[Link, ...]]]) -> Iterator[Report]:
    """What is written by way of a view, and is the caller's."""
    suffering = {fact.site for fact in unit.facts if isinstance(fact, CallerSuffers)}
    for write, links in first_of_each(reaching):
        points = (*shared_points(links), written_point(write))
        values = {"name": write.root or write.name, "op": write.op, "source": write.owner_name}
        sure = confidence(write.sure)
        if sure is not Confidence.HIGH and write.site not in suffering:
            # That somebody hands in a tensor, and that he looks at it again, is one assumption too many.
            sure = Confidence.LOW
        yield Report(write.site, points, values, sure, "caller")


def _of_other_holders(unit: UnitFacts, write: Write, reads: list[ReadAfter]) -> list[ReadAfter]:
    """The reads by holders of their own, which a write has hit."""
    reads = [read for read in reads if _plain(read) or _is_kept_by_name(read, write)]
    # A display that is returned (`return s.x, s.y`) is no holder of its own: it was written by what stands there.
    reads = [read for read in reads if not (read.consumer == "return" and read.name.startswith("...["))]
    return _but_of_windows(unit, write, [read for read in reads if not kept_gradient(unit, read) and not read.asked])


def _of_filled(unit: UnitFacts, write: Write, reads: list[ReadAfter], own: list[ReadAfter]) -> list[ReadAfter]:
    """The reads by a second name for what has nothing in it yet, where it is set by either name
    (`pos = neg = torch.zeros(n); pos[x > 0] = 1; neg[x < 0] = 1`), or both go into one thing (`old = buf; buf[i] = x;
    buf - old`). Who only wants another name fills by that alone, and looks at that alone."""
    if not own:
        return []
    mine = set(write.storages)
    filled = {one.root for one in unit.writes.values() if one.blank and one.form in _FORMS and mine == {*one.storages}}
    plain = [read for read in reads if all(link.how is None for link in read.links)]
    # What an earlier turn has left elsewhere had been filled by then: `buf.copy_(frame)`, and `self.last = buf` behind.
    # Who fills one element on each turn is not done yet.
    whole = [read for read in reads if not write.partial and read.bound > write.site]
    earlier = [read for read in whole if not read.below_written and not read.second]
    if earlier:
        return earlier
    met = {read.site for read in own if read.consumer in ("operand", "argument") and read.name == write.root}
    both = [read for read in plain if read.bound < write.site and read.site in met and read.name.isidentifier()]
    if both:
        return both
    if not write.root.isidentifier():
        return []
    return [read for read in plain if read.name in filled - {write.root} and read.name.isidentifier()]


def _but_of_windows(unit: UnitFacts, write: Write, reads: list[ReadAfter]) -> list[ReadAfter]:
    """The reads but those through which the base goes on being filled, and what follows these by the same name."""
    filled = {read.name: read.site for read in reversed(reads) if _fills(unit, write, read)}
    return [read for read in reads if read.below_written or read.site < filled.get(read.name, read.site + 1)]


def _fills(unit: UnitFacts, write: Write, read: ReadAfter) -> bool:
    """Whether a view is there to fill its base: it was written before that was written by its own name, and is looked
    at to be written once more. `torch.gather(x, -1, i, out=part); whole *= sign; part.add_(y)`."""
    again = unit.writes.get(read.site)
    if read.below_written or not read.name.isidentifier() or again is None or again.root != read.name:
        return False
    return any(one.root == read.name and read.bound < site < write.site for site, one in unit.writes.items())


def _wanted(unit: UnitFacts, write: Write, reads: list[ReadAfter], own: list[ReadAfter]) -> list[ReadAfter]:
    """The reads by other names that show that what was written and what is read were to be two."""
    ours = _ours(unit, write)
    wanted = [read for read in reads if _wanted_apart(read, own, ours) or _is_lost(write, read)]
    return wanted or [read for read in reads if _was_before(write, read)]


def _ours(unit: UnitFacts, write: Write) -> set[int]:
    """The sites of the writes by the same name."""
    return {other.site for other in unit.writes.values() if other.root == write.root}


def _parts(unit: UnitFacts, owns: dict[int, list[ReadAfter]]) -> Iterator[PartSuffers]:
    """Where a view of what a caller's object holds is scaled or shifted, and looked at, for a result of its own."""
    for how in (How.VIEW, *PARTS):
        for fact in first_of_parts(unit, how):
            ours = _ours(unit, unit.writes[fact.site])
            if unit.writes[fact.site].reads_old and _for_the_moment(owns.get(fact.site, []), ours):
                yield fact


def _of_part(unit: UnitFacts, fact: PartSuffers) -> Report:
    write = unit.writes[fact.site]
    read = Point(Role.READ, fact.read, "read.caller", {"name": fact.passed})
    values = {"name": write.root or write.name, "op": write.op, "source": fact.name}
    points = (*shared_points(links_of(write)), written_point(write), read)
    return Report(write.site, points, values, at_most(Confidence.MEDIUM, confidence(fact.sure)), "caller")


def check_class(methods: Sequence[UnitFacts]) -> Iterator[Report]:
    """Report where a method writes in place what a field has from the module where nothing else was handed in."""
    taken = [fact for unit in methods for fact in unit.facts if isinstance(fact, FieldIsGlobal)]
    writes = [(unit, write) for unit in methods for write in unit.writes.values() if write.form in DIRECT_FORMS]
    writes = [(unit, write) for unit, write in writes if write.owner == FIELD]
    for fact in taken:
        hit = [write for unit, write in writes if write.owner_name == f"{unit.receiver}.{fact.field}"]
        if hit:
            write = min(hit, key=lambda write: write.site)
            field = write.owner_name
            values = {"name": field, "op": write.op, "source": fact.source, "result": field}
            shared = Point(Role.SHARED, fact.site, "shared.name", values)
            sure = at_most(Confidence.MEDIUM, confidence(fact.sure, write.sure))
            yield Report(write.site, (shared, written_point(write)), values, sure)
    yield from _twins(methods, writes)


def _twins(methods: Sequence[UnitFacts], writes: Sequence[tuple[UnitFacts, Write]]) -> Iterator[Report]:
    """Where a method has given one tensor to two fields, and others treat them as two: both are written in place,
    or one is, and somewhere they are operands of one operation."""
    twins = [(unit.name, one) for unit in methods for one in unit.facts if isinstance(one, FieldsTwins)]
    for setter, fact in twins:
        mine: dict[str, list[tuple[UnitFacts, Write]]] = {fact.field: [], fact.other: []}
        for unit, write in writes:
            for field, hits in mine.items():
                before = fact.made and unit.name == setter and write.site < fact.site
                if unit.name != "__init__" and not before and write.root == f"{unit.receiver}.{field}":
                    hits.append((unit, write))
        hit = [*mine[fact.field], *mine[fact.other]]
        if not hit or not (all(mine.values()) or fact.met):
            continue
        unit, write = min(hit, key=lambda pair: pair[1].site)
        names = [f"{unit.receiver}.{field}" for field in (fact.field, fact.other)]
        name, source = names if write.root == names[0] else reversed(names)
        values = {"name": name, "op": write.op, "source": source, "result": name}
        shared = Point(Role.SHARED, fact.site, "shared.name", values)
        sure = at_most(Confidence.MEDIUM, confidence(fact.sure, write.sure))
        yield Report(write.site, (shared, written_point(write)), values, sure)


def _of_turns(unit: UnitFacts, told: set[int]) -> Iterator[Report]:
    """What each turn of a loop edits as if it had taken a copy; but for what is told of already."""
    for fact in unit.facts:
        if isinstance(fact, EditedEachTurn) and told.isdisjoint((fact.site, fact.bound)):
            write = unit.writes[fact.site]
            values = {"name": fact.name, "op": write.op, "source": fact.source, "result": fact.name, "target": ""}
            points = (
                Point(Role.SHARED, fact.bound, "shared.name", values),
                written_point(write),
                Point(Role.READ, fact.read, "read.operand.next", values),
            )
            yield Report(fact.site, points, values, at_most(Confidence.MEDIUM, confidence(write.sure)))


def _of_entries(unit: UnitFacts, told: set[int]) -> Iterator[Report]:
    """What containers hold that is two entries, or stands in two of them; but for writes that are told of already."""
    for fact in unit.facts:
        if isinstance(fact, EntryWritten):
            yield _as_two_entries(fact)
        elif isinstance(fact, SumScaled) and fact.site not in told:
            yield _of_sum(fact)
        elif isinstance(fact, EntriesEdited) and fact.site not in told:
            yield _of_copied(fact)


def _of_sum(fact: SumScaled) -> Report:
    """A sum that a method scales by a second name, and others add to."""
    values = {"name": fact.name, "op": fact.op, "source": fact.field, "result": fact.name, "cause": ""}
    points = (
        Point(Role.SHARED, fact.shared, "shared.name", values),
        Point(Role.WRITTEN, fact.site, "written", values),
        Point(Role.READ, fact.added, "read.operand", {"name": fact.field, "target": ""}),
    )
    return Report(fact.site, points, values, at_most(Confidence.MEDIUM, confidence(fact.sure)), "field")


def _as_two_entries(fact: EntryWritten) -> Report:
    names = {"name": fact.name, "source": fact.entry, "result": fact.other, "op": fact.op}
    written, shared = (
        Point(Role.WRITTEN, fact.site, "written", names),
        Point(Role.SHARED, fact.put, "shared.name", names),
    )
    first, second = (written, shared) if fact.put >= fact.site else (shared, written)
    read = Point(Role.READ, fact.read, f"read.{fact.consumer}", {"name": fact.entry, "target": ""})
    values = {"name": fact.entry, "source": fact.other, "op": fact.op}
    return Report(fact.site, (first, second, read), values, confidence(fact.sure))


def _of_copied(fact: EntriesEdited) -> Report:
    names = {"name": f"{fact.name}[...]", "source": fact.source, "result": fact.copied, "op": fact.op, "cause": ""}
    points = (
        Point(Role.SHARED, fact.made, "shared.container", names),
        Point(Role.WRITTEN, fact.site, "written", names),
        Point(
            Role.READ,
            fact.read,
            "read.operand" if fact.read > fact.site else "read.operand.next",
            {"name": f"{fact.other}[...]", "target": ""},
        ),
    )
    values = {"name": f"{fact.name}[...]", "source": f"{fact.other}[...]", "op": fact.op}
    return Report(fact.site, points, values, confidence(fact.sure))


def _says_so(unit: UnitFacts, write: Write) -> bool:
    """Whether a method of the same object is called that says by its name that it works in place: `self.pivot_(i)`."""
    name = write.cause.removesuffix("(...)")
    return write.form == "call" and name.endswith("_") and bool(unit.receiver) and name.startswith(f"{unit.receiver}.")


def _plain(read: ReadAfter) -> bool:
    # Where a name holds a copy on one path and the very object on the other, as of the best so far, both were meant.
    surely = read.certain or (read.partly and [link.result for link in read.links if link.how is None] == [read.name])
    return surely and read.hows <= _SHARING and read.consumer != "swap"


def _is_kept_by_name(read: ReadAfter, write: Write) -> bool:
    """Whether elements of something are set while others are read by a second name for it: `old = grid`, and then
    `grid[i] = old[j]`. Which those are nobody knows; but who only wants a shorter name uses that alone."""
    plain = write.root.isidentifier() and read.name.isidentifier()
    return read.second and plain and write.form == "item" and write.op == "[...] ="


def _wanted_apart(read: ReadAfter, owns: list[ReadAfter], ours: set[int]) -> bool:
    """Whether both are read later as different values.

    Editing through a part of something is an idiom: there the base is read on purpose. What was taken *before* its base
    is overwritten, and is read afterwards, is not. Neither is a second name for the whole, nor the result of a
    conversion that had nothing to convert: nobody converts a tensor in order to write the original. `ours` are the
    sites of the writes through this holder: sums that are filled through a view are read by each of them.
    """
    if any(link.how is How.CONDITIONAL for link in read.below_written) or read.consumer == "restore":
        return True
    if not read.below_written:
        # The base was written; the view (or second name) is read as it was.
        return bool(owns) and bool(read.links)
    if any(link.how in PARTS for link in read.below_written):
        # But who computes something of the two of them takes them for two: `cdist(x, centers)`.
        return read.consumer in ("operand", "argument") and any(own.site == read.site for own in owns)
    return any(own.site not in ours for own in owns)


def _for_the_moment(owns: list[ReadAfter], ours: set[int]) -> bool:
    """Whether what was made of a part, from itself and numbers, is looked at and not stored back: whoever edits the
    whole by way of a part has no use for the part behind that. `ours` as in `_wanted_apart`."""
    shown = any(read.site not in ours and read.consumer in LOOKED_AT for read in owns)
    return shown and not any(read.consumer in ("store", "swap") for read in owns)


def _uses_base(write: Write, reads: list[ReadAfter]) -> list[ReadAfter]:
    """Where a view has been edited for nothing, if it is no copy: it is not looked at again, while its base goes into
    something else and is neither returned nor stored. Who hands the base on has edited it."""
    below = [read for read in reads if read.below_written and read.site > write.site]
    if any(read.consumer not in LOOKED_AT - {"return"} for read in below):
        return []
    return [read for read in below if not any(link.how in PARTS for link in read.below_written)]


def _was_before(write: Write, read: ReadAfter) -> bool:
    """Whether a name for what a field of the object holds is computed with after the field has been changed by its own
    name: `old = self.mean; self.mean += step; x - old`. The field is read by the next call."""
    field = write.owner == FIELD and write.root == write.owner_name and write.root.count(".") == 1
    names = [link for link in read.below_read if link.how is None]
    plain = read.name.isidentifier() and read.links == read.below_read and len(names) == len(read.links) == 1
    return field and plain and write.reads_old and write.form != "item" and read.consumer == "operand"


def _is_lost(write: Write, read: ReadAfter) -> bool:
    """Whether a part was taken, and is read after its base has got something else just there: `old = buf[i];
    buf[i] = new; return old`. Whoever wants the new one has it already."""
    parted = any(link.how in PARTS for link in read.below_read)
    return parted and not read.below_written and read.replaced and _sets(write) and read.consumer in _KEPT


def _sets(write: Write) -> bool:
    return write.form == "item" and write.op == "[...] =" and not write.reads_old


def _goes_on_with_part(unit: UnitFacts, write: Write, reads: list[ReadAfter], owns: list[ReadAfter]) -> bool:
    """Whether what a function has handed out is changed by arithmetic for a result of its own: that is read, or what
    the function hands out next goes into it."""
    if not write.reads_old or write.form == "item" or write.derived:
        return False
    ours = _ours(unit, write)
    taken = any(read.consumer == "operand" and read.site in ours for read in reads)
    return bool(reads) and (taken or any(read.consumer in _WANTED for read in owns))


def _pair(read: ReadAfter, write: Write) -> tuple[str, str]:
    """The names of what shares memory; the second is empty where nothing tells the two apart: elements of one list, or
    what a loop takes out under one name, are others each."""
    mine = write.root or write.name
    if mine == read.name:
        # A call was handed both names, and reads the one through which it writes.
        names = (name for link in read.links for name in (link.result, link.source))
        mine = next((name for name in names if name and name != read.name), mine)
    if mine != read.name:
        return (mine, read.name) if read.below_written or not read.links else (read.name, mine)
    if "[*]" in mine or read.site == write.site:
        return mine, ""
    # What one turn of a loop has by a name, and the next one by the same, is the memory of something else.
    return mine, write.owner_name or mine


def _reaches_caller(unit: UnitFacts, write: Write, owns: list[ReadAfter], reads: list[ReadAfter]) -> bool:
    written = {other.site for other in unit.writes.values() if set(other.storages) & set(write.storages)}
    if reads and all(own.site in written for own in owns):
        # What is written through is only written, and the argument is read afterwards: that is what it was for.
        return False
    if not suffers_caller(unit, write) or edits_openly(unit, write):
        return False
    if not write.named or set(write.storages) & unit.returns_sources:
        return False
    hows = {link.how for link in write.chain if link.how is not None}
    if write.owner_name in unit.optional and hows & PARTS and write.form == "method" and not write.reads_old:
        # Of a tensor that need not be there, so much as is needed is filled: it is room for what is made here.
        return False
    # A conversion that is asked for nothing converts nothing: `torch.as_tensor(x)` of a tensor.
    certain = all(link.sure and not link.when for link in write.chain)
    return certain and hows <= PLAIN_HOWS | {How.CONDITIONAL} and bool(owns)
