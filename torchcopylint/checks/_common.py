"""Predicates and steps that several rules share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchcopylint.base.finding import Confidence, Role
from torchcopylint.base.report import Point, Report
from torchcopylint.flow.facts import (
    CallerSuffers,
    Collected,
    EditedAlone,
    FieldCollected,
    Link,
    PartHandedOut,
    PartSuffers,
    ReadAfter,
    StillExpected,
    UnitFacts,
    ViewRefused,
    Write,
)
from torchcopylint.flow.model import ARGUMENT, FIELD, TENSORS, Fact, How, Kind, Sure

PLAIN_HOWS = frozenset({None, How.VIEW, How.INDEX, How.ROW})
"""Ways to share that keep the version counter and the graph: views and plain second names."""
ARRAY_HOWS = frozenset({How.NUMPY, How.FROM_NUMPY})
PARTS = frozenset({How.INDEX, How.ROW})
SHORT_LIVED = frozenset({"text", "test"})
"""Reads that show nothing about the elements of a container one by one."""
DIRECT_FORMS = frozenset({"method", "augmented", "item", "out", "call", "activation", "operator"})
"""Writes that the code spells out, unlike an optimizer's step or the loading of a state dict. `x.data = y` is none of
them: it gives `x` another storage, and what shares the old one does not change."""


def confidence(*sures: Sure) -> Confidence:
    """As sure as the least sure of the facts."""
    worst = min(sures)
    if worst is Sure.PROVEN:
        return Confidence.HIGH
    return Confidence.MEDIUM if worst is Sure.LIKELY else Confidence.LOW


def at_most(limit: Confidence, found: Confidence) -> Confidence:
    """A confidence, but not above a limit."""
    return found if found.rank > limit.rank else limit


def shared_point(link: Link) -> Point:
    """The step where two holders came to share."""
    how = link.how.value if link.how is not None else "name"
    return Point(
        Role.SHARED, link.site, f"shared.{how}", {"source": link.source, "result": link.result, "when": link.when}
    )


def shared_points(links: tuple[Link, ...]) -> list[Point]:
    """The steps where two holders came to share; links without a place in the code are left out."""
    return [shared_point(link) for link in links if link.site >= 0]


def written_point(write: Write) -> Point:
    """The step that writes."""
    phrase = "written.cause" if write.cause else "written"
    return Point(Role.WRITTEN, write.site, phrase, {"op": write.op, "name": write.name, "cause": write.cause})


def written_since(write: Write, kept: int) -> Point:
    """The step that writes, after something was put aside; if it stands before that, on the loop's next turn."""
    point = written_point(write)
    return point if write.site > kept else point._replace(phrase=f"{point.phrase}.next")


def read_point(read: ReadAfter, write: Write) -> Point:
    """The step that reads; a read that stands before its write happens on the loop's next turn."""
    later = "" if read.site > write.site else ".next"
    return Point(Role.READ, read.site, f"read.{read.consumer}{later}", {"name": read.name, "target": read.target})


def of_container(read: ReadAfter) -> ReadAfter:
    """A read of any element of a container, as a read of the container: the element has no name of its own."""
    if not read.name.endswith("[*]"):
        return read
    name = read.name.removesuffix("[*]")
    links = tuple(link._replace(result=link.result.removesuffix("[*]")) for link in read.below_read)
    return read._replace(name=name, below_read=links)


def first_reads(unit: UnitFacts, own: bool) -> dict[int, list[ReadAfter]]:
    """For each write, what is read after it: through the written holder itself (`own`) or through another.

    Elements of what was collected from one buffer are left out: that is a fault of its own, told where it happens.
    """
    collected = [fact for fact in unit.facts if isinstance(fact, Collected)]
    found: dict[int, list[ReadAfter]] = {}
    for fact in unit.facts:
        if not isinstance(fact, ReadAfter) or fact.own is not own or fact.consumer == "passed":
            # Whoever is passed all that stands in something may look at any of it, and need not.
            continue
        if not any(of_collected(fact, put) for put in collected):
            found.setdefault(fact.write, []).append(fact)
    return found


