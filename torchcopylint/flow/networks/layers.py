"""Calling modules: layers of `torch.nn`, networks of the file, and what they return."""

from __future__ import annotations

from collections.abc import Mapping

from torchcopylint.flow.autograd import autocasting, distributions, frozen, grads, saving, statistics
from torchcopylint.flow.facts import Saved
from torchcopylint.flow.graphs import runs
from torchcopylint.flow.interprocedural import applying
from torchcopylint.flow.library import containers, custom, operations, reparametrised, results
from torchcopylint.flow.model import (
    ANY_RECURRENT,
    CONTAINERS,
    IDENTITY,
    IDENTITY_OR_OTHER,
    IF_IDENTITY,
    INFERENCE,
    MIXED,
    OUTPUT,
    PLACEHOLDER,
    RECURRENT,
    TENSORS,
    WRITES_INPUT,
    Fact,
    How,
    Kind,
    Object,
    Part,
    Sure,
    Value,
)
from torchcopylint.flow.networks import chains, making, several, states, told_inplace
from torchcopylint.flow.program import optimized, recurrent, saving_nothing
from torchcopylint.flow.references import FunctionReference
from torchcopylint.flow.running.machine import Machine
from torchcopylint.flow.storages import conversions, kept_while_trained, nonnegative, reading, slots, spoilt, writing
from torchcopylint.flow.tapes import activations, layout
from torchcopylint.flow.values import devices, kinds, memory, naming
from torchcopylint.flow.values.sites import Arguments, Site
from torchcopylint.flow.values.state import TRAINING
from torchcopylint.knowledge import losses, table


def call_module(m: Machine, function: Value, arguments: Arguments, site: int, name: str) -> Value:
    """The result of calling a module."""
    result = _call_module(m, function, arguments, site, name)
    layout.keep(m, m.state.object(function.refs[0]).type, arguments, result)
    if m.facts:
        conversions.let_go_of(m, [*arguments.positional, *arguments.keywords.values()])
    custom.called(m, function, arguments, result, site)
    _leave_there(m, arguments, result)
    reparametrised.called(m, function, site)
    return result


def _leave_there(m: Machine, arguments: Arguments, result: Value) -> None:
    """What a network computes is where that is which it is given, if all of that was sent to one place."""
    given = [m.state.object(ref) for value in arguments.positional for ref in value.refs]
    place = devices.sent_to(given)
    for ref in (*result.refs, *_parts_of(m, result, 2)) if place else ():
        obj = m.state.object(ref)
        if obj.kind in (*TENSORS, Kind.UNKNOWN) and not devices.place_of(obj):
            m.state.set_object(ref, obj._replace(config=(*obj.config, *devices.at(place))))


def output_of_one(m: Machine, function: Value, arguments: Arguments, result: Value, site: int, name: str) -> Value:
    """What one of several modules returns, nobody knows which: it carries a graph to its parameters.

    Not if they hand on what they were given beside something else: `return attacked, labels`.
    """
    kept_while_trained.note_use(m, function, site, "call")
    any_recurrent = table.module_class(ANY_RECURRENT)
    if any_recurrent is not None and all(m.state.object(ref).type in RECURRENT for ref in function.refs):
        # Whichever it is, it keeps the same.
        return _call_known(m, function, m.state.object(function.refs[0]), any_recurrent, arguments, site, name)
    if all(_hands_on_beside(m, ref) for ref in function.refs):
        return result
    result = several.result_of(m, function, site, name) or result
    trained = {Fact.NO if _has_no_weights(m, ref) else m.state.object(ref).requires_grad for ref in function.refs}
    obj = Object(Kind.MODULE, requires_grad=trained.pop() if len(trained) == 1 else Fact.UNKNOWN)
    if len(result.refs) == 1 and all(_makes_a_tensor(m, ref) for ref in function.refs):
        made = m.state.object(result.refs[0])
        m.state.set_object(result.refs[0], made._replace(kind=Kind.TENSOR, sure=Sure.LIKELY))
        result = result._replace(kind=Kind.TENSOR)
    return output(m, function, obj, arguments, result, site, name)


