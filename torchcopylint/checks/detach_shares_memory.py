"""TCL303: the result of `detach()` is written, and its source changes with it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchcopylint.base.finding import Confidence, Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import (
    ARRAY_HOWS,
    DIRECT_FORMS,
    at_most,
    confidence,
    edited_alone,
    edits_whole_field,
    first_of_each,
    first_of_parts,
    first_reads,
    is_shown,
    links_of,
    once_a_sharing,
    order_of,
    read_point,
    shared_point,
    shared_points,
    suffers_caller,
    written_point,
)
from torchcopylint.flow.facts import DataAccess, FieldRead, Link, PartSuffers, ReadAfter, UnitFacts, Write
from torchcopylint.flow.model import FIELD, How

OF_GUESTS = True


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report writes through a named `detach()` whose source is read later, or belongs to the caller."""
    others = first_reads(unit, own=False)
    owns = first_reads(unit, own=True)
    alone = edited_alone(unit)
    found = []
    reaching, edits = [], []
    for write in unit.writes.values():
        hows = {link.how for link in write.chain}
        if How.DETACH not in hows or hows & ARRAY_HOWS or write.form not in DIRECT_FORMS or _is_put_back(unit, write):
            continue
        reads = [read for read in others.get(write.site, []) if _below_detach(read)]
        if reads:
            found.append((write, min(reads, key=order_of)))
        elif write.named and _suffers(unit, write, owns) and not set(write.storages) & unit.returns_sources:
            links = tuple(reversed([link for link in write.chain if link.how is not None]))
            reaching.append((write, links))
        elif write.site in alone and edits_whole_field(unit, write, owns.get(write.site, []), How.DETACH):
            edits.append((write, links_of(write)))
    for write, links in first_of_each(edits):
        points = (*shared_points(links), written_point(write))
        sure = at_most(Confidence.MEDIUM, confidence(write.sure))
        yield Report(write.site, points, _values(write, alone[write.site] or write.owner_name), sure)
    told = {write.site for write, _ in reaching}
    yield from (_of_part(unit, fact) for fact in first_of_parts(unit, How.DETACH) if fact.site not in told)
    for write, links in first_of_each(reaching):
        points = (*shared_points(links), written_point(write))
        when = next((link.when for link in links if link.when), "")
        values = {**_values(write, write.owner_name), "when": when}
        yield Report(write.site, points, values, confidence(write.sure), "conditional" if when else "")
    for write, read in once_a_sharing(found):
        points = (*shared_points(read.links), written_point(write), read_point(read, write))
        yield Report(write.site, points, _values(write, read.name), confidence(write.sure, read.sure))


def _of_part(unit: UnitFacts, fact: PartSuffers) -> Report:
    """What was detached is a part of what a caller passes, and goes on using."""
    write = unit.writes[fact.site]
    read = Point(Role.READ, fact.read, "read.caller", {"name": fact.passed})
    points = (*shared_points(links_of(write)), written_point(write), read)
    return Report(write.site, points, _values(write, fact.name), confidence(fact.sure))


def _suffers(unit: UnitFacts, write: Write, owns: dict[int, list[ReadAfter]]) -> bool:
    return suffers_caller(unit, write, shown=is_shown(unit, owns.get(write.site, [])))


def check_class(methods: Sequence[UnitFacts]) -> Iterator[Report]:
    """Report an optimizer's step on a detached field of the object's own, which another place in the class reads."""
    for unit in methods:
        for write in unit.writes.values():
            taken = _detached_field(write)
            if taken is None or unit.name == "__init__":
                continue
            reads = [site for one in methods for site in _reads_of(one, write.owner_name) if site != taken.site]
            later = [site for site in reads if site > write.site] or reads
            if later:
                name = next(link.source for link in write.chain if link.how is How.PARAMETERS)
                yield Report(
                    write.site,
                    (
                        shared_point(taken._replace(when="")),
                        written_point(write),
                        Point(Role.READ, later[0], "read.field", {"name": write.owner_name}),
                    ),
                    {"name": name, "op": write.op, "source": write.owner_name},
                    Confidence.MEDIUM,
                )
                break


def _detached_field(write: Write) -> Link | None:
    """Where a field of `self` was detached, if that is what an optimizer steps: `Adam([self.image.detach()])`."""
    hows = [link.how for link in write.chain]
    if write.form != "step" or write.owner != FIELD or write.owner_name.count(".") != 1 or "[" in write.owner_name:
        return None
    plain = hows[:2] == [How.PARAMETERS, How.DETACH] and all(how is None for how in hows[2:])
    return write.chain[1] if plain and write.chain[1].source == write.owner_name else None


def _reads_of(unit: UnitFacts, name: str) -> list[int]:
    """The sites at which a unit reads a field of `self`."""
    field = name.partition(".")[2]
    found = [fact.site for fact in unit.facts if isinstance(fact, FieldRead) and fact.field == field]
    found += [fact.site for fact in unit.facts if isinstance(fact, ReadAfter) and fact.name == name]
    return sorted(found)


def _is_put_back(unit: UnitFacts, write: Write) -> bool:
    """Whether the source is given back what was written: `w = p.data.detach(); w.zero_(); p.data = w`."""
    taken = {link.source for link in write.chain if link.how is How.DETACH}
    assigned = [fact for fact in unit.facts if isinstance(fact, DataAccess) and fact.form == "assign"]
    back = {fact.name for fact in assigned if fact.given in (write.name, f"{write.name}.data")}
    return any(name in taken or f"{name}.data" in taken for name in back)


def _below_detach(read: ReadAfter) -> bool:
    return any(link.how is How.DETACH for link in read.below_written) and not read.hows & ARRAY_HOWS and read.certain


def _values(write: Write, source: str) -> dict[str, str]:
    return {"name": write.root or write.name, "op": write.op, "source": source}
