"""What a function of this file does to its arguments, and what it returns, so that its callers need not run it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from torchcopylint.base.finding import Role
from torchcopylint.flow import tape as t
from torchcopylint.flow.autograd import (
    carrying,
    detaching,
    frozen,
    grads,
    hanging,
    leaving,
    run_inside,
    stepping,
    unknowns,
)
from torchcopylint.flow.facts import Inside, Place, ViewRefused, Write
from torchcopylint.flow.graphs import cutting, runs
from torchcopylint.flow.interprocedural import (
    adding,
    attributes,
    field_reads,
    handing,
    keyed,
    lending,
    passing,
    yielding,
)
from torchcopylint.flow.interprocedural.call_results import follow, one_result
from torchcopylint.flow.interprocedural.returned import (
    OTHERWISE,
    Returned,
    ReturnedPart,
    inner_function,
    parts_of,
    returned_by,
    save_arguments,
    saved_arguments,
)
from torchcopylint.flow.library import custom
from torchcopylint.flow.model import (
    ANY_ELEMENT,
    CONTAINERS,
    GENERATOR,
    TENSORS,
    UNKNOWN,
    Fact,
    How,
    Kind,
    Object,
    Sure,
    Value,
)
from torchcopylint.flow.program import memos
from torchcopylint.flow.references import FunctionReference
from torchcopylint.flow.storages import aliasing, field_uses, own_entries, reading, renewing, replacing, slots, writing
from torchcopylint.flow.tapes import outer, undone
from torchcopylint.flow.values import inside, kinds, memory, naming
from torchcopylint.flow.values.sites import STATISTICS, Arguments

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine
    from torchcopylint.flow.tape import Unit


MAX_PLACES = 3
"""The places that are told of a write which one file hands on to another."""


class ArgumentWrite(NamedTuple):
    """The function writes the memory of a parameter; `path` leads from the parameter to what is written.

    `on_request` is whether it may do so only if it is told to write in place, by a parameter of such a name; `tensor`
    whether the function shows that it is a tensor, and `module` that it is a module. `refused` is whether torch refuses
    the write while autograd records, so that nothing is written. `at` is where it does so, for the file that it is in.
    """

    parameter: str
    path: tuple[str, ...]
    op: str
    form: str
    reads_old: bool
    versioned: bool
    sure: bool
    cause: str
    on_request: bool = False
    places: tuple[Place, ...] = ()
    tensor: bool = False
    module: bool = False
    refused: bool = False
    at: Inside | None = None


class Flag(NamedTuple):
    """A parameter that decides by itself what a function does, and its default, if that is a constant."""

    name: str
    default: bool | None
    has_default: bool


class Told(NamedTuple):
    """What a function does where its flags are told."""

    flags: tuple[tuple[str, bool | None], ...]
    summary: Summary


class Summary(NamedTuple):
    """What is known of one function. Plain data, free of sites, so that it can outlive the file's analysis."""

    name: str
    parameters: tuple[str, ...]
    writes: tuple[ArgumentWrite, ...]
    returned: tuple[Returned, ...]
    result: Object
    returns_value: bool
    trains: bool
    unknown: bool = False
    parts: tuple[ReturnedPart, ...] = ()
    kept: tuple[handing.Kept, ...] = ()
    added: tuple[adding.Added, ...] = ()
    hangs: tuple[hanging.Hanging, ...] = ()
    pairs: tuple[tuple[str, str, str], ...] = ()
    replaced: tuple[replacing.Replaced, ...] = ()
    renewed: tuple[tuple[str, Kind], ...] = ()
    switched: tuple[str, ...] = ()
    lent: str = ""
    lent_by: How | None = None
    keyed: str = ""
    """The field of `self` in whose container, by a key that is made of arguments, that stands which is returned."""
    left: tuple[leaving.Left, ...] = ()
    ran: tuple[run_inside.Ran, ...] = ()
    carries: tuple[carrying.Carried, ...] = ()
    yields: Returned | None = None
    put_back: tuple[str, ...] = ()
    """The fields of the object it is called on that a method loads into a module."""
    saves: tuple[str, ...] = ()
    """The arguments that backward over the result needs as they were."""
    cut: tuple[str, ...] = ()
    """The arguments of which only values are used, without their graph."""
    detached: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """The arguments, or parts of them, that it cuts from their history in place."""
    frozen: tuple[str, ...] = ()
    """The networks among them of which it switches off all parameters."""
    hooked: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """The modules among them to which it gives a full backward hook."""
    function: int = -1
    """The unit of the function inside of this one that is returned, whichever way it returns."""
    once: tuple[tuple[Returned, ...], Object] | None = None
    """What a generator hands out that does so once."""
    flags: tuple[Flag, ...] = ()
    told: tuple[Told, ...] = ()
    """Of a function of another file: its flags, and what it does as they are told."""


