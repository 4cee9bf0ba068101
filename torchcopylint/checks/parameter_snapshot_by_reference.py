"""TCL702: parameters kept by reference are compared with, or put back into, the parameters that they share with."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from torchcopylint.base.finding import Confidence, Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import (
    at_most,
    confidence,
    first_read_of,
    first_reads,
    is_parameter_snapshot,
    order_of,
    read_point,
    written_point,
    written_since,
)
from torchcopylint.flow.facts import (
    Collected,
    FieldMet,
    FieldRead,
    Kept,
    Link,
    LookedAtAnew,
    PutAside,
    ReadAfter,
    SidesAlike,
    UnitFacts,
    Write,
)
from torchcopylint.flow.model import Fact, How, Kind
from torchcopylint.flow.regions import overlap

KEEPING = frozenset({How.PARAMETERS, How.FIELD, How.DATA, How.DETACH})
"""Ways to get at the memory of a parameter as if it were a value."""
PLAIN = KEEPING | {None, How.VIEW, How.INDEX, How.ROW, How.NUMPY}

_MIXING = frozenset({"lerp_", "add_", "sub_"})
"""Methods by which parameters are moved towards older ones, or away from them."""
_DISTANCE = re.compile(r"(?:^|[._])(?:kl|mse|rmse|l1|l2|dist|distance|diff)(?:_|$)")
"""Functions that say by their names how far two things are apart."""
_EDITS = frozenset({"item", "augmented", "method"})
INTO_HELPERS = True
ACROSS_CALLS = True


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report each snapshot that is read beside the parameters themselves after they were written; once a snapshot.

    Parameters are kept by reference for many good reasons. That a snapshot was meant shows where the kept ones and the
    present ones meet: in a comparison, or in a copy from the one into the other. A single `detach()` that is not looked
    at before an optimizer has moved its source was most likely meant as one, too.
    """
    seen: set[int] = set()
    moments = _by_moment(unit)
    early = {fact.name for reads in moments for fact in reads if fact.site < fact.write}
    owns = first_reads(unit, own=True)
    for reads in moments:
        for read in sorted(reads, key=order_of):
            link = _kept(read)
            if link is None or link.site in seen:
                continue
            meets = _meets_itself(unit, read, reads)
            if (
                meets
                or _is_best_so_far(read)
                or (read.name not in early and _detached_for_later(unit.writes[read.write], read))
                or (read.name not in early and _stays_behind(unit.writes[read.write], read, link, owns))
            ):
                seen.add(link.site)
                yield _report(unit.writes[read.write], read, link, Confidence.HIGH if meets else Confidence.MEDIUM)
        yield from _two_names(unit, reads, seen)

    for fact in unit.facts:
        if isinstance(fact, PutAside) and fact.kind is not Kind.MODULE and fact.bound not in seen:
            seen.add(fact.bound)
            yield _best_so_far(unit.writes[fact.write], fact)
        if isinstance(fact, Collected) and fact.kind is not Kind.STATE_DICT and is_parameter_snapshot(unit, fact):
            yield from _collected(unit, fact, seen)


def _best_so_far(write: Write, fact: PutAside) -> Report:
    """What an optimizer steps is put aside by name under a condition, and used when it has been stepped on."""
    names = {"source": fact.source, "result": fact.name, "name": fact.name, "when": ""}
    shared = Point(Role.SHARED, fact.bound, "shared.name", names)
    read = Point(Role.READ, fact.site, "read.module", names)
    return Report(
        site=fact.bound,
        points=(shared, written_since(write, fact.bound), read),
        values={"name": fact.name, "source": fact.source, "cause": write.cause or write.op},
        confidence=confidence(fact.sure),
        variant="tensor",
    )