def expected_unchanged(unit: UnitFacts, write: Write, reads: Sequence[ReadAfter]) -> list[ReadAfter]:
    """The reads by which an assertion says that something else than what was written still holds what it did before."""
    said = [fact for fact in unit.facts if isinstance(fact, StillExpected) and fact.since < write.site]
    return [
        read
        for read in reads
        if read.site > write.site and any(fact.name == read.name and read.site in fact.sites for fact in said)
    ]


def of_collected(read: ReadAfter, fact: Collected) -> bool:
    """Whether what is read is an element that was collected by reference, under whatever name it was taken out."""
    if read.bound in fact.put or any(link.site in fact.put for link in read.below_read):
        return True
    # What no name holds, and a name was written, was taken out where it is read: `history[0]["w"][0]`.
    behind = read.site if read.bound < 0 else read.bound
    taken_out = behind > min(fact.put) or read.name == fact.name
    return not read.own and read.place[0] == fact.storage and taken_out


def first_read_of(unit: UnitFacts, fact: Collected) -> ReadAfter | None:
    """Where an element is read that was put into a container by reference, before a write that hits it."""
    reads = [
        read
        for read in unit.facts
        if isinstance(read, ReadAfter)
        and not read.own
        and read.write == fact.write
        and read.site not in fact.put
        and read.consumer not in SHORT_LIVED
        and of_collected(read, fact)
    ]
    return min(reads, key=order_of, default=None)


def fields_collected(unit: UnitFacts) -> Iterator[tuple[FieldCollected, Write]]:
    """Where a method puts a field into a container of its object by reference, and where it writes that field."""
    for fact in unit.facts:
        if not isinstance(fact, FieldCollected) or unit.name == "__init__":
            continue
        writes = [write for write in unit.writes.values() if write.form in DIRECT_FORMS]
        writes = [write for write in writes if fact.lasting or write.site in fact.after]
        later = [write for write in writes if write.owner_name == fact.field and write.owner == FIELD]
        if later:
            yield fact, min(later, key=lambda write: write.site)


def is_parameter_snapshot(unit: UnitFacts, fact: Collected) -> bool:
    """Whether what is collected are values of a module's parameters, which an optimizer moves on."""
    of_module = any(link.how in (How.PARAMETERS, How.FIELD) for link in fact.links)
    return of_module and unit.writes[fact.write].form == "step"


_ON_THE_WAY = frozenset({None, How.VIEW, How.INDEX, How.ROW, How.DETACH, How.DATA, How.NUMPY})
"""How a gradient that was put aside is looked at: as it is, or by another way to the same memory. It has no graph that
`detach()` could be meant to cut."""


def kept_gradient(unit: UnitFacts, read: ReadAfter) -> bool:
    """Whether a read is of a gradient that was put aside, and that was then overwritten where it stands: in `.grad`."""
    if read.own or read.name.endswith(".grad") or any(link.how not in _ON_THE_WAY for link in read.below_read):
        return False
    write = unit.writes[read.write]
    return write.form == "gradient" or (write.form in ("method", "augmented") and write.root.endswith(".grad"))


def once_a_sharing(found: list[tuple[Write, ReadAfter]]) -> list[tuple[Write, ReadAfter]]:
    """Of several writes that hit one sharing, the first in the program: the others are the same fault."""
    first: dict[tuple[object, ...], tuple[Write, ReadAfter]] = {}
    for write, read in sorted(found, key=lambda pair: (pair[0].site, order_of(pair[1]))):
        plain = bool(read.links) and all(link.how is None for link in read.links)
        sharing = read.place[0] if plain else tuple(link.site for link in read.links)
        names = (write.root, read.name)
        # Of two plain names for one thing, of which each is written, the one is the second name for the other.
        first.setdefault((sharing, *(sorted(names) if read.second or plain else names)), (write, read))
    return list(first.values())