def places_in(summary: Summary) -> list[Inside]:
    """Where a function does something to what it is passed, as its summary says."""
    writes = [item.at for item in summary.writes]
    kept = [item.at for items in (summary.kept, summary.added, summary.replaced) for item in items]
    return [place for place in (*writes, *kept) if place is not None]


def lent_in(m: Machine | None) -> list[Inside]:
    """Where what a function of this file returns came to share memory with what it is passed, if in one place."""
    sites = m.lent_at if m is not None and m.world.is_of_file(m.unit.number) else set()
    found = [inside.innermost(m, site, Role.SHARED) for site in sites] if m is not None else []
    return [place for place in found if place is not None and len(found) == 1]


def summarise(m: Machine, file: str = "") -> Summary:
    """The summary of a unit that has been run. For use by other files, `file` is its path, and writes say where they
    stand."""
    unit = m.unit
    paths = argument_paths(m)
    carries = carrying.carried(m)
    returned, result = returned_by(m, m.returned, paths)
    otherwise = {Returned(name, (), None, ""): Returned(name, (), None, OTHERWISE) for name in m.returned_otherwise}
    returned = tuple(otherwise.get(item, item) for item in returned)
    returned, result = _as_declared(m, returned, result)
    return Summary(
        name=unit.name,
        parameters=tuple(p.name for p in unit.parameters if p.kind == "plain"),
        writes=_argument_writes(m, paths, file),
        returned=returned,
        result=result,
        returns_value=bool(m.returned),
        trains=m.trains,
        unknown=unit.is_generator or (not m.returned and _is_stub(unit)),
        parts=parts_of(m, paths, m.returned),
        kept=handing.kept(m, paths, told=not file),
        added=adding.added(m, told=not file),
        hangs=hanging.of(m, frozenset(item.slot[1:] for item in carries)),
        carries=carries if not file else tuple(item._replace(at=None) for item in carries),
        pairs=tuple(sorted(m.pairs)),
        replaced=replacing.of(m, told=not file),
        renewed=renewing.of(m),
        switched=frozen.switched_arguments(m),
        lent=lending.of(m),
        lent_by=lending.by(m),
        keyed=keyed.of(m) if not file else "",
        left=leaving.left(m, told=not file),
        ran=run_inside.ran(m),
        yields=yielding.of(m, paths),
        once=yielding.once(m, paths),
        put_back=field_uses.put_back(m),
        saves=saved_arguments(m, paths),
        cut=cutting.cut(m),
        detached=detaching.of_arguments(m, paths),
        frozen=frozen.frozen_arguments(m),
        hooked=tuple(paths[ref] for ref in m.hooks if ref in paths),
        function=-1 if file else inner_function(m, m.returned),
    )