def _two_names(unit: UnitFacts, reads: Sequence[ReadAfter], seen: set[int]) -> Iterator[Report]:
    """The difference between two names of what an optimizer steps: `start = w`, and later `w - start`.

    Or between what it steps and what that was detached from.
    """
    write = unit.writes[reads[0].write]
    if write.form != "step":
        return
    apart = [read for read in reads if _differs(read)]
    anew = {(fact.site, fact.name): fact.present for fact in unit.facts if isinstance(fact, LookedAtAnew)}
    for kept in sorted(apart, key=lambda read: -read.bound):
        others = [read for read in apart if read.name != kept.name and read.place == kept.place]
        if write.site < kept.bound < kept.site:
            # Two names that one has got behind the step are none for before and after it.
            others = [read for read in others if not write.site < read.bound < read.site]
        if kept.bound < 0 or kept.bound in seen:
            continue
        if not others and (kept.site, kept.name) in anew:
            others = [kept._replace(name=anew[kept.site, kept.name])]
        if not others:
            continue
        seen.add(kept.bound)
        other = others[0]
        taken = next((link for link in (*other.below_written, *kept.below_read) if link.how is How.DETACH), None)
        if taken is not None and taken.site in seen:
            return
        how = f"shared.{How.DETACH.value}" if taken is not None else "shared.name"
        names = {"source": other.name, "result": kept.name, "when": ""}
        shared = Point(Role.SHARED, kept.bound, how, names)
        yield Report(
            site=kept.bound,
            points=(shared, written_point(write), read_point(kept, write)),
            values={"name": kept.name, "source": other.name, "cause": write.cause or write.op},
            confidence=confidence(max(write.sure, kept.sure), max(write.sure, other.sure)),
            variant="tensor",
        )
        return


def _differs(read: ReadAfter) -> bool:
    """Whether a name of the stepped memory itself is read where the difference to something else is taken."""
    hows = {*read.hows} - {None, How.DETACH, How.FIELD}
    itself = hows <= {How.PARAMETERS} and How.PARAMETERS not in {link.how for link in read.below_read}
    operand = read.consumer == "operand" and read.target in ("-", "sub")
    distance = read.consumer in ("operand", "argument") and _DISTANCE.search(read.target) is not None
    return itself and read.certain and not read.element and not read.own and not read.asked and (operand or distance)


def _collected(unit: UnitFacts, fact: Collected, seen: set[int]) -> Iterator[Report]:
    """The values of one parameter are put into a container in each turn of a loop that trains it on."""
    write, read = unit.writes[fact.write], first_read_of(unit, fact)
    if (read is None and not fact.outside) or fact.site in seen:
        return
    seen.add(fact.site)
    link = next((link for link in fact.links if link.how in KEEPING), fact.links[0])
    taken = link.site if link.site >= 0 else fact.site
    phrase = f"shared.{link.how.value}" if link.site >= 0 and link.how is not None else "shared.parameters"
    names = {"source": link.source, "result": fact.name, "when": ""}
    yield Report(
        site=taken,
        points=(
            Point(Role.SHARED, taken, phrase, names),
            Point(Role.KEPT, fact.site, f"kept.{fact.form}", {"name": fact.name, "container": fact.container}),
            written_since(write, fact.site),
            *((read_point(read, write),) if read is not None else ()),
        ),
        values={
            "name": fact.container or fact.name,
            "source": link.source,
            "cause": write.cause or write.op,
            "when": fact.when,
        },
        confidence=at_most(Confidence.HIGH if read is not None else Confidence.MEDIUM, confidence(fact.sure)),
        variant="conditional" if fact.when else "tensor",
    )


def check_class(methods: Sequence[UnitFacts]) -> Iterator[Report]:
    """Report what a method puts aside in a field, through `.data` or `detach()`, and overwrites before it ends.

    Or what another method compares with, mixes with, or puts back into the very parameters that it was taken from.
    """
    reads = [fact for unit in methods for fact in unit.facts if isinstance(fact, FieldRead) and fact.consumer == "item"]
    met = [fact for unit in methods for fact in unit.facts if isinstance(fact, FieldMet)]
    # Who runs backward and steps no optimizer makes the next values himself, and puts them under the parameters.
    alone = any(unit.trains for unit in methods) and _trained(methods) is None
    seen: set[int] = set()
    for unit in methods:
        for fact in unit.facts:
            if not isinstance(fact, Kept) or fact.shared in seen or _gets_other_memory(unit, fact):
                continue
            later = [write for write in unit.writes.values() if _overwrites(write, fact)]
            restored = [read for read in reads if read.field == fact.field and read.method != fact.method]
            meeting = [place for place in met if _meets(place, fact, unit) and not (alone and place.op == ".data =")]
            if later and restored:
                seen.add(fact.shared)
                write, read = min(later, key=lambda w: w.site), min(restored, key=lambda r: r.site)
                yield _report_kept(fact, read.site, write, fact.whole)
            elif (fact.appended and fact.how is not How.STATE) or (
                fact.record and fact.how is not How.STATE and _trained(methods) is not None
            ):
                # All the entries are one memory, whatever has become of it by the time that somebody looks; the best so
                # far goes on to be trained.
                seen.add(fact.shared)
                yield _report_kept(fact, -1, _trained(methods), False, met=True)
            elif meeting:
                seen.add(fact.shared)
                written = _trained(methods)
                yield _report_kept(
                    fact, min(place.site for place in meeting), written, fact.whole or bool(fact.storages), met=True
                )


