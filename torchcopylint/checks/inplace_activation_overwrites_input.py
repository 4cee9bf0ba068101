"""TCL203: `inplace=True` overwrites a tensor that is read afterwards as if it were the input still."""

from __future__ import annotations

from collections.abc import Iterator

from torchcopylint.base.finding import Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import (
    PLAIN_HOWS,
    caller_suffers,
    confidence,
    first_reads,
    of_container,
    order_of,
    read_point,
    shared_points,
    written_point,
)
from torchcopylint.flow.facts import CallerSuffers, HookedSpoilt, KeptOfLayer, KeptSpoilt, ReadAfter, UnitFacts, Write
from torchcopylint.flow.model import IF_IDENTITY, How

ACROSS_CALLS = True
OF_GUESTS = True


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report each activation in place whose input is read later, under another name or under its own."""
    others = first_reads(unit, own=False)
    owns = first_reads(unit, own=True)
    for write in unit.writes.values():
        if write.form != "activation":
            continue
        reads = [read for read in others.get(write.site, []) if _kept_apart(read)]
        reads += [read for read in owns.get(write.site, []) if _input_again(read, write)]
        reads = reads or [read for read in others.get(write.site, []) if _kept_by_identity(read)]
        if reads:
            read = of_container(min(reads, key=order_of))
            values = {"name": read.name, "op": write.op, "source": write.root or write.name}
            points = (*shared_points(() if read.own else read.links), written_point(write), read_point(read, write))
            if write.told >= 0:
                # A layer does what it was told when it was made: there one changes it.
                points = (Point(Role.WRITTEN, write.told, "written.told", values), *points)
            site = write.told if write.told >= 0 else write.site
            variant = "input" if read.own else "identity" if read.conditional else ""
            # What is read sits on the memory of what is written: where that is a tensor, this is one.
            yield Report(site, points, values, confidence(write.sure), variant)
    for suffers in caller_suffers(unit, in_network=True):
        yield _of_caller(unit, unit.writes[suffers.site], suffers)
    for fact in unit.facts:
        if isinstance(fact, KeptOfLayer):
            yield _of_layers(fact)
        elif isinstance(fact, KeptSpoilt):
            yield _of_others(fact)
        elif isinstance(fact, HookedSpoilt):
            yield _of_hooks(fact)


def _of_caller(unit: UnitFacts, write: Write, fact: CallerSuffers) -> Report:
    """What a function is given, and its caller reads again."""
    values = {"name": fact.passed, "op": write.op, "source": fact.name, "target": unit.name}
    told = (Point(Role.WRITTEN, write.told, "written.told", values),) if write.told >= 0 else ()
    passed = Point(Role.SHARED, fact.call, "shared.passed", {**values, "source": fact.passed, "result": fact.name})
    read = Point(Role.READ, fact.read, "read.caller", {"name": fact.passed})
    site = write.told if write.told >= 0 else write.site
    return Report(site, (*told, passed, written_point(write), read), values, confidence(fact.sure, write.sure))


def _of_others(fact: KeptSpoilt) -> Report:
    """What a function has put away for others."""
    values = {"name": fact.holder, "op": fact.op, "source": fact.holder, "container": fact.holder}
    kept = Point(Role.KEPT, fact.kept, "kept.others", values)
    written = Point(Role.WRITTEN, fact.site, "written", values)
    told = Point(Role.WRITTEN, fact.told, "written.told", values)
    points = (told, kept, written) if fact.told >= 0 else (kept, written)
    return Report(fact.told if fact.told >= 0 else fact.site, points, values, confidence(fact.sure), "kept")


def _of_hooks(fact: HookedSpoilt) -> Report:
    """What a forward hook has put away of a layer's output."""
    values = {"name": fact.holder, "op": fact.op, "source": fact.holder, "container": fact.holder}
    points = (
        Point(Role.KEPT, fact.site, "kept.others", values),
        Point(Role.WRITTEN, fact.written, "written.next", values),
    )
    return Report(fact.site, points, values, confidence(fact.sure), "hooked")


def _of_layers(fact: KeptOfLayer) -> Report:
    """What a loop over layers has collected, and the next layer overwrites."""
    values = {"name": fact.holder, "op": fact.op, "source": fact.name, "container": fact.holder, "target": ""}
    points = (
        Point(Role.WRITTEN, fact.site, "written.told", values),
        Point(Role.KEPT, fact.kept, "kept.append", {**values, "name": fact.name}),
        Point(Role.WRITTEN, fact.call, "written.next", values),
        Point(Role.READ, fact.read, "read.look", values),
    )
    return Report(fact.site, points, values, confidence(fact.sure))


def _kept_apart(read: ReadAfter) -> bool:
    """Whether another holder has kept the input, surely and as it was."""
    plain = read.hows <= PLAIN_HOWS or not any(link.when for link in read.links)
    return read.certain and bool(read.links) and plain and _is_above(read)


def _kept_by_identity(read: ReadAfter) -> bool:
    """Whether another holder has the input where the layer that has made it is an identity: a shortcut without a
    projection."""
    conditions = {link.when for link in read.below_read if link.when}
    return conditions == {IF_IDENTITY} and read.conditional and _is_above(read)


def _is_above(read: ReadAfter) -> bool:
    """Whether what was written is all that the holder was made of, by nothing but what keeps the values."""
    return read.hows <= PLAIN_HOWS | {How.CONDITIONAL} and not read.below_written


def _input_again(read: ReadAfter, write: Write) -> bool:
    """Whether the input is read by its own name although the result got another one.

    `x = relu(x)` and a plain `relu(x)` say that the input is to change. Applying the same activation to it again, as
    each of several branches may do, changes nothing. Nor is the input what has got its name since:
    `x = dropout(relu(x))`. What is bound after the read has been bound by the last turn of a loop.
    """
    anew = read.bound > write.site and not write.site < read.site <= read.bound
    if anew or write.result in ("", write.name) or read.name != write.root or write.derived or read.site in write.used:
        return False
    return read.certain and f"{read.target}(...)" != write.op and read.target != write.op