def _hands_on_beside(m: Machine, ref: int) -> bool:
    """Whether the `forward` of a module is known to return several things, of which one is an argument as it is."""
    forward = m.world.method_of(m.state.object(ref), "forward")
    summary = m.world.summary(forward) if forward is not None else None
    parts = summary.parts if summary is not None else ()
    return len(parts) > 1 and any(
        len(part.returned) == 1
        and part.returned[0].how is None
        and part.returned[0].parameter
        and not part.returned[0].path
        for part in parts
    )


def _has_no_weights(m: Machine, ref: int) -> bool:
    """Whether a module is a layer of torch that has no parameters: one that pads, pools or activates."""
    obj = m.state.object(ref)
    row = table.module_class(obj.type) if obj.type else None
    return row is not None and not (row.container or row.parameters or row.nested)


def _makes_a_tensor(m: Machine, ref: int) -> bool:
    """Whether a module is a layer of torch that makes one tensor anew of what it is given."""
    obj = m.state.object(ref)
    row = table.module_class(obj.type) if obj.type else None
    known = row is not None and not row.container and row.output in ("tensor", "scalar")
    return (
        row is not None
        and known
        and row.shares not in ("same", "maybe", "view")
        and not dict(obj.config).get("inplace")
    )


def _call_module(m: Machine, function: Value, arguments: Arguments, site: int, name: str) -> Value:
    obj = m.state.object(function.refs[0])
    kept_while_trained.note_use(m, function, site, "call")
    row = table.module_class(obj.type) if obj.type else None
    if row is not None and not row.container:
        return _call_known(m, function, obj, row, arguments, site, name)
    if not obj.type and dict(obj.config).get("inplace") is True and arguments.at(0).refs:
        # One of several layers, each of which works in place.
        _write_first(m, function, arguments.at(0), site, name)
        return writing.current(m, arguments.at(0))
    if WRITES_INPUT in obj.flags and arguments.at(0).refs:
        _write_first(m, function, arguments.at(0), site, name)
        nonnegative.note(m, site, chains.first(m, function, site))
    result = None
    forward = m.world.method_of(obj, "forward")
    if forward is None and (called := m.world.method_of(obj, "__call__")) is not None:
        # A class that does without `forward` does all there is to do itself, in what grad mode it likes.
        bound = Arguments([function, *arguments.positional], arguments.keywords)
        return applying.call(m, FunctionReference(called), bound, site, name)
    if forward is not None:
        bound = Arguments([function, *arguments.positional], arguments.keywords)
        result = applying.call(m, FunctionReference(forward), bound, site, name)
        made = result.refs[0] if result.refs else -1
        parts = m.state.slot_names(made)
        if not m.world.is_own(forward) and m.state.object(made).kind in CONTAINERS and not parts:
            # What the parts of the result are is not handed on.
            result = memory.unknown(m, site, f"{name}(...)")
    if result is None:
        for value in (*arguments.positional, *arguments.keywords.values()):
            reading.read(m, value, site, "argument", name)
        result = _handed_on(m, obj, arguments, site, name) or several.result_of(m, function, site, name)
        result = result or memory.unknown(m, site, f"{name}(...)")
        if obj.type == chains.SEQUENTIAL and not _ends_with_several(m, function.refs[0]):
            m.state.set_object(
                result.refs[0], m.state.object(result.refs[0])._replace(kind=Kind.TENSOR, sure=Sure.LIKELY)
            )
            result = result._replace(kind=Kind.TENSOR)
    if row is not None and m.state.get(TRAINING) is not False:
        statistics.update_within(m, function, site, name)
    result = output(m, function, obj, arguments, result, site, name)
    if obj.type == chains.SEQUENTIAL:
        chains.keep(m, function, obj, arguments.at(0), result, site, name)
        chains.check_hooked(m, function, arguments.at(0), site, name)
    return result


def _handed_on(m: Machine, obj: Object, arguments: Arguments, site: int, name: str) -> Value | None:
    """What a module returns that may be an identity: perhaps what it was given, perhaps something new.

    On an arm of a condition, that may be the one by which the layer was chosen.
    """
    first = arguments.at(0)
    one = len(arguments.positional) == 1 and not arguments.keywords and first.refs
    if obj.type != IDENTITY_OR_OTHER or not one or first.kind in CONTAINERS or site in m.index.on_arms:
        return None
    made = Object(Kind.TENSOR, Sure.LIKELY, text=f"{name}(...)")
    return memory.alias(m, first, site, How.CONDITIONAL, made, when=IF_IDENTITY)


