"""Arguments that a function gives a second name, and edits by that alone, as if it had taken a copy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from torchcopylint.base.finding import Confidence, Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import (
    DIRECT_FORMS,
    LOOKED_AT,
    at_most,
    confidence,
    edits_openly,
    suffers_caller,
    written_point,
)
from torchcopylint.flow.facts import CallerSuffers, ReadAfter, UnitFacts, Write
from torchcopylint.flow.model import ARGUMENT, TENSORS, Kind

Reads = Mapping[int, Sequence[ReadAfter]]
_HOLDING = TENSORS | {Kind.ARRAY}
_FORMS = DIRECT_FORMS - {"call", "activation", "out"}
"""Forms of writes that say nothing of where they write to: who passes `out=` has chosen that."""
_ROOM = frozenset({"out", "output", "outputs", "buf", "buffer", "dst", "dest", "res", "result", "results", "target"})
"""What a parameter is called that is there to be filled."""
_CHANGING = frozenset(
    {"fill", "init", "initialize", "insert", "mark", "push", "record", "reset", "set", "update", "write"}
)
"""First words of the names of functions that are there to change what they are given."""


def of_renamed(unit: UnitFacts, owns: Reads, others: Reads) -> Iterator[Report]:
    """Report each such edit."""
    for write in _edits(unit, owns, others):
        values = {"name": write.root, "op": write.op, "source": write.owner_name, "result": write.root}
        shared = Point(Role.SHARED, write.bound, "shared.name", values)
        sure = at_most(Confidence.MEDIUM, confidence(write.sure))
        yield Report(write.site, (shared, written_point(write)), values, sure, "caller")


def _edits(unit: UnitFacts, owns: Reads, others: Reads) -> list[Write]:
    """The first write of each argument by a second name for all of it, by which the unit goes on: `new = boxes;
    new[:, 2:] += margin; return new`. Who edits the argument for its caller has no use for another name.

    A caller of the file that looks at what it has passed is told of as such.
    """
    first_word = unit.name.strip("_").partition("_")[0].lower()
    told = {unit.writes[fact.site].owner_name for fact in unit.facts if isinstance(fact, CallerSuffers)}
    if first_word in _CHANGING or not unit.returns_value:
        return []
    found: dict[str, Write] = {}
    for site, write in sorted(unit.writes.items()):
        whole = write.owner_name in unit.parameters and write.owner_name not in told
        taken = whole and _is_second_name(write) and suffers_caller(unit, write)
        if not taken or others.get(site) or not any(read.consumer in LOOKED_AT for read in owns.get(site, ())):
            continue
        if not edits_openly(unit, write) and not _is_room(unit, write):
            found.setdefault(write.owner_name, write)
    return list(found.values())


def _is_second_name(write: Write) -> bool:
    """Whether all that is written is surely an argument, by another name that it was given as it was."""
    if write.owner != ARGUMENT or write.kind not in _HOLDING or write.form not in _FORMS:
        return False
    plain = all(link.how is None and link.sure and link.source == write.owner_name for link in write.chain)
    named = write.root.isidentifier() and write.root != write.owner_name and write.bound >= 0
    # Who changes all of it goes on with it, at times: of a part, 3 of 161,000 public functions do that.
    return plain and named and write.partial and len(write.storages) == 1


def _is_room(unit: UnitFacts, write: Write) -> bool:
    """Whether an argument may be there to be filled: nothing is made of what was in it."""
    mine = [one for one in unit.writes.values() if one.owner_name == write.owner_name and one.owner == ARGUMENT]
    if any(one.reads_old for one in mine):
        return False
    return write.owner_name in unit.optional or write.owner_name.rpartition("_")[2] in _ROOM
