"""TCL701: a state dict is kept as a snapshot while what it holds is overwritten."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torchcopylint.base.finding import Confidence, Role
from torchcopylint.base.report import Point, Report
from torchcopylint.checks._common import (
    DIRECT_FORMS,
    at_most,
    confidence,
    first_read_of,
    first_reads,
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
    ReadAfter,
    StatesMerged,
    UnitFacts,
    Write,
)
from torchcopylint.flow.model import OF_STATISTICS, OPTIMIZER_STATE, How, Kind, Sure

ACROSS_CALLS = True


def check(unit: UnitFacts) -> Iterator[Report]:
    """Report each snapshot by reference that is read after its parameters were written; once per snapshot."""
    seen: set[int] = set()
    for site, reads in sorted(first_reads(unit, own=False).items()):
        write = unit.writes[site]
        for read in sorted(reads, key=order_of):
            taken = [link for link in read.below_read if link.how is How.STATE]
            if not taken or taken[-1].site in seen or _own_doing(read, write) or _is_filled_from(read, write):
                continue
            # On the path where it is no copy, it is none, however it is made on the others.
            if not read.certain and not read.partly and not read.conditional:
                continue
            if read.consumer != "load_state_dict" and _reaches_model(unit, taken[-1]):
                continue
            link = taken[0]
            if OPTIMIZER_STATE in read.flags and not _is_of_optimizer(write, link):
                continue
            if write.form == "statistics" and not (_puts_back(read, link) or _is_of_statistics(read)):
                continue
            seen.add(taken[-1].site)
            yield _report(read, write, link, taken[-1].site)
    for fact in unit.facts:
        if isinstance(fact, Collected) and fact.kind is Kind.STATE_DICT:
            states = [link for link in fact.links if link.how is How.STATE]
            if states and states[-1].site not in seen:
                seen.add(states[-1].site)
                yield from _collected(unit, fact, states[-1])
        if isinstance(fact, StatesMerged) and fact.site not in seen:
            seen.add(fact.site)
            yield _merged(unit.writes[fact.written], fact)


_MEETING = frozenset({"loaded", "averaged"})


def check_class(methods: Sequence[UnitFacts]) -> Iterator[Report]:
    """Report snapshots that one method keeps in a field and another reads: between the calls, training goes on."""
    kept = [fact for unit in methods for fact in unit.facts if isinstance(fact, Kept) and fact.how is How.STATE]
    reads = [fact for unit in methods for fact in unit.facts if isinstance(fact, FieldRead)]
    met = [fact for unit in methods for fact in unit.facts if isinstance(fact, FieldMet) and fact.form in _MEETING]
    steps = [write for unit in methods for write in unit.writes.values() if write.form == "step"]
    for fact in kept:
        restored = [r for r in reads if r.field == fact.field and r.consumer in ("load_state_dict", "return")]
        restored = [r for r in restored if r.method != fact.method]
        loaded = [m for m in met if m.field == fact.field and m.source in fact.sources]
        loaded = [m for m in loaded if m.method != fact.method or m.earlier]
        restored = [r for r in restored if r.method not in fact.renewed]
        loaded = [m for m in loaded if m.method not in fact.renewed]
        if fact.optimizer and fact.sure is Sure.NOT:
            continue
        if fact.optimizer:
            # Who asks for the state of an optimizer may be about to write it to a file.
            restored = [r for r in restored if r.consumer == "load_state_dict" and loaded]
        if not steps:
            # Put back by the very method that has kept it, within one call: nobody trains meanwhile.
            restored = [r for r in restored if r.method not in fact.calls]
            loaded = [m for m in loaded if m.method not in fact.calls]
        if fact.when and not loaded and not any(name.startswith("self.") for name in fact.sources):
            # Whether it is a copy is one question, and whether the object ever trains what it was given another.
            continue
        if restored or loaded:
            read = min([r.site for r in restored] or [m.site for m in loaded])
            report = _report_class(fact, read, min(steps, key=lambda w: w.site) if steps else None)
            # Whoever asks for what the object has of its own model may want the present one.
            alone = not steps and not loaded and all(r.consumer == "return" for r in restored)
            alone = alone and all(name.startswith("self.") for name in fact.sources)
            yield report._replace(confidence=Confidence.LOW) if alone else report
        elif (fact.record and (steps or fact.lasting)) or (fact.counted and not fact.when) or fact.appended:
            # All the entries are one memory, whatever has become of it by the time that somebody looks.
            yield _report_class(fact, None, min(steps, key=lambda w: w.site) if steps else None)


def _report_class(fact: Kept, read: int | None, step: Write | None) -> Report:
    name = f"self.{fact.field}"
    source = fact.source.removesuffix(".state_dict()")
    return Report(
        site=fact.shared,
        points=(
            Point(Role.SHARED, fact.shared, "shared.state", {"source": source, "result": name, "when": ""}),
            *((written_point(step),) if step is not None else ()),
            *((Point(Role.READ, read, "read.field", {"name": name}),) if read is not None else ()),
        ),
        values={
            "name": name,
            "source": source,
            "cause": step.cause if step is not None else "training",
            "when": fact.when,
        },
        confidence=at_most(Confidence.MEDIUM, confidence(fact.sure)),
        variant="conditional" if fact.when else "shallow" if fact.shallow else "optimizer" if fact.optimizer else "",
    )


def _merged(write: Write, fact: StatesMerged) -> Report:
    """The states of several models are added to that of one of them, which was to keep its own."""
    names = {"source": fact.source, "result": fact.name, "when": ""}
    return Report(
        site=fact.site,
        points=(Point(Role.SHARED, fact.site, "shared.state", names), written_point(write)),
        values={"name": fact.name, "source": fact.source, "cause": f"{write.name} {write.op} ...", "when": ""},
        confidence=at_most(Confidence.MEDIUM, confidence(fact.sure)),
    )


def _collected(unit: UnitFacts, fact: Collected, taken: Link) -> Iterator[Report]:
    """A snapshot of one model is put into a container in each turn of a loop that trains the model on."""
    write, read = unit.writes[fact.write], first_read_of(unit, fact)
    if read is None and not fact.outside:
        return
    source = taken.source.removesuffix(".state_dict()")
    yield Report(
        # What a call trains and hands out is put aside where it is put into the container.
        site=fact.site if taken.site == write.site else taken.site,
        points=(
            Point(Role.SHARED, taken.site, "shared.state", {"source": source, "result": fact.name, "when": ""}),
            Point(Role.KEPT, fact.site, f"kept.{fact.form}", {"name": fact.name, "container": fact.container}),
            written_since(write, fact.site),
            *((read_point(read, write),) if read is not None else ()),
        ),
        values={
            "name": fact.container or fact.name,
            "source": source,
            "cause": write.cause or write.op,
            "when": fact.when,
        },
        confidence=at_most(Confidence.HIGH if read is not None else Confidence.MEDIUM, confidence(fact.sure)),
        variant="conditional" if fact.when else "collected",
    )


def _own_doing(read: ReadAfter, write: Write) -> bool:
    """The snapshot's own items were written on purpose, through the snapshot."""
    return bool(read.below_written) and any(link.how is How.STATE for link in read.below_written)