def first_of_each(reaching: list[tuple[Write, tuple[Link, ...]]]) -> list[tuple[Write, tuple[Link, ...]]]:
    """The same for writes that reach the caller, each with the links from the owner of the memory down."""
    first: dict[tuple[object, ...], tuple[Write, tuple[Link, ...]]] = {}
    for write, links in sorted(reaching, key=lambda pair: pair[0].site):
        first.setdefault((*(link.site for link in links), write.root), (write, links))
    return list(first.values())


def order_of(read: ReadAfter) -> tuple[bool, int]:
    """Sorts reads by when they happen: those behind the write first, then those of the loop's next turn."""
    return (read.site <= read.write, read.site)


def writes_of_argument(unit: UnitFacts) -> Iterator[Write]:
    """The writes of a unit that surely reach what it was handed, spelt out and not on condition of anything."""
    for write in unit.writes.values():
        surely = len(write.storages) == 1 and all(link.sure and not link.when for link in write.chain)
        if surely and write.owner == ARGUMENT and write.form in DIRECT_FORMS:
            yield write


def suffers_caller(unit: UnitFacts, write: Write, *, shown: bool = False, part: bool = False) -> bool:
    """Whether a write reaches memory of the caller's, who gets a value back and not that memory.

    `shown` is whether the unit itself looks at what it has written, so that it need not be there to write it; `part`
    whether that is known to be an element of what was passed.
    """
    if (write.owner != ARGUMENT and not part) or unit.kind != "function" or not (unit.returns_value or shown):
        return False
    if write.owner_name in unit.given_away:
        return False
    if unit.name == "__call__":
        return not unit.takes_inplace
    # A name that ends in an underscore tells of a write, an operator's too; `__noisy` is only private to its class.
    return not unit.name.endswith("_") and not unit.takes_inplace


_MEMORY = TENSORS | {Kind.ARRAY}


def caller_suffers(unit: UnitFacts, *, in_network: bool) -> Iterator[CallerSuffers]:
    """The first write of each parameter by which a caller suffers: by activations in place of a part of a network, or
    otherwise."""
    forward = unit.name == "forward" or unit.serves_forward
    seen: set[str] = set()
    for fact in unit.facts:
        if not isinstance(fact, CallerSuffers) or fact.name in seen:
            continue
        write = unit.writes[fact.site]
        plain = {link.how for link in write.chain} <= PLAIN_HOWS | {How.PARAMETER}
        if write.kind in _MEMORY and plain and suffers_caller(unit, write, part=fact.name.endswith("]")):
            seen.add(fact.name)
            if (forward and write.form == "activation") is in_network:
                yield fact


def edits_openly(unit: UnitFacts, write: Write) -> bool:
    """Whether a function writes the same argument under its own name as well: then it is there to be changed."""
    others = [other for other in unit.writes.values() if other.owner == ARGUMENT and other.form in DIRECT_FORMS]
    return any(
        other.owner_name == write.owner_name == other.root and not other.named and other.storages == write.storages
        for other in others
        if other.site != write.site
    )


_STATEMENTS = frozenset({"item", "augmented"})
"""Forms of writes that are statements, after which nothing but a name is left of what they have made."""


def is_meant_for(read: ReadAfter, write: Write, owns: Sequence[ReadAfter], *, partly: bool = False) -> bool:
    """Whether something is put into all of an alias that nobody looks at any more, while what it was taken from is
    read: with two memories, the write would have been for nothing. `array = x.numpy(); array[:] = mean`. `partly` is
    whether a part of it will do, and no content of its own: `flat = codes.reshape(-1); flat[tie] += 1`."""
    whole = not write.partial and (write.form == "item" or write.op == "copy_")
    anew = not write.reads_old or (partly and write.partial and write.form in _STATEMENTS)
    plain = write.named and anew and (partly or whole) and not read.element
    return plain and not owns and not read.below_read and bool(read.below_written)


