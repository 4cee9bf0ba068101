"""Custom autograd Functions, and modules with a full backward hook, which wraps what they take and give in one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import dtypes, grads, memory, naming, operations, unknowns, writing
from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import FunctionInput, Saved, ViewRefused
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
from torchcopylint.flow.sites import Site

if TYPE_CHECKING:
    from torchcopylint.flow.machine import Machine
    from torchcopylint.flow.sites import Arguments

_VIEWS = frozenset({How.VIEW, How.INDEX, How.ROW})
MAX_SAVED = 8
"""So many of the tensors that a `forward` saves are followed: sites have as many numbers for what is saved."""


def mark_dirty(m: Machine, arguments: Arguments, site: int) -> None:
    """`ctx.mark_dirty(...)`: these inputs have been changed in place."""
    for value in arguments.positional[1:]:
        for ref in value.refs:
            m.dirty[ref] = site


def save_for_backward(m: Machine, arguments: Arguments) -> None:
    """`ctx.save_for_backward(...)`: these are tensors, and backward asks for them as they are now."""
    for value in arguments.positional[1:]:
        memory.evidence_tensor(m, value)
        m.kept_for_backward.extend(value.refs if len(value.refs) == 1 else ())


def conclude(m: Machine) -> None:
    """What a `forward` that has been run does to its inputs."""
    inputs = _inputs(m)
    outputs = _returned(m)
    known = all(m.state.object(ref).kind in TENSORS for ref in outputs)
    told: set[int] = set()
    for write in sorted(m.writes.values()):
        hits = [storage for storage in write.storages if storage in inputs]
        if len(write.storages) != 1 or not hits or not write.versioned or write.form in ("step", "load", "assign"):
            continue
        ref = hits[0]
        sure = max(write.sure, Sure.LIKELY)
        if ref not in m.dirty and ref not in told and (ref in outputs or _has_gradient(m, inputs[ref])):
            told.add(ref)
            m.fact(FunctionInput(write.site, inputs[ref], write.op, "unmarked", -1, sure))
        elif ref in m.dirty and outputs and ref not in outputs and known:
            m.fact(FunctionInput(m.dirty[ref], inputs[ref], write.op, "lost", write.site, sure))


def _has_gradient(m: Machine, name: str) -> bool:
    """Whether `backward` gives an input of `forward` a gradient, on every path that can be seen: a buffer has none."""
    number = m.world.method(m.unit.owner, "backward")
    if number is None or not m.world.is_own(number):
        return False
    position = [parameter.name for parameter in m.unit.parameters[1:]].index(name)
    unit = m.world.unit(number)
    returned = [unit.definitions[event.value] for event in m.world.index(unit).of(t.Return) if event.value >= 0]
    given = [
        made.items[position] if isinstance(made, t.Make) and position < len(made.items) else t.NO_REGISTER
        for made in returned
    ]
    whole = position == 0 and bool(returned) and not any(isinstance(made, t.Make | t.Const) for made in returned)
    return whole or (bool(given) and all(_is_something(unit, register) for register in given))


def _is_something(unit: t.Unit, register: int) -> bool:
    made = unit.definitions[register] if register >= 0 else None
    return made is not None and not (isinstance(made, t.Const) and made.value is None)


def _inputs(m: Machine) -> dict[int, str]:
    return {m.number("argument", p.name): p.name for p in m.unit.parameters[1:] if p.kind == "plain"}


def _returned(m: Machine) -> set[int]:
    """The objects that a unit returns, those in a tuple included."""
    found: set[int] = set()
    for value in m.returned:
        for ref in value.refs:
            if m.state.object(ref).kind in CONTAINERS:
                for slot in m.state.slot_names(ref):
                    found.update(m.state.refs_of(slot))
            else:
                found.add(ref)
    return found


def apply(m: Machine, number: int, arguments: Arguments, site: int, name: str) -> Value:
    """The result of `Function.apply(...)`: an input that comes back as it was, or a view of one, is a special view.

    What `forward` computes has the graph of the inputs behind it, and needs what `forward` has saved as it was.
    """
    result = unknowns.call_unknown(m, arguments, site, name)
    forward = m.world.method(number, "forward")
    if forward is None or m.world.method(number, "setup_context") is not None:
        return result
    names = [p.name for p in m.world.unit(forward).parameters[1:] if p.kind == "plain"]
    m.world.note_arguments(m, forward, dict(zip(names, arguments.positional, strict=False)))
    machine = m.world.machine_of(forward)
    if machine is None:
        return result
    inputs = list(_inputs(machine))
    _check_dirty_views(m, machine, inputs, arguments, site)
    if len(machine.returned) != 1 or len(machine.returned[0].refs) != 1:
        return result
    returned = machine.returned[0].refs[0]
    obj = machine.state.object(returned)
    if obj.kind in TENSORS and not any(s.storage in inputs for s in obj.shares):
        return _computed(m, machine, returned, arguments, result, Site(site, "", f"{name}(...)", "call"))
    sources = [s.storage for s in obj.shares if s.storage in inputs and s.sure and s.how in (*_VIEWS, How.OWN)]
    if len(sources) != 1 or len(obj.shares) != 1:
        return result
    position = inputs.index(sources[0])
    if position >= len(arguments.positional) or not arguments.positional[position].refs:
        return result
    source = arguments.positional[position]
    if sources[0] in machine.dirty:
        # The input has become the output: to autograd, that is an operation in place.
        at = Site(site, naming.key_text(m, source.root) or "its input", f"{name}(...)", "call")
        operations.write_through(m, source, arguments.positional, at, reads_old=True, versioned=True)
        return writing.current(m, source) if returned == sources[0] else result
    made = Object(Kind.TENSOR, Sure.PROVEN, text=f"{name}(...)", flags=frozenset({CUSTOM_VIEW}))
    made = grads.result_of(m, made, arguments.positional, True)
    return memory.alias(m, source._replace(root=None), site, How.VIEW, made)


def _computed(m: Machine, machine: Machine, returned: int, arguments: Arguments, result: Value, at: Site) -> Value:
    """What `forward` has made anew, with what it has saved for `backward`, if that asks for it."""
    invoked = {event.name for event in machine.index.of(t.Invoke)}
    if "mark_non_differentiable" in invoked or machine.state.object(returned).dtype in dtypes.INTEGERS:
        return result
    ref = result.refs[0]
    made = m.state.object(ref)._replace(kind=Kind.TENSOR, sure=Sure.LIKELY)
    m.state.set_object(ref, grads.result_of(m, made, arguments.positional, True))
    if m.state.object(ref).requires_grad <= 0 or not _asks_for_saved(machine):
        return result
    ids: list[int] = []
    inputs = list(_inputs(machine))
    for number, kept in enumerate(machine.kept_for_backward[:MAX_SAVED]):
        if kept == returned:
            ids += grads.save(m, result, at.site * 8 + number, Saved(at.site, at.op, "output", "its result"))
        elif kept in inputs and inputs.index(kept) < len(arguments.positional):
            value = arguments.positional[inputs.index(kept)]
            text = naming.key_text(m, value.root) or "its input"
            ids += grads.save(m, value, at.site * 8 + number, Saved(at.site, at.op, "input", text))
    obj = m.state.object(ref)
    m.state.set_object(ref, obj._replace(graph=obj.graph | frozenset(ids)))
    return result


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
    for ref, value in zip(inputs, arguments.positional, strict=False):
        if ref not in machine.dirty or len(value.refs) != 1:
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
        m.hooks[ref] = site


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
        if held.kind in TENSORS and made not in first.refs:
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
                m.hooks.get(module, site),
                m.state.mode.assumed,
                base.owner in ("", LOCAL),
                base.sure if base.requires_grad is Fact.YES else min(base.sure, Sure.LIKELY),
            )
        )