def _ends_with_several(m: Machine, ref: int) -> bool:
    """Whether the last layer of a chain is known, and returns several tensors."""
    held = [slots.slot_value(m, slot) for slot in m.state.slot_names(ref) if slot[1].startswith("[")]
    rows = [table.module_class(m.state.object(last).type) for last in held[-1].refs] if held else []
    return any(row is not None and row.output == "tensors" for row in rows)


def _write_first(m: Machine, function: Value, first: Value, site: int, name: str) -> None:
    """A chain that starts with an activation in place overwrites its input."""
    activations.known_tensor(m, first)
    at = Site(site, naming.key_text(m, first.root) or "its input", f"{name}(...)", "call")
    reading.read(m, first, site, "argument", name)
    operations.write_through(m, first, [], at, reads_old=True, versioned=True)
    activations.note_result(m, site, told_inplace.site_of(m, function, site))
    spoilt.note(m, first, site)


def _note_muted(m: Machine, site: int) -> None:
    """A network is called, perhaps where nothing is recorded."""
    m.called.muted.discard(site)
    if m.state.mode.recording is Fact.NO:
        m.called.muted.add(site)


def output(
    m: Machine, function: Value, obj: Object, arguments: Arguments, result: Value, site: int, name: str
) -> Value:
    """What a network returns carries a graph to its parameters, which backward needs."""
    recording = m.state.mode.recording
    _note_muted(m, site)
    trains_nothing = frozen.trains_nothing(m, function, obj)
    local = m.world.local_class(obj.type) if trains_nothing else None
    # A loss is no network: what backward runs over is what it was given, even if nobody knows whether that has a graph.
    bare = local is not None and m.world.has_no_parameters(local)
    handing_on = bare and recording is not Fact.NO
    round_again = recurrent.goes_round(m, site)
    given = [*arguments.positional, *arguments.keywords.values()]
    now = [_as_of_now(m, value, result, site) for value in given] if round_again or obj.type else given
    inputs = grads.tensors_in(m, given := now if round_again else given)
    # What comes back as it was given is no output of a layer: `forward` may return its argument. What a call of a known
    # class has returned on the loop's turn before (`x = block(x)`) is not what it returns now.
    untouched = {*function.refs, *(ref for value in now for ref in value.refs)}
    # Whether a network cuts the graph of what it is given, only its author knows; no layer of torch does, and no
    # discriminator: what it judges is to learn from it. Nor does what is given a hidden state and returns the next one,
    # or goes on with what that has returned.
    whole = _is_of_layers(m, function) or kinds.named_judge(name) or round_again or _goes_on(m, function, inputs)
    for ref in (*result.refs, *_parts_of(m, result, 2)):
        made = m.state.object(ref)
        has_graph = made.kind in (*TENSORS, Kind.UNKNOWN) or distributions.is_one(made)
        if not has_graph or ref in untouched or made.owner not in ("", "local"):
            continue
        graph = frozenset[int]().union(made.graph, *(i.graph if whole else runs.without(i.graph) for i in inputs))
        fact = Fact.NO if recording is Fact.NO else Fact.UNKNOWN if recording is Fact.UNKNOWN else Fact.LIKELY
        if trains_nothing and not any(i.requires_grad > 0 for i in inputs):
            fact = min(fact, Fact.UNKNOWN)
            if bare and inputs and all(i.requires_grad is Fact.NO for i in inputs):
                # That a loss is given what has a graph was a guess.
                made = made._replace(requires_grad=min(made.requires_grad, fact))
        if fact > 0:
            number = site * 8 + 7
            saves = len(function.refs) != 1 or not saving_nothing.is_one(m, obj)
            known = len(function.refs) == 1 and saves and not autocasting.keeps_copies(m)
            kept = saving.save(m, function, number, Saved(site, f"{name}(...)", "network", name)) if known else [number]
            # Of one of several networks, the graph is known, and not what it needs.
            graph = graph | frozenset(kept)
            if not bare:
                m.needed.by_modules[number] = function
            if not saves:
                m.needed.keeping_nothing.add(number)
            if round_again:
                m.needed.going_round.add(number)
            if ref not in result.refs:
                graph |= {runs.branch(m, number, m.runs.groups.get(ref | 1, ref))}
        inference = {INFERENCE} if m.state.mode.inference > 0 and made.kind in (*TENSORS, Kind.UNKNOWN) else set()
        made = made._replace(
            flags=made.flags | {OUTPUT} | inference, graph=graph if fact > 0 or handing_on else frozenset()
        )
        if (made.requires_grad is Fact.UNKNOWN and MIXED not in made.flags) or fact is Fact.NO:
            made = made._replace(requires_grad=fact, leaf=Fact.NO if fact > 0 else made.leaf)
        m.state.set_object(ref, made)
    return result


