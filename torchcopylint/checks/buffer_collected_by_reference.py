"""TCL708: one buffer is put into a container again and again, and overwritten in between."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchcopylint.base.finding import Confidence, Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import (
    ARRAY_HOWS,
    DIRECT_FORMS,
    at_most,
    confidence,
    fields_collected,
    first_read_of,
    is_parameter_snapshot,
    read_point,
    shared_points,
    written_point,
    written_since,
)
from torchcopylint.flow.facts import Collected, FieldCollected, FieldRead, UnitFacts, Write
from torchcopylint.flow.model import FIELD, Kind

ACROSS_CALLS = True


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report where the buffer is put in, once a place, if the elements are read later or seen from outside."""
    seen: set[int] = set()
    for fact in unit.facts:
        if not isinstance(fact, Collected) or fact.site in seen or fact.kind is Kind.STATE_DICT:
            # Snapshots that are collected are a rule of their own: TCL701, and TCL702 for single parameters.
            continue
        if is_parameter_snapshot(unit, fact):
            continue
        write = unit.writes[fact.write]
        read = first_read_of(unit, fact)
        if read is None and not fact.outside:
            continue
        seen.add(fact.site)
        yield Report(
            site=fact.site,
            points=(
                *shared_points(tuple(reversed(fact.links))),
                Point(Role.KEPT, fact.site, f"kept.{fact.form}", {"name": fact.name, "container": fact.container}),
                written_since(write, fact.site),
                *((read_point(read, write),) if read is not None else ()),
            ),
            values={"name": fact.name, "cause": write.cause or write.op, "when": fact.when},
            confidence=at_most(Confidence.HIGH if read is not None else Confidence.MEDIUM, confidence(fact.sure)),
            variant="conditional" if fact.when else "yielded" if fact.form == "yield" else "",
        )


def check_class(methods: Sequence[UnitFacts]) -> Iterator[Report]:
    """Report where a method writes a field in place, and puts it into a list that another field holds, as it is.

    Or a view of it, or a part, in a record. Where the writing is done elsewhere, other than in a method that goes
    through this one, such a list may be one of all tensors that there are; but not where a number is put in with it, or
    the elements are looked at one by one, and what others write is a sum.
    """
    for unit in methods:
        # Of an array and a tensor on one memory TCL401 and TCL402 tell.
        arrays = {fact for fact, _ in fields_collected(unit) if ARRAY_HOWS & {link.how for link in fact.links}}
        for fact in unit.facts:
            if not isinstance(fact, FieldCollected) or unit.name == "__init__" or fact in arrays:
                continue
            lasts = fact.lasting and not fact.anew
            around = [one for one in methods if one is unit or (one.name in fact.callers and lasts)]
            found = [(write, one is unit) for one in around for write in one.writes.values() if _hits(write, fact)]
            if lasts and not found and (fact.dated or _is_looked_at(methods, fact)):
                others = [one for one in methods if one not in around and one.name != "__init__"]
                found = [(w, False) for one in others for w in one.writes.values() if _hits(w, fact) and _adds(w)]
            # Of a field that other methods set anew, it is still the same behind that, in the same call.
            found = [(write, own) for write, own in found if fact.lasting or write.site in fact.after]
            if found:
                write, _ = min(found, key=lambda pair: (not pair[1], pair[0].site))
                yield Report(
                    site=fact.site,
                    points=(
                        *shared_points(fact.links),
                        Point(Role.KEPT, fact.site, "kept.append", {"name": fact.field, "container": fact.container}),
                        written_point(write),
                    ),
                    values={"name": fact.field, "cause": write.cause or write.op},
                    confidence=at_most(Confidence.MEDIUM, confidence(fact.sure, write.sure)),
                )


def _adds(write: Write) -> bool:
    """Whether a write adds to all of what it finds, which is the sum of what there was until then."""
    return write.form == "augmented" and write.op in ("+=", "-=") and not write.partial


def _is_looked_at(methods: Sequence[UnitFacts], fact: FieldCollected) -> bool:
    """Whether another method takes an element out of the list that is collected in, or computes with all of them."""
    field = fact.container.rpartition(".")[2]
    reads = (one for unit in methods for one in unit.facts if isinstance(one, FieldRead) and unit.name != fact.method)
    return any(read.field == field and read.consumer in ("item", "operand") for read in reads)


def _hits(write: Write, fact: FieldCollected) -> bool:
    """Whether a write goes into the field that is collected; of an element of it, one that goes into all of it."""
    direct = write.form in DIRECT_FORMS and write.owner_name == fact.field and write.owner == FIELD
    return direct and (fact.whole or not (write.partial or write.derived))