def _gets_other_memory(unit: UnitFacts, fact: Kept) -> bool:
    """Whether the method goes on to give what was kept other memory, and does not write it: `state["old"] = p.data`
    holds what `p` was when `p.data = ...` has come."""
    writes = [write for write in unit.writes.values() if fact.source in (write.name, write.root)]
    renewing = [write for write in writes if write.form == "assign" and write.site > fact.shared]
    return fact.how in _MEMORY and bool(renewing) and all(write.form == "assign" for write in writes)


_MEMORY = frozenset({How.DATA, How.DETACH})


def _report_kept(fact: Kept, read: int, write: Write | None, whole: bool, *, met: bool = False) -> Report:
    name = f"self.{fact.field}"
    names = {"source": fact.source, "result": name, "when": ""}
    # What each call puts into a list may come from a helper: the list is what is wrong with it. The entries of a state
    # dict are gone through for many reasons: that one is kept is the fault.
    site = fact.site if fact.appended or fact.how is How.STATE else fact.shared
    return Report(
        site=site,
        points=(
            Point(Role.SHARED, site, "shared.name" if fact.how is How.OWN else f"shared.{fact.how.value}", names),
            *((written_point(write),) if write is not None else ()),
            *((Point(Role.READ, read, "read.field", {"name": name}),) if read >= 0 else ()),
        ),
        values={
            "name": name,
            "source": fact.source,
            "cause": (write.cause or write.op) if write is not None else "training",
        },
        # Where it meets its source, that is what tells: any step of an optimizer will do for an example.
        confidence=at_most(Confidence.MEDIUM, confidence(fact.sure, *((write.sure,) if write and not met else ()))),
        variant="" if whole else "tensor",
    )


def _meets(place: FieldMet, kept: Kept, unit: UnitFacts) -> bool:
    """Whether a place uses what was kept together with its own source, in a way that only makes sense of a copy."""
    values = kept.how in KEEPING or (kept.how is How.STATE and kept.shallow)
    if place.field != kept.field or not values or place.source not in kept.sources:
        return False
    if place.method == kept.method and place.site > kept.shared and not place.earlier:
        return False
    if kept.how is How.PARAMETERS:
        # The parameters themselves, in a list for later: only a difference shows that they were to be older ones.
        # Or what is put back into them: what was stored by a method to be restored by another. What a constructor is
        # given may be other ones than what a method is given, but not than what a field goes on to hold.
        same = kept.method != "__init__" or "." in place.source
        stored = place.form == "restored" and place.op == "copy_" and same
        # An average of something with itself is what it was.
        return stored or place.form == "averaged" or (place.form == "operand" and place.op in ("-", "sub", "-="))
    if place.form == "restored":
        # Where another `.data` takes its place, what was put aside is nobody else's.
        return not any(write.form == "assign" for write in unit.writes.values())
    return place.form in ("operand", "averaged")


def _trained(methods: Sequence[UnitFacts]) -> Write | None:
    """A step of an optimizer in the class: outside of the method that keeps, the parameters are trained."""
    steps = [write for unit in methods for write in unit.writes.values() if write.form == "step"]
    return min(steps, key=lambda write: write.site, default=None)


def _overwrites(write: Write, kept: Kept) -> bool:
    """Whether a write hits what was put aside before. An assignment of `.data` exchanges memory and hits nothing."""
    hit = kept.storages & {storage | 1 for storage in write.storages}
    return bool(hit) and write.site > kept.shared and write.form not in ("assign", "load")