def _goes_on(m: Machine, function: Value, inputs: list[Object]) -> bool:
    """Whether a network goes on with what backward has run over, which was computed by one that is trained with it, or
    with what one has returned beside its next state."""
    if any(not m.needed.going_round.isdisjoint(i.graph) for i in inputs):
        return True
    graph = frozenset[int]().union(*(i.graph for i in inputs if runs.without(i.graph) != i.graph))
    behind = {ref for number in graph & m.needed.by_modules.keys() for ref in m.needed.by_modules[number].refs}
    return bool(behind) and optimized.are_trained_together(m, function.refs, behind)


def _as_of_now(m: Machine, value: Value, result: Value, site: int) -> Value:
    """What a call was given, where that is what it had returned on the loop's turn before: an older one by now."""
    for ref in result.refs if m.in_loop else ():
        if ref in value.refs and m.state.object(ref).site == site and not m.state.object(ref).graph:
            value = memory.renamed(value, ref)
    return value


def _is_of_layers(m: Machine, function: Value, depth: int = 3) -> bool:
    """Whether something is a layer of `torch.nn`, or a chain of nothing but such layers, as far as is known."""
    for ref in function.refs:
        obj = m.state.object(ref)
        row = table.module_class(obj.type) if obj.type else None
        if row is None or not depth:
            return False
        if row.container:
            if obj.type != chains.SEQUENTIAL:
                return False
            held = [slots.slot_value(m, slot) for slot in m.state.slot_names(ref) if slot[1].startswith("[")]
            if not all(_is_of_layers(m, one, depth - 1) for one in held):
                return False
    return bool(function.refs)


def _parts_of(m: Machine, result: Value, depth: int) -> list[int]:
    """What stands in the tuple that a `forward` of this file returns: `return y, (h, c)`.

    Of what stands in a list or dictionary, some may be numbers for the log: only what requires grad.
    """
    found = []
    for ref in result.refs if depth else ():
        if m.state.object(ref).kind in CONTAINERS:
            held = [inner for slot in m.state.slot_names(ref) for inner in m.state.refs_of(slot)]
            if m.state.object(ref).kind is not Kind.TUPLE:
                held = [inner for inner in held if m.state.object(inner).requires_grad > 0]
            found += [*held, *_parts_of(m, Value(tuple(held)), depth - 1)]
    return found


def _call_known(
    m: Machine, function: Value, obj: Object, row: table.ModuleOp, arguments: Arguments, site: int, name: str
) -> Value:
    """A layer of `torch.nn`."""
    arguments = _in_order(row, arguments)
    first = arguments.at(0)
    config = dict(obj.config)
    at = Site(site, naming.key_text(m, first.root) or "its input", f"{name}(...)", "call")
    for value in arguments.positional:
        reading.read(m, value, site, "argument", name)
    statistics.renormalise(m, function, site, name)
    if config.get("inplace") is True and first.refs:
        activations.known_tensor(m, first)
        operations.write_through(m, first, [], at, reads_old=True, versioned=True)
        activations.note_result(m, site, told_inplace.site_of(m, function, site))
        spoilt.note(m, first, site)
        nonnegative.note(m, site, row.name)
        result = writing.current(m, first)
        saving.note_output(m, result, at, activations.keeps_output(row.name))
        return result
    _show_inputs(m, row, arguments)
    finding = _finding_places(row, config)
    if finding is not None:
        return operations.apply(m, finding, arguments, at)
    off = frozen.trains_nothing(m, function, obj)
    trainable = bool(row.parameters) and not off
    if trainable:
        _note_muted(m, site)
    made = _made_by(m, row, config, arguments, at, trainable)
    if off and made.requires_grad is Fact.NO and obj.requires_grad is not Fact.NO:
        # Somebody may have switched on again what a loop has switched off.
        made = made._replace(requires_grad=Fact.UNKNOWN, leaf=Fact.UNKNOWN)
    if trainable and made.requires_grad > 0:
        made = made._replace(graph=made.graph | states.saved(m, row, arguments, site, name))
    if row.output == "tensors":
        return _several(m, function, row, first, made, site, name, trainable)
    trains = row.when == "mode" and config.get(statistics.MODE) is True
    if row.shares in ("same", "maybe", "view") and first.refs and not trains:
        how = How.VIEW if row.shares == "view" else How.CONDITIONAL
        when = results.condition(row.when) if row.shares == "maybe" else ""
        result = memory.alias(m, first, site, how, made, when=when)
    else:
        result = memory.fresh(m, site, made)
    if made.requires_grad > 0:
        loss = losses.function_of(row.name)
        if loss is not None and not trainable:
            saving.note_saved(m, loss, _with_weights(m, function, arguments), result, at)
        else:
            _save_layer(m, row, function, first, result, site, name, trainable)
    statistics.update(m, function, row, site, name)
    _note_pure(m, function, obj, row, first, site, name)
    return result