def _argument_writes(m: Machine, paths: dict[int, tuple[str, tuple[str, ...]]], file: str) -> tuple[ArgumentWrite, ...]:
    """What a unit writes of its arguments, each with the places where it does. `file` as in `summarise`."""
    writes: dict[ArgumentWrite, tuple[tuple[Place, ...], Inside | None]] = {}
    switch = bool(m.writes) and bool(_switch(m.unit))
    on_arms = m.index.on_arms if switch else frozenset()
    reached = paths if file or not m.writes else paths | outer.paths(m)
    restored = undone.sites(m) if m.writes else frozenset()
    for write in m.writes.values():
        if write.site in restored:
            continue
        hit = [storage for storage in write.storages if storage in reached and not _is_added(m, write, storage)]
        hits = [reached[storage] for storage in hit]
        # Whatever has `parameters()` that can be written is a module.
        asked = any(link.how is How.PARAMETERS for link in write.chain)
        for storage, (parameter, path) in zip(hit, hits, strict=True):
            owner = m.state.object(storage)
            # A part of an argument is also a part of what it is a part of: only the part itself counts.
            if not any(o != (parameter, path) and o[0] == parameter and o[1][: len(path)] == path for o in hits):
                item = ArgumentWrite(
                    parameter,
                    path,
                    write.op,
                    write.form,
                    write.reads_old,
                    write.versioned,
                    len(write.storages) == 1,
                    write.cause,
                    switch and (len(write.storages) > 1 or write.site in on_arms),
                    tensor=write.kind in TENSORS and write.sure > Sure.HINT,
                    module=owner.kind is Kind.MODULE and (owner.sure > Sure.HINT or (asked and write.sure > Sure.HINT)),
                    refused=any(isinstance(fact, ViewRefused) for fact in m.facts.get(write.site, ())),
                )
                at = m.world.place(write.site) or ((file, write.site) if file else None)
                here = (Place(*at, m.unit.name, write.cause or write.op),) if at is not None else ()
                within = None if file else inside.innermost(m, write.site, Role.WRITTEN, write.op, storage)
                writes.setdefault(item, ((*here, *m.elsewhere.get(write.site, ())), within))
    return tuple(item._replace(places=places[:MAX_PLACES], at=at) for item, (places, at) in writes.items())


def _as_declared(m: Machine, returned: tuple[Returned, ...], result: Object) -> tuple[tuple[Returned, ...], Object]:
    """What a unit returns, if nothing is known of it, is the tensor that its annotation says: `-> torch.Tensor`."""
    declared = kinds.from_annotation(m, m.unit.returns) if result.kind is Kind.UNKNOWN and m.returned else None
    if declared is None or declared.kind is not Kind.TENSOR or m.unit.is_generator:
        return returned, result
    known = tuple(item._replace(when="") if item.when == "unknown" else item for item in returned)
    return tuple(dict.fromkeys(known)), result._replace(kind=Kind.TENSOR, sure=Sure.LIKELY)


def _is_added(m: Machine, write: Write, storage: int) -> bool:
    """Whether what is written has become a part of an argument here, so that the caller has not seen it before."""
    chain = m.chains.get(write.site, {}).get(storage | 1, ())
    return any(link.how is How.FIELD and link.site >= 0 for _, link in chain)


def _switch(unit: Unit) -> str:
    """The parameter that tells a function to write in place, if it has one."""
    return next((p.name for p in unit.parameters if p.name in ("inplace", "in_place")), "")


def _is_stub(unit: Unit) -> bool:
    """Whether a body does nothing: an abstract method, whose overrides are elsewhere."""
    idle = (t.Const, t.Load, t.Discard, t.Raise, t.Call, t.Attribute, t.Invoke)
    ends = not unit.tape or isinstance(unit.tape[-1], t.Raise | t.Discard | t.Const)
    return ends and len(unit.tape) <= 6 and all(isinstance(event, idle) for event in unit.tape)