def _by_moment(unit: UnitFacts) -> list[list[ReadAfter]]:
    """Reads after one write in one place, in the order of the program.

    What is computed from two of them in the same way meets where the results do.
    """
    found: dict[tuple[int, int], list[ReadAfter]] = {}
    together = {fact.other: fact.one for fact in unit.facts if isinstance(fact, SidesAlike)}
    for fact in unit.facts:
        if isinstance(fact, ReadAfter) and unit.writes[fact.write].form != "assign":
            found.setdefault((together.get(fact.site, fact.site), fact.write), []).append(fact)
    return [reads for _, reads in sorted(found.items())]


def _kept(read: ReadAfter) -> Link | None:
    """Where a read value was taken from its parameter, if it has been kept since before the write."""
    if read.own or not (read.certain or read.conditional):
        return None
    if not {link.how for link in read.below_read} <= (PLAIN | {How.CONDITIONAL} if read.conditional else PLAIN):
        return None
    taken = [link for link in read.below_read if link.how in KEEPING]
    if not taken:
        return None
    placed = [link for link in taken if link.site >= 0]
    if placed:
        return placed[0]
    # `w = layer.weight`: the parameter itself, under a name of its own.
    return taken[0]._replace(site=read.bound) if read.bound >= 0 and read.name != taken[0].result else None


def _meets_itself(unit: UnitFacts, kept: ReadAfter, reads: list[ReadAfter]) -> bool:
    """Whether the same memory is read beside it as something present, or overwritten with it."""
    storage, region = kept.place
    written = unit.writes.get(kept.put if kept.put >= 0 else kept.site)
    if written is not None and storage in {number | 1 for number in written.storages}:
        # Between the two, `p.mul_(a).add_(q)`, nobody has kept anything: what an optimizer has moved is mixed.
        mixes = not written.reads_old or (written.op in _MIXING and unit.writes[kept.write].form == "step")
        return written.form in ("method", "item", "assign") and written.name != kept.name and mixes
    return any(
        other.name != kept.name
        and (other.certain or other.conditional or kept.conditional)
        and other.place[0] == storage
        and overlap(other.place[1], region) is Fact.YES
        and (other.own or _kept(other) is None)
        for other in reads
    )


def _detached_for_later(write: Write, read: ReadAfter) -> bool:
    named = not read.element and read.consumer in ("look", "operand")
    hows = [link.how for link in read.below_read if link.how is not How.NUMPY]
    return named and write.form == "step" and hows[:1] == [How.DETACH]


def _stays_behind(write: Write, read: ReadAfter, link: Link, owns: Mapping[int, Sequence[ReadAfter]]) -> bool:
    """Whether a name goes on with what is added to it in place, or set in a part of it, and what was detached from it
    before is handed on as well: `log["ce"] = loss.detach()`, `loss += penalty`, `loss.backward()`, `return log`."""
    changes = write.form in _EDITS and (write.reads_old or write.partial) and not write.derived
    plain = (
        write.root.isidentifier() and link.source == write.root and [one.how for one in read.below_read] == [link.how]
    )
    handed_on = read.consumer in ("return", "argument", "yield") and read.site > write.site
    return changes and plain and link.how is How.DETACH and handed_on and bool(owns.get(write.site))


def _is_best_so_far(read: ReadAfter) -> bool:
    """Whether what a loop has put aside on a condition is what is used once it has trained on.

    The parameters themselves, in a container, may be wanted as what they are: but not by who returns or saves them.
    """
    values = any(link.how in (How.DETACH, How.DATA) for link in read.below_read)
    return read.aside and (values or read.consumer == "return" or read.target.endswith("save"))


def _report(write: Write, read: ReadAfter, link: Link, limit: Confidence) -> Report:
    name = read.name.partition("[")[0] if read.element else read.name
    whole = link.how is How.PARAMETERS or any(above.how is How.PARAMETERS for above in read.below_read)
    source = next((above.source for above in read.below_read if above.how is How.PARAMETERS), link.source)
    phrase = "shared.parameters" if whole else f"shared.{link.how.value}" if link.how is not None else "shared.name"
    names = {"source": source, "result": name, "when": ""}
    return Report(
        site=link.site,
        points=(Point(Role.SHARED, link.site, phrase, names), written_point(write), read_point(read, write)),
        values={
            "name": name,
            "source": source,
            "cause": write.cause or write.op,
            "when": next((above.when for above in read.below_read if above.when), ""),
        },
        confidence=at_most(limit, confidence(max(write.sure, read.sure), read.sure)),
        variant="conditional" if not read.certain else "" if whole else "tensor",
    )