LOOKED_AT = frozenset({"return", "operand", "look", "argument"})
"""Reads for which a value was made what it is."""


def is_shown(unit: UnitFacts, reads: list[ReadAfter]) -> bool:
    """Whether what was written is printed, stored, passed on or computed with, otherwise than to write it again."""
    return any(read.site not in unit.writes and read.consumer in {*LOOKED_AT, "text", "store"} for read in reads)


def only_shown(unit: UnitFacts, reads: Sequence[ReadAfter], owns: Sequence[ReadAfter]) -> bool:
    """Whether both sides of a sharing are printed after the write, and nothing else is done with either: nobody goes on
    with what has changed, and that it has changed stands there for everybody to see.

    In the body of a module the other side will do, and either may be written once more: this is a lesson.
    """
    if unit.kind == "module":
        reads, owns = ([one for one in part if one.site not in unit.writes] for part in (reads, owns))
        return bool(reads) and all(map(_is_printed, (*reads, *owns)))
    return bool(reads) and bool(owns) and all(map(_is_printed, (*reads, *owns)))


def _is_printed(read: ReadAfter) -> bool:
    return read.consumer == "text" or (read.consumer, read.target) == ("look", "print")


def links_of(write: Write) -> tuple[Link, ...]:
    """How what was written came to share the memory of its owner, in the order of the program."""
    return tuple(reversed([link for link in write.chain if link.how is not None]))


def first_of_parts(unit: UnitFacts, how: How) -> list[PartSuffers]:
    """The first write of each part of a parameter that a function takes out in a way, beside views, and a caller goes
    on using, if the function returns something else."""
    found: dict[str, PartSuffers] = {}
    for fact in unit.facts:
        if isinstance(fact, PartSuffers) and fact.site in unit.writes:
            write = unit.writes[fact.site]
            hows = {link.how for link in write.chain}
            lent = unit.returns_value and not set(write.storages) & unit.returns_sources
            if how in hows and hows <= PLAIN_HOWS | {how} and write.form in DIRECT_FORMS and lent:
                found.setdefault(fact.name, fact)
    return list(found.values())


def edited_alone(unit: UnitFacts) -> dict[int, str]:
    """The writes that make of something, from itself alone, what is wanted for the moment.

    For each, the parameter of a module that it reaches, if any. Who puts a number into a part of something that is his
    own does so on purpose: what a function has handed out is not.
    """
    handed_out = {fact.site for fact in unit.facts if isinstance(fact, PartHandedOut) and not fact.whole}
    edits = [fact for fact in unit.facts if isinstance(fact, EditedAlone)]
    return {fact.site: fact.parameter for fact in edits if not fact.item or fact.site in handed_out}


def edits_field(unit: UnitFacts, write: Write, owns: list[ReadAfter]) -> bool:
    """Whether a function surely writes, under another name, what a field of an object keeps, for what it returns.

    To be asked of writes that are `edited_alone`.
    """
    # A part of a module sits on the module, too.
    of_module = any(isinstance(fact, EditedAlone) and fact.site == write.site and fact.parameter for fact in unit.facts)
    if write.owner != FIELD or (len(write.storages) != 1 and not of_module) or write.root == write.owner_name:
        return False
    handed_out = any(fact.site == write.site and isinstance(fact, PartHandedOut) and fact.whole for fact in unit.facts)
    surely = (write.named or handed_out) and all(link.sure and not link.when for link in write.chain)
    looked_at = unit.returns_value and any(read.consumer in LOOKED_AT for read in owns)
    return surely and looked_at and unit.name != "__init__" and not unit.name.endswith("_")