def argument_paths(m: Machine) -> dict[int, tuple[str, tuple[str, ...]]]:
    """For each storage that belongs to an argument: the parameter, and the slots that lead to it."""
    paths: dict[int, tuple[str, tuple[str, ...]]] = {}
    pending: list[tuple[int, str, tuple[str, ...]]] = []
    for parameter in m.unit.parameters:
        ref = m.number("argument", parameter.name)
        pending.append((ref, parameter.name, ()))
    while pending:
        ref, name, path = pending.pop()
        if ref in paths or len(path) > 3:
            continue
        paths[ref] = (name, path)
        for attribute in sorted(m.state.slots.get(ref, ())):
            inner = m.number("slot", (ref, attribute))
            if m.state.get(inner) is not None:
                pending.append((inner, name, (*path, attribute)))
    return paths


def call(m: Machine, reference: FunctionReference, arguments: Arguments, site: int, name: str) -> Value:
    """The result of calling a function of this file, by its summary."""
    unit = m.world.unit(reference.unit)
    m.world.called(reference.unit, m.unit.number, m.state.mode)
    bound = passing.bind(unit, arguments)
    m.world.note_arguments(m, reference.unit, bound, site)
    summary = m.world.summary(reference.unit)
    for value in (*arguments.positional, *arguments.keywords.values()):
        reading.read(m, value, site, "argument", name)
        slots.field_read(m, value.root, site, "argument", name)
    field_reads.by_call(m, reference.unit, bound, site, name)
    if summary is None:
        stepping.maybe_trains(m, arguments, site, name, bound.get("self"))
        unknowns.maybe_filled(m, arguments)
        return memory.unknown(m, site, f"{name}(...)")
    m.elsewhere.pop(site, None)
    if not arguments.keywords or "**" not in arguments.keywords:
        summary = m.world.as_told(reference.unit, summary, bound)
    bound = passing.with_rest(m, unit, bound, arguments, site)
    behind = hanging.graphs(m, summary.hangs, bound)
    if not m.world.is_run(reference.unit) and not any(item.form in ("step", "load") for item in summary.writes):
        # A trainer of another file may train through objects of which nothing is known there.
        stepping.maybe_trains(m, arguments, site, name)
        if not summary.ran:
            unknowns.maybe_backward(m, arguments, site, name)
    if not m.world.is_of_file(reference.unit):
        run_inside.run(m, summary.ran, bound, site, name)
    if summary.put_back:
        field_uses.read_by_call(m, summary.put_back, bound.get(unit.first, UNKNOWN), site, name)
    do_to_arguments(m, reference.unit, summary, bound, site, name)
    aliasing.pair_arguments(m, summary.pairs, bound, site)
    renewing.by_call(m, summary.renewed, bound, site)
    handing.take(m, reference.unit, summary.kept, bound, site)
    adding.add(m, reference.unit, summary.added, bound, site)
    sums = {(one.keeper, "".join(one.path)) for one in summary.added} if m.runs.sites else set()
    left = tuple(one for one in summary.left if (one.keeper, one.slot) not in sums)
    leaving.take(m, left, bound, site, attributes.attribute)
    if summary.trains:
        m.trains = m.trains or False
    result = _result(m, summary, bound, behind, arguments, site, name)
    for place in lent_in(m.world.machines.get(reference.unit)):
        inside.note(m, site, Role.SHARED, place)
    leaving.tie(m, summary.left, bound, result, site)
    if summary.carries:
        carrying.take(m, summary.carries, unit, bound.get(unit.first, UNKNOWN), result, site, attributes.attribute)
    return _of_places(m, reference.unit, summary, bound.get(unit.first), result, site, name)


def _of_places(
    m: Machine, number: int, summary: Summary, owner: Value | None, result: Value, site: int, name: str
) -> Value:
    """What a call gives back, where that stands somewhere: in a field, under a key of one, or with a memo."""
    result = lending.take(m, summary.lent, owner, result, site, summary.lent_by)
    result = keyed.take(m, summary.keyed, owner, result, site)
    result = memos.take(m, number, name, result, site)
    return keyed.of_function(m, number, name, result, site)


