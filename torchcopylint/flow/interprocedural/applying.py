"""What a call of a function of the file does, by the summary of that function."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.base.finding import Role
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
from torchcopylint.flow.graphs import gathered, runs
from torchcopylint.flow.interprocedural import (
    adding,
    attributes,
    exchanging,
    field_reads,
    handing,
    keyed,
    lending,
    outer_reads,
    passed_twice,
    passing,
    yielding,
)
from torchcopylint.flow.interprocedural.call_results import follow, one_result
from torchcopylint.flow.interprocedural.returned import (
    Returned,
    save_arguments,
)
from torchcopylint.flow.interprocedural.summaries import ArgumentWrite, Summary, lent_in, switch_of
from torchcopylint.flow.library import custom
from torchcopylint.flow.model import (
    ANY_ELEMENT,
    ARGUMENT,
    CONTAINERS,
    GENERATOR,
    TENSORS,
    UNKNOWN,
    Fact,
    Kind,
    Object,
    Sure,
    Value,
)
from torchcopylint.flow.program import memos, ownership
from torchcopylint.flow.references import FunctionReference
from torchcopylint.flow.storages import (
    aliasing,
    field_uses,
    memory_given,
    own_entries,
    reading,
    renewing,
    replacing,
    slots,
    writing,
)
from torchcopylint.flow.tapes import outer
from torchcopylint.flow.values import inside, memory, naming
from torchcopylint.flow.values.sites import STATISTICS, Arguments, Site

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine


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
    outer_reads.by_call(m, reference.unit, site, name)
    if summary is None:
        stepping.maybe_trains(m, arguments, site, name, bound.get("self"))
        unknowns.maybe_filled(m, arguments)
        return memory.unknown(m, site, f"{name}(...)")
    m.called.elsewhere.pop(site, None)
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
        gathered.note_call(m, reference.unit, site)
    if summary.put_back:
        field_uses.read_by_call(m, summary.put_back, bound.get(unit.first, UNKNOWN), site, name)
    do_to_arguments(m, reference.unit, summary, bound, site, name)
    passed_twice.note(m, reference.unit, summary, bound, site, name)
    aliasing.pair_arguments(m, summary.pairs, bound, site)
    renewing.by_call(m, summary.renewed, bound, site)
    exchanging.by_call(m, reference.unit, summary.exchanged, bound, site)
    handing.take(m, reference.unit, summary.kept, bound, site)
    memory_given.by_call(m, reference.unit, bound, site, name)
    adding.add(m, reference.unit, summary.added, bound, site)
    sums = {(one.keeper, "".join(one.path)) for one in summary.added} if m.runs.sites else set()
    left = tuple(one for one in summary.left if (one.keeper, one.slot) not in sums)
    leaving.take(m, left, bound, site, attributes.attribute)
    if summary.trains and m.state.mode.recording is not Fact.NO:
        m.backward.calls_trainer = True
    result = _result(m, summary, {**bound, **_outer_names(m, reference.unit, summary)}, behind, arguments, site, name)
    for place in lent_in(m.world.machines.get(reference.unit)):
        inside.note(m, site, Role.SHARED, place)
    leaving.tie(m, summary.left, bound, result, site)
    if summary.carries:
        carrying.take(m, summary.carries, unit, bound.get(unit.first, UNKNOWN), result, site, attributes.attribute)
    return _of_places(m, reference.unit, summary, bound.get(unit.first), result, site, name)


def _outer_names(m: Machine, number: int, summary: Summary) -> dict[str, Value]:
    """What stands here under the names that a function takes from outside, if it returns that or a part of it."""
    parts = [*summary.parts, *(inner for part in summary.parts for inner in part.inner)]
    items = (*summary.returned, *(item for part in parts for item in part.returned))
    names = {item.parameter for item in items if outer.is_outer(item.parameter)}
    return {name: outer.value_of(m, number, name) for name in sorted(names)}


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
    asked = bound.get(switch_of(m.world.unit(number)), UNKNOWN).const is True
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
            m.called.part_writes[site] = (number, item.parameter, item.path)
        if not item.path or (len(item.path) == 1 and site not in m.called.writes):
            other = m.called.writes.get(site, (0, item.parameter))[1] != item.parameter
            passed = naming.key_text(m, bound[item.parameter].root) if other and item.parameter in bound else ""
            # Of what stands under a key, whoever gets it back with the rest has asked for that.
            place = not item.path or own_entries.is_place(item.path[0])
            back = place and _hands_back(summary, item.parameter, item.path)
            m.called.writes[site] = (number, item.parameter, back, passed, item.path)
    replacing.by_call(m, summary.replaced, bound, site)
    frozen.take(m, summary.switched, summary.frozen, bound)
    frozen.take_on(m, summary.on, bound)
    for parameter, path in summary.detached:
        detaching.cut(m, follow(m, bound.get(parameter, UNKNOWN), path))
    for parameter, path in summary.hooked:
        custom.hook(m, follow(m, bound.get(parameter, UNKNOWN), path), site)


def _hands_back(summary: Summary, parameter: str, path: tuple[str, ...]) -> bool:
    """Whether a function returns a parameter, or a part of it, itself or an alias of it, alone or with other things."""
    returned = (*summary.returned, *(one for part in summary.parts for one in part.returned))
    return any(one.parameter == parameter and one.path == path and not one.when for one in returned)


def _is_entry_of_argument(m: Machine, value: Value, path: tuple[str, ...]) -> bool:
    """Whether a path leads to what stands under a word in something that was handed in, and that nobody knows."""
    if len(path) != 1 or not path[0].startswith("['") or len(value.refs) != 1:
        return False
    obj = m.state.object(value.refs[0])
    return obj.kind in (Kind.UNKNOWN, Kind.DICT) and obj.owner == ARGUMENT


def _apply_write(m: Machine, item: ArgumentWrite, bound: dict[str, Value], site: int, name: str, *, also: bool) -> bool:
    """Whether there was anything to write."""
    value = bound.get(item.parameter)
    inside.note(m, site, Role.WRITTEN, item.at)
    if value is None:
        return False
    target = follow(m, value, item.path)
    if not target.refs and _is_entry_of_argument(m, value, item.path):
        # Nobody has looked at it yet: `loss = compute(inputs)`, and then `inputs["labels"]`.
        target = slots.slot_value(m, (value.refs[0], item.path[0]))
    if not target.refs:
        return False
    if item.form != "assign" and not item.path:
        # Nobody writes an archive of several arrays.
        memory.evidence_array(m, target)
    if item.tensor and not any(ref in m.shown.dropped for ref in target.refs):
        # Of what has been dropped of it before, a callee is no witness.
        memory.evidence_tensor(m, target)
    if item.module:
        memory.refine(m, target, Kind.MODULE, Sure.LIKELY)
    if item.places:
        m.called.elsewhere[site] = item.places
    inside.note(m, site, Role.WRITTEN, item.at, target)
    if not item.sure:
        m.custom.perhaps_written.add(site)
    if item.form == "step":
        ownership.note_used(m, target, site, f"{name}(...)")
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
    if item.in_graph and m.state.mode.recording > 0:
        m.called.graph_writes.add(site)
        at = Site(site, naming.key_text(m, target.root), f"{name}(...)", item.form)
        grads.check_leaf(m, target, at, view=item.form == "item")
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
        if part.same:
            same = slots.slot_value(m, (result.refs[0], part.same))
            slots.bind_slot(m, (result.refs[0], part.slot), same._replace(root=None), site)
            continue
        held = one_result(m, part.returned, part.result, bound, inputs, site, name, part.slot, order)
        held = lending.take(m, part.lent, bound.get("self"), held, site)
        slots.bind_slot(m, (result.refs[0], part.slot), held, site)
        for inner in part.inner if len(held.refs) == 1 else ():
            tag = f"{part.slot}{inner.slot}"
            one = one_result(m, inner.returned, inner.result, bound, inputs, site, name, tag)
            slots.bind_slot(m, (held.refs[0], inner.slot), one, site)
        within = [slots.slot_value(m, (held.refs[0], inner.slot)) for inner in part.inner if len(held.refs) == 1]
        hung = [runs.hang_together(m, one, part.group, site) for one in within or [held]] if part.saved else []
        if hung and all(hung):
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