def _finding_places(row: table.ModuleOp, config: Mapping[str, object]) -> table.Op | None:
    """The function that a pooling calls which also returns where it has found each maximum."""
    plain = row.name.rpartition(".")[2]
    if config.get("return_indices") is not True or "MaxPool" not in plain:
        return None
    short = plain.replace("MaxPool", "_max_pool").lower().lstrip("_")
    return table.function(f"torch.nn.functional.{short}(return_indices)")


def _in_order(row: table.ModuleOp, arguments: Arguments) -> Arguments:
    """What a layer is given by position, though it be by name: `criterion(input=y, target=t)`."""
    positional, keywords = [*arguments.positional], {**arguments.keywords}
    for name in row.takes[len(positional) :]:
        if name not in keywords:
            break
        positional.append(keywords.pop(name))
    return Arguments(positional, keywords)


def _with_weights(m: Machine, function: Value, arguments: Arguments) -> Arguments:
    """What a loss of `torch.nn` hands on to its function: beside what it is called with, the weights that it keeps."""
    kept = {name: slots.slot_value(m, (ref, f".{name}")) for ref in function.refs for name in losses.WEIGHTS}
    return Arguments(arguments.positional, {**{n: v for n, v in kept.items() if v.refs}, **arguments.keywords})


def _note_pure(
    m: Machine, function: Value, obj: Object, row: table.ModuleOp, first: Value, site: int, name: str
) -> None:
    """A layer in a field of `self` that keeps nothing and writes nothing: if its result is dropped, nothing has
    happened. Another module may have been given hooks that are waiting for it; so has an identity, which is there for
    nothing else."""
    field = isinstance(function.root, tuple) and m.state.object(function.root[0]).owner == "self"
    kept = row.stateful or bool(row.parameters) or row.output != "tensor" or row.name == IDENTITY
    if field and not kept and first.root is not None and dict(obj.config).get("inplace", False) is False:
        m.called.pure[m.index.calls[site]] = (naming.key_text(m, first.root), name, False, min(obj.sure, Sure.LIKELY))


def _show_inputs(m: Machine, row: table.ModuleOp, arguments: Arguments) -> None:
    """What a layer is given is a tensor, and what a loss is given are two of them."""
    first = arguments.at(0)
    if row.output != "tensors" and not any(s.how is How.DATA for r in first.refs for s in m.state.object(r).shares):
        # Recurrent layers take packed sequences, too; and what has a tensor for its `.data` need not be one.
        activations.known_tensor(m, first)
    if row.output == "scalar" and len(arguments.positional) == 2:
        activations.known_tensor(m, arguments.at(1))