def do_to_arguments(m: Machine, number: int, summary: Summary, bound: dict[str, Value], site: int, name: str) -> None:
    """What a call does to what it passes: memory that it writes, parts and flags that it sets, graphs that it cuts."""
    asked = bound.get(_switch(m.world.unit(number)), UNKNOWN).const is True
    written, elsewhere = False, any(item.form != "assign" for item in summary.writes)
    for item in summary.writes:
        # A tensor that is put on another storage leaves the one that it was on as it is: that is no part of one write.
        if (item.on_request and not asked) or (item.form == "assign" and elsewhere):
            continue
        if item.refused and m.state.mode.recording > 0:
            continue
        if outer.is_outer(item.parameter):
            bound[item.parameter] = outer.value_of(m, number, item.parameter)
        written = _apply_write(m, item, bound, site, name, also=written) or written
        if item.path:
            m.part_writes[site] = (number, item.parameter, item.path)
        if not item.path or (
            len(item.path) == 1 and own_entries.is_place(item.path[0]) and site not in m.argument_writes
        ):
            other = m.argument_writes.get(site, (0, item.parameter))[1] != item.parameter
            passed = naming.key_text(m, bound[item.parameter].root) if other and item.parameter in bound else ""
            back = _hands_back(summary, item.parameter, item.path)
            m.argument_writes[site] = (number, item.parameter, back, passed, item.path)
    replacing.by_call(m, summary.replaced, bound, site)
    frozen.take(m, summary.switched, summary.frozen, bound)
    for parameter, path in summary.detached:
        detaching.cut(m, follow(m, bound.get(parameter, UNKNOWN), path))
    for parameter, path in summary.hooked:
        custom.hook(m, follow(m, bound.get(parameter, UNKNOWN), path), site)


def _hands_back(summary: Summary, parameter: str, path: tuple[str, ...]) -> bool:
    """Whether a function returns a parameter, or a part of it, itself or an alias of it, alone or with other things."""
    returned = (*summary.returned, *(one for part in summary.parts for one in part.returned))
    return any(one.parameter == parameter and one.path == path and not one.when for one in returned)


def _apply_write(m: Machine, item: ArgumentWrite, bound: dict[str, Value], site: int, name: str, *, also: bool) -> bool:
    """Whether there was anything to write."""
    value = bound.get(item.parameter)
    inside.note(m, site, Role.WRITTEN, item.at)
    if value is None:
        return False
    target = follow(m, value, item.path)
    if not target.refs:
        return False
    if item.form != "assign" and not item.path:
        # Nobody writes an archive of several arrays.
        memory.evidence_array(m, target)
    if item.tensor and not any(ref in m.dropped for ref in target.refs):
        # Of what has been dropped of it before, a callee is no witness.
        memory.evidence_tensor(m, target)
    if item.module:
        memory.refine(m, target, Kind.MODULE, Sure.LIKELY)
    if item.places:
        m.elsewhere[site] = item.places
    inside.note(m, site, Role.WRITTEN, item.at, target)
    if not item.sure:
        m.perhaps_written.add(site)
    fact = writing.write(
        m,
        target,
        site,
        op=item.op,
        form="call" if item.form not in ("step", "load", "assign", STATISTICS) else item.form,
        name=naming.key_text(m, target.root) or m.state.object(target.refs[0]).text,
        # Who writes an item leaves the others as they are.
        reads_old=item.reads_old or item.form == "item",
        versioned=item.versioned,
        derived=True,
        cause=f"{name}(...)",
        also=also,
    )
    if m.state.mode.recording is not Fact.NO and item.versioned and _brings_graph(m, bound, item.parameter):
        grads.may_require_grad(m, target)
    return fact is not None