def _reaches_model(unit: UnitFacts, taken: Link) -> bool:
    """Whether the model is written through elements of what was taken: `for p in self.params: p.mul_(1 - decay)`. Who
    holds the tensors of a state for that wants the present ones."""
    writes = [write for write in unit.writes.values() if write.form in DIRECT_FORMS and "[" not in write.name]
    return any(link.how is How.STATE and link.site == taken.site for write in writes for link in write.chain)


def _is_of_optimizer(write: Write, link: Link) -> bool:
    """Whether a write changes what an optimizer keeps, as its steps do, and its own loading. What it keeps for its
    parameters is not their memory: `p.zero_()` and `model.load_state_dict(saved)` leave the averages as they are. So
    does another optimizer over the same parameters, which has got the name of the first one."""
    if write.bound > link.site:
        return False
    return write.form == "step" or (write.form == "load" and write.name == link.source.removesuffix(".state_dict()"))


def _puts_back(read: ReadAfter, link: Link) -> bool:
    """Whether a state is loaded into the model that it was taken from: it was to undo what a call has done to the
    statistics. Else, it may be wanted for its parameters, or as it is now."""
    return read.consumer == "load_state_dict" and link.source.removesuffix(".state_dict()") == read.target


def _is_of_statistics(read: ReadAfter) -> bool:
    """Whether the statistics of a snapshot are looked at by their name: `before["running_mean"]`, in arithmetic with
    what a layer has come to since."""
    return OF_STATISTICS in read.flags and read.consumer == "operand"


def _is_filled_from(read: ReadAfter, write: Write) -> bool:
    """Whether one part of the model after another is filled from another part, by way of the state dict:
    `p.data.copy_(state[name.replace("_query", "")])`. What a turn reads is then no snapshot of what it writes."""
    return read.site == write.site and write.op == "copy_"


def _report(read: ReadAfter, write: Write, link: Link, taken: int) -> Report:
    shallow = "shallow" in read.flags or read.element
    variant = "optimizer" if OPTIMIZER_STATE in read.flags else "shallow" if shallow else ""
    if read.conditional:
        variant = "conditional"
    name = read.name.partition("[")[0] if read.element else read.name
    cause = write.cause or f"{write.op}"
    # Whose parameters an optimizer moves that nobody has seen being made, is a likely guess.
    limit = Confidence.HIGH if read.certain and write.sure >= Sure.LIKELY else Confidence.MEDIUM
    return Report(
        site=taken,
        points=(
            Point(Role.SHARED, taken, "shared.state", {"source": link.source, "result": name, "when": ""}),
            written_point(write),
            read_point(read, write),
        ),
        values={
            "name": name,
            "source": link.source.removesuffix(".state_dict()"),
            "cause": cause,
            "when": next((link.when for link in read.below_read if link.when), ""),
        },
        confidence=at_most(limit, confidence(read.sure)),
        variant=variant,
    )
