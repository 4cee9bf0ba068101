"""Custom autograd Functions, and modules with a full backward hook, which wraps what they take and give in one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.autograd import grads, saving, unknowns
from torchcopylint.flow.facts import FunctionInput, Saved, ViewRefused
from torchcopylint.flow.graphs import differentiated
from torchcopylint.flow.library import operations
from torchcopylint.flow.model import (
    CONTAINERS,
    CUSTOM_VIEW,
    HOOKED,
    LOCAL,
    TENSORS,
    Fact,
    How,
    Kind,
    Object,
    Sure,
    Value,
)
from torchcopylint.flow.storages import slots, writing
from torchcopylint.flow.values import dtypes, memory, naming
from torchcopylint.flow.values.sites import Site

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine
    from torchcopylint.flow.tapes.index import UnitIndex
    from torchcopylint.flow.values.sites import Arguments

_VIEWS = frozenset({How.VIEW, How.INDEX, How.ROW})
MAX_SAVED = 8
"""So many of the tensors that a `forward` saves are followed: sites have as many numbers for what is saved."""


def mark_dirty(m: Machine, arguments: Arguments, site: int) -> None:
    """`ctx.mark_dirty(...)`: these inputs have been changed in place."""
    for value in arguments.positional[1:]:
        m.custom.marked_alone.update(value.refs if len(value.refs) == 1 else ())
        for ref in value.refs:
            m.custom.dirty[ref] = site


def save_for_backward(m: Machine, arguments: Arguments) -> None:
    """`ctx.save_for_backward(...)`: these are tensors, and backward asks for them as they are now."""
    for value in arguments.positional[1:]:
        memory.evidence_tensor(m, value)
        m.custom.kept_for_backward.extend(value.refs if len(value.refs) == 1 else ())


def conclude(m: Machine) -> None:
    """What a `forward` that has been run does to its inputs."""
    inputs = _inputs(m)
    outputs = _returned(m)
    dirty = _marked(m)
    if dirty is None:
        return
    known = all(m.state.object(ref).kind in TENSORS for ref in outputs)
    told: set[int] = set()
    for write in sorted(m.writes.values()):
        hits = [storage for storage in write.storages if storage in inputs]
        if len(write.storages) != 1 or not hits or not write.versioned or write.form in ("step", "load", "assign"):
            continue
        if write.site in m.custom.perhaps_written:
            # What is called writes one of several things, as `forward` itself might.
            continue
        ref = hits[0]
        sure = max(write.sure, Sure.LIKELY)
        if ref not in dirty and ref not in told and (ref in outputs or differentiated.has_gradient(m, inputs[ref])):
            told.add(ref)
            m.fact(FunctionInput(write.site, inputs[ref], write.op, "unmarked", -1, sure))
        elif ref in dirty and outputs and ref not in outputs and known:
            m.fact(FunctionInput(dirty[ref], inputs[ref], write.op, "lost", write.site, sure))
    for ref in sorted(m.custom.marked_alone):
        obj = m.state.object(ref)
        made_here = obj.owner in ("", LOCAL) and all(share.storage not in inputs for share in obj.shares)
        if made_here and obj.kind in TENSORS and known and outputs:
            why, op = ("temporary", "mark_dirty") if ref in outputs else ("lost", "forward")
            m.fact(FunctionInput(m.custom.dirty[ref], obj.text, op, why, obj.site, max(obj.sure, Sure.LIKELY)))


def _marked(m: Machine) -> dict[int, int] | None:
    """The inputs of a `forward` that are marked as dirty, be it in `setup_context`, and where; `None` if nobody knows
    which these are."""
    number = m.world.method(m.unit.owner, "setup_context")
    if number is None:
        return m.custom.dirty
    if not m.world.is_own(number):
        return None
    outputs = _returned(m)
    found = _by_setup(m, "mark_dirty", min(outputs) if len(outputs) == 1 else -1)
    marking = [event for event in m.world.index(m.world.unit(number)).of(t.Invoke) if event.name == "mark_dirty"]
    told = len(found) == sum(len(event.arguments) for event in marking)
    return found if told and -1 not in found else None


def _inputs(m: Machine) -> dict[int, str]:
    """What a `forward` is given beside the context, which it does not get where there is a `setup_context`."""
    apart = m.unit.owner >= 0 and m.world.method(m.unit.owner, "setup_context") is not None
    given = m.unit.parameters[0 if apart else 1 :]
    return {m.number("argument", p.name): p.name for p in given if p.kind == "plain"}


def _returned(m: Machine) -> set[int]:
    """The objects that a unit returns, those in a tuple included."""
    found: set[int] = set()
    for value in m.results.returned:
        for ref in value.refs:
            if m.state.object(ref).kind in CONTAINERS:
                for slot in m.state.slot_names(ref):
                    found.update(m.state.refs_of(slot))
            else:
                found.add(ref)
    return found


def apply(m: Machine, number: int, arguments: Arguments, site: int, name: str) -> Value:
    """The result of `Function.apply(...)`: an input that comes back as it was, or a view of one, is a special view.

    What `forward` computes has the graph of the inputs behind it, and needs what the context has saved as it was.
    """
    result = unknowns.call_unknown(m, arguments, site, name)
    forward = m.world.method(number, "forward")
    if forward is None:
        return result
    first = 0 if m.world.method(number, "setup_context") is not None else 1
    names = [p.name for p in m.world.unit(forward).parameters[first:] if p.kind == "plain"]
    m.world.note_arguments(m, forward, dict(zip(names, arguments.positional, strict=False)))
    machine = m.world.machine_of(forward)
    if machine is None:
        return result
    inputs = list(_inputs(machine))
    _check_dirty_views(m, machine, inputs, arguments, site)
    invoked = {event.name for event in machine.index.of(t.Invoke)}
    if (
        len(machine.results.returned) != 1
        or len(machine.results.returned[0].refs) != 1
        or "mark_non_differentiable" in invoked
    ):
        return result
    at = Site(site, "", f"{name}(...)", "call")
    returned = machine.results.returned[0].refs[0]
    slots_of = machine.state.slot_names(returned)
    if machine.state.object(returned).kind is not Kind.TUPLE or not all(s[1][1:-1].isdigit() for s in slots_of):
        return _output(m, machine, returned, arguments, result, at)
    whole = memory.fresh(m, site, Object(Kind.TUPLE, Sure.PROVEN, text=at.op), "outputs")
    for slot in slots_of:
        held = machine.state.refs_of(slot)
        part = memory.fresh(m, site, m.state.object(result.refs[0]), f"part{slot[1]}")
        part = _output(m, machine, held[0], arguments, part, at, slot[1]) if len(held) == 1 else part
        slots.bind_slot(m, (whole.refs[0], slot[1]), part, site)
    return whole


def _output(
    m: Machine, machine: Machine, returned: int, arguments: Arguments, result: Value, at: Site, tag: str = ""
) -> Value:
    """What comes back for one of the objects that `forward` returns; `result` if nobody knows."""
    inputs = list(_inputs(machine))
    obj = machine.state.object(returned)
    if obj.kind in TENSORS and not any(s.storage in inputs for s in obj.shares):
        return _computed(m, machine, returned, arguments, result, at)
    sources = [s.storage for s in obj.shares if s.storage in inputs and s.sure and s.how in (*_VIEWS, How.OWN)]
    if len(sources) != 1 or len(obj.shares) != 1:
        return result
    position = inputs.index(sources[0])
    if position >= len(arguments.positional) or not arguments.positional[position].refs:
        return result
    source = arguments.positional[position]
    if sources[0] in _dirty(machine):
        # The input has become the output: to autograd, that is an operation in place.
        place = at._replace(name=naming.key_text(m, source.root) or "its input")
        operations.write_through(m, source, arguments.positional, place, reads_old=True, versioned=True)
        return writing.current(m, source) if returned == sources[0] else result
    made = Object(Kind.TENSOR, Sure.PROVEN, text=at.op, flags=frozenset({CUSTOM_VIEW}))
    made = grads.result_of(m, made, arguments.positional, True)
    return memory.alias(m, source._replace(root=None), at.site, How.VIEW, made, tag=tag)


def _computed(m: Machine, machine: Machine, returned: int, arguments: Arguments, result: Value, at: Site) -> Value:
    """What `forward` has made anew, with what it has saved for `backward`, if that asks for it."""
    if machine.state.object(returned).dtype in dtypes.INTEGERS:
        return result
    ref = result.refs[0]
    made = m.state.object(ref)._replace(kind=Kind.TENSOR, sure=Sure.LIKELY)
    m.state.set_object(ref, grads.result_of(m, made, arguments.positional, True))
    if m.state.object(ref).requires_grad <= 0 or not _asks_for_saved(machine):
        return result
    ids: list[int] = []
    inputs = list(_inputs(machine))
    kept_here = [*machine.custom.kept_for_backward, *_by_setup(machine, "save_for_backward", returned)]
    for number, kept in enumerate(kept_here[:MAX_SAVED]):
        if kept == returned:
            ids += saving.save(m, result, at.site * 8 + number, Saved(at.site, at.op, "output", "its result"))
        elif kept in inputs and inputs.index(kept) < len(arguments.positional):
            value = arguments.positional[inputs.index(kept)]
            text = naming.key_text(m, value.root) or "its input"
            ids += saving.save(m, value, at.site * 8 + number, Saved(at.site, at.op, "input", text))
    obj = m.state.object(ref)
    m.state.set_object(ref, obj._replace(graph=obj.graph | frozenset(ids)))
    return result


def _dirty(m: Machine) -> set[int]:
    """The inputs of a `forward` that its context marks as dirty, if in `setup_context`."""
    return {*m.custom.dirty, *_by_setup(m, "mark_dirty", -1)}


def _by_setup(m: Machine, method: str, output: int) -> dict[int, int]:
    """What `setup_context(ctx, inputs, output)` gives to a method of the context, an input or the output, and where."""
    number = m.world.method(m.unit.owner, "setup_context")
    if number is None or not m.world.is_own(number) or len(m.world.unit(number).parameters) != 3:
        return {}
    unit, inputs = m.world.unit(number), list(_inputs(m))
    found: dict[int, int] = {}
    for event in m.world.index(unit).of(t.Invoke):
        for argument in event.arguments if event.name == method else ():
            place = _place_in(m.world.index(unit), argument.register)
            if place is None and _is_named(unit, argument.register, unit.parameters[2].name):
                found[output] = event.site
            elif place is not None and 0 <= place < len(inputs):
                found[inputs[place]] = event.site
    return found


def _place_in(index: UnitIndex, register: int) -> int | None:
    """Which of the `inputs` of a `setup_context` a register holds: `x, y = inputs`, `inputs[0]`."""
    unit = index.unit
    event = unit.definitions[register] if register >= 0 else None
    if isinstance(event, t.Load) and len(index.binds.get(event.name, ())) == 1:
        event = unit.definitions[index.binds[event.name][0].value]
    if isinstance(event, t.Unpack) and _is_named(unit, event.value, unit.parameters[1].name):
        return event.position
    if isinstance(event, t.Item) and _is_named(unit, event.base, unit.parameters[1].name):
        part = event.subscript[0] if len(event.subscript) == 1 else None
        const = unit.definitions[part] if isinstance(part, int) and part >= 0 else None
        return const.value if isinstance(const, t.Const) and isinstance(const.value, int) else None
    return None


def _is_named(unit: t.Unit, register: int, name: str) -> bool:
    event = unit.definitions[register] if register >= 0 else None
    return isinstance(event, t.Load) and event.name == name


def _asks_for_saved(machine: Machine) -> bool:
    """Whether the `backward` beside a `forward` asks for the saved tensors: that is when they are compared."""
    number = machine.world.method(machine.unit.owner, "backward")
    if number is None or not machine.world.is_own(number):
        return False
    index = machine.world.index(machine.world.unit(number))
    return any(event.name in ("saved_tensors", "saved_variables") for event in index.of(t.Attribute))


def _check_dirty_views(m: Machine, machine: Machine, inputs: list[int], arguments: Arguments, site: int) -> None:
    """A view whose base requires grad may be changed in place only by a Function with a single output."""
    if len(_returned(machine)) < 2 or m.state.mode.recording <= 0:
        return
    dirty = _dirty(machine)
    for ref, value in zip(inputs, arguments.positional, strict=False):
        if ref not in dirty or len(value.refs) != 1:
            continue
        obj = m.state.object(value.refs[0])
        if len(obj.shares) == 1 and obj.shares[0].how in _VIEWS and obj.shares[0].sure:
            base = m.state.object(obj.shares[0].of)
            if max(base.requires_grad, obj.requires_grad) > 0:
                cell = m.state.cell(value.root) if value.root is not None else None
                name = naming.key_text(m, value.root) if cell is not None and cell.refs == value.refs else obj.text
                m.fact(FunctionInput(site, name, base.text, "view", obj.shares[0].site, base.sure))


# -- modules with a full backward hook


def hook(m: Machine, module: Value, site: int) -> None:
    """`register_full_backward_hook`: from now on, inputs and outputs of the module are views that nobody may write."""
    for ref in module.refs:
        obj = m.state.object(ref)
        m.state.set_object(ref, obj._replace(flags=obj.flags | {HOOKED}))
        m.holding.hooks[ref] = site


def called(m: Machine, module: Value, arguments: Arguments, result: Value, site: int) -> None:
    """A module has been called: where it has a hook, what it writes of its input, and its output."""
    ref = module.refs[0]
    obj = m.state.object(ref)
    if HOOKED not in obj.flags or m.state.mode.recording <= 0:
        return
    first = arguments.at(0)
    _check_hooked_input(m, ref, obj, first, site)
    for made in result.refs:
        held = m.state.object(made)
        if held.kind in (*TENSORS, Kind.UNKNOWN) and made not in first.refs:
            m.state.set_object(made, held._replace(flags=held.flags | {CUSTOM_VIEW}))


def _check_hooked_input(m: Machine, module: int, obj: Object, first: Value, site: int) -> None:
    inputs = grads.tensors_in(m, [first])
    if not any(held.requires_grad > 0 for held in inputs):
        return
    base = inputs[0]
    local = m.world.local_class(obj.type)
    forward = m.world.method(local, "forward") if local is not None else None
    machine = m.world.machines.get(forward) if forward is not None else None
    if machine is not None:
        writes = [w for w in machine.writes.values() if set(w.storages) & set(_inputs(machine)) and w.versioned]
    else:
        writes = [m.writes[site]] if site in m.writes and m.writes[site].form == "activation" else []
    for write in sorted(writes)[:1]:
        m.fact(
            ViewRefused(
                write.site,
                write.name,
                write.op,
                "hook",
                base.text,
                m.holding.hooks.get(module, site),
                m.state.mode.assumed,
                base.owner in ("", LOCAL),
                base.sure if base.requires_grad is Fact.YES else min(base.sure, Sure.LIKELY),
            )
        )