def _brings_graph(m: Machine, bound: dict[str, Value], written: str) -> bool:
    """Whether a call is given anything beside what it writes that may have a graph, or hold something that has."""
    others = [value for name, value in bound.items() if name != written]
    found = [m.state.object(ref) for value in others for ref in value.refs]
    carriers = (*TENSORS, *CONTAINERS, Kind.UNKNOWN)
    return any(obj.kind in carriers and obj.requires_grad is not Fact.NO for obj in found)


def _result(
    m: Machine,
    summary: Summary,
    bound: dict[str, Value],
    behind: hanging.Graphs,
    arguments: Arguments,
    site: int,
    name: str,
) -> Value:
    if summary.unknown:
        stepping.maybe_trains(m, arguments, site, name, bound.get("self"))
        unknowns.maybe_filled(m, arguments)
        if summary.once is not None:
            return _generator(m, summary.once, bound, arguments, site, name)
        return handed_out(m, summary, bound, site, name) or memory.unknown(m, site, f"{name}(...)")
    if not summary.returns_value:
        return Value(kind=Kind.NONE)
    if summary.function >= 0:
        return Value(kind=Kind.FUNCTION, const=FunctionReference(summary.function))
    without = [bound.get(name) for name in summary.cut]
    inputs = [*arguments.positional, *arguments.keywords.values()]
    inputs = [value for value in inputs if not any(value is other for other in without)]
    result = one_result(m, summary.returned, summary.result, bound, inputs, site, name)
    for order, part in enumerate(summary.parts if len(result.refs) == 1 else ()):
        if part.function >= 0:
            function = Value(kind=Kind.FUNCTION, const=FunctionReference(part.function))
            slots.bind_slot(m, (result.refs[0], part.slot), function, site)
            continue
        held = one_result(m, part.returned, part.result, bound, inputs, site, name, part.slot, order)
        held = lending.take(m, part.lent, bound.get("self"), held, site)
        slots.bind_slot(m, (result.refs[0], part.slot), held, site)
        for inner in part.inner if len(held.refs) == 1 else ():
            tag = f"{part.slot}{inner.slot}"
            one = one_result(m, inner.returned, inner.result, bound, inputs, site, name, tag)
            slots.bind_slot(m, (held.refs[0], inner.slot), one, site)
        if part.saved and runs.hang_together(m, held, part.group, site):
            continue
        # Several losses that come back need not have a graph in common.
        m.runs.parts.update(ref | 1 for ref in held.refs)
        m.runs.groups.update((ref | 1, part.group) for ref in held.refs)
    for part in summary.parts:
        held = slots.slot_value(m, (result.refs[0], part.slot))
        for inner in part.inner if len(held.refs) == 1 else ():
            if inner.same:
                same = slots.slot_value(m, (result.refs[0], inner.same))
                slots.bind_slot(m, (held.refs[0], inner.slot), same._replace(root=None), site)
    hanging.carry(m, behind, result, site, bound)
    if summary.saves:
        save_arguments(m, result, [bound.get(parameter, Value()) for parameter in summary.saves], site, name)
    return result


def _generator(
    m: Machine,
    once: tuple[tuple[Returned, ...], Object],
    bound: dict[str, Value],
    arguments: Arguments,
    site: int,
    name: str,
) -> Value:
    """What a call of a generator gives that hands out one thing."""
    inputs = [*arguments.positional, *arguments.keywords.values()]
    made = memory.fresh(m, site, Object(Kind.ITERATOR, Sure.PROVEN, type=GENERATOR, text=f"{name}(...)"))
    one = one_result(m, *once, bound, inputs, site, name, "handed out")
    slots.bind_slot(m, (made.refs[0], ANY_ELEMENT), one._replace(root=None), site)
    return made


def handed_out(m: Machine, summary: Summary, bound: dict[str, Value], site: int, name: str) -> Value | None:
    """What a call of a generator gives, if that hands out parts of what it is given."""
    item = summary.yields
    source = follow(m, bound.get(item.parameter, UNKNOWN), item.path) if item is not None else UNKNOWN
    return yielding.made(m, source, site, name)