def _made_by(
    m: Machine, row: table.ModuleOp, config: Mapping[str, object], arguments: Arguments, at: Site, trainable: bool
) -> Object:
    """What a layer computes: a tensor, with a graph if its parameters or what it is given require grad."""
    made = Object(Kind.TENSOR, Sure.PROVEN, dtype="", text=at.op)
    if m.state.mode.inference > 0:
        made = made._replace(flags=frozenset({INFERENCE}))
    if row.output == "scalar" and config.get("reduction", "mean") != "none":
        made = made._replace(scalar=Fact.YES)
    made = grads.result_of(m, made, arguments.positional, True)
    if trainable and m.state.mode.recording > 0 and made.requires_grad <= 0:
        made = made._replace(requires_grad=Fact.LIKELY, leaf=Fact.NO)
    return made


def _several(
    m: Machine,
    function: Value,
    row: table.ModuleOp,
    first: Value,
    made: Object,
    site: int,
    name: str,
    trainable: bool,
) -> Value:
    """What a recurrent layer or attention returns: a tuple of tensors, of which an LSTM's second is a pair."""
    if trainable and made.requires_grad > 0:
        number = site * 8 + 7
        m.needed.by_modules[number] = function
        kept = saving.save(m, function, number, _parameters_of(site, name))
        made = made._replace(graph=made.graph | {number, *kept})
    each = memory.fresh(m, site, made._replace(flags=made.flags | {PLACEHOLDER}), "each")
    result = containers.iterator(m, site, each, "tensors", Kind.TUPLE)
    packed = any(m.state.object(ref).type == making.PACKED for ref in first.refs)
    if packed or row.name == "torch.nn.LSTM":
        output = Object(Kind.OTHER, Sure.PROVEN, type=making.PACKED, text=made.text) if packed else made
        slots.bind_slot(m, (result.refs[0], "[0]"), memory.fresh(m, site, output, "output"), site)
    if row.name == ANY_RECURRENT:
        either = made._replace(kind=Kind.UNKNOWN, sure=Sure.NOT)
        slots.bind_slot(m, (result.refs[0], "[1]"), memory.fresh(m, site, either, "state"), site)
    if row.name == "torch.nn.LSTM":
        # Who cuts the two states has cut what the pair of them takes along.
        state = memory.fresh(m, site, Object(Kind.TUPLE, Sure.PROVEN, text=made.text), "state")
        for slot in ("[0]", "[1]"):
            slots.bind_slot(m, (state.refs[0], slot), memory.fresh(m, site, made, f"state{slot}"), site)
        slots.bind_slot(m, (result.refs[0], "[1]"), state, site)
    return result


def _save_layer(
    m: Machine, row: table.ModuleOp, function: Value, first: Value, result: Value, site: int, name: str, trainable: bool
) -> None:
    ids = []
    source = naming.key_text(m, first.root) or "its input"
    if "input" in row.saves:
        ids += saving.save(m, first, site * 8, Saved(site, f"{name}(...)", "input", source))
    if "output" in row.saves:
        ids += saving.save(m, result, site * 8 + 1, Saved(site, f"{name}(...)", "output", "its result"))
    needs_weight = any(obj.requires_grad > 0 for obj in grads.tensors_in(m, [first]))
    if trainable:
        number = site * 8 + 7
        m.needed.by_modules[number] = function
        if needs_weight and not autocasting.keeps_copies(m, row.name):
            part = () if row.name in _NEED_BIAS or set(row.parameters) != _PAIR else (Part("field", "weight"),)
            ids += saving.save(m, function, number, _parameters_of(site, name), part)
        else:
            ids.append(number)
    if row.writes_buffers and row.name.rpartition(".")[2].endswith(_BATCH_NORMS):
        for offset, buffer in enumerate(_STATISTICS, 2):
            saved = Saved(site, f"{name}(...)", "buffer", f"{name}.{buffer}")
            ids += saving.save(m, function, site * 8 + offset, saved, (Part("field", buffer),))
    if ids:
        ref = result.refs[0]
        obj = m.state.object(ref)
        m.state.set_object(ref, obj._replace(graph=obj.graph | frozenset(ids)))


_PAIR = frozenset({"weight", "bias"})
_NEED_BIAS = frozenset({"torch.nn.LayerNorm"})
"""Layers that keep their bias for backward, where all others keep their weight alone (executed under torch 2.13)."""
_BATCH_NORMS = ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm")
_STATISTICS = ("running_mean", "running_var")
"""What a batch norm keeps for backward of its buffers, be it in training or not."""


def _parameters_of(site: int, name: str) -> Saved:
    return Saved(site, f"{name}(...)", "parameters", name)