def edits_whole_field(unit: UnitFacts, write: Write, owns: list[ReadAfter], by: How = How.VIEW) -> bool:
    """Whether what is written is another way to look at all of a field, by views or by another way beside them.

    Who edits a part of one, does so on purpose, unless the part goes on to be something else under the same name, or
    was handed out by a method of what keeps it: so may all of it have been. To be asked as `edits_field` is.
    """
    whole = any(fact.site == write.site and isinstance(fact, PartHandedOut) and fact.whole for fact in unit.facts)
    hows = {link.how for link in write.chain if link.how is not None}
    going_on = any(
        fact.site == write.site
        and ((isinstance(fact, PartHandedOut) and not fact.whole) or (isinstance(fact, EditedAlone) and fact.goes_on))
        for fact in unit.facts
    )
    views = by in hows and hows <= {How.VIEW, by}
    aside = views or (going_on and hows <= PARTS | {How.VIEW, by}) or (whole and not hows)
    return aside and edits_field(unit, write, owns)


def mode_is_on(
    unit: UnitFacts, assumed: bool, local: bool, asked: bool = False, aside: bool = False, reads: bool = False
) -> Confidence | None:
    """How sure it is that autograd records in a unit; `None` if callers turn it off, for all one can see.

    Functions that write parameters are usually called under `no_grad` (48 of 48 in public code), so a function needs
    evidence of its own: it calls `backward()`, or a function that does, switches grad mode off for a part of itself,
    made the leaf itself, or has `asked` for the gradient. A neighbour that writes parameters and switches grad mode off
    itself is evidence, too.
    `forward` runs with recording on, but what stands `aside` in it, under a condition, may be there for tests.
    Who merely `reads` does so as a rule where nothing is trained, and torch would refuse it each time: that such code
    is there speaks for a caller that switches recording off (40 causes of 44 in public code). So of him it takes
    evidence of his own as well: that he trains, or says what is to run without grad.
    """
    if not assumed:
        return Confidence.HIGH
    if unit.called_without_grad is Fact.YES:
        return None
    if unit.trains or unit.calls_trainer or unit.called_without_grad is Fact.NO or local:
        return Confidence.HIGH
    if unit.has_no_grad:
        return Confidence.MEDIUM
    if reads:
        return Confidence.LOW
    if asked or unit.shielded:
        return Confidence.MEDIUM
    if unit.class_name and unit.name in ("__init__", "training_step"):
        return Confidence.MEDIUM
    if unit.class_name and (unit.name == "forward" or unit.serves_forward) and not aside:
        return Confidence.MEDIUM
    return Confidence.LOW


def refused_view(unit: UnitFacts, fact: ViewRefused, shared: str) -> Iterator[Report]:
    """The report of a write into a view that autograd does not let be written, if some evidence says it records."""
    # What is not made here while grad mode is off, a helper has made that switches it off for itself.
    mode = mode_is_on(unit, fact.assumed, fact.local, asked=fact.why == "no_grad")
    if mode is None:
        return
    names = {"name": fact.name, "op": fact.op, "source": fact.base}
    base = fact.used >= 0
    used = (Point(Role.READ, fact.used, "read.operand", {**names, "target": ""}),) if base else ()
    written = "written.cause" if base else "written.leaf"
    yield Report(
        site=fact.site,
        points=(
            Point(Role.SHARED, fact.viewed, shared, names),
            Point(Role.WRITTEN, fact.site, written, {**names, "cause": fact.op}),
            *used,
        ),
        values=names,
        confidence=at_most(mode, confidence(fact.sure)),
        variant="base" if base else "",
    )


TRAINED = frozenset({"forward", "__call__", "training_step"})
"""Methods of modules whose result is there to be trained with."""


def returns_to_training(unit: UnitFacts) -> bool:
    """Whether a unit is a method of a module that returns into a pass that backward follows, as `forward` does.

    Other methods of modules are often written for inference alone, where writing in place is right. Who takes the step
    of an optimizer inside has run backward already.
    """
    serves = unit.name in TRAINED or unit.serves_forward
    trained = serves and unit.class_kind is Kind.MODULE and unit.called_without_grad is not Fact.YES
    return trained and not any(write.form == "step" for write in unit.writes.values())
