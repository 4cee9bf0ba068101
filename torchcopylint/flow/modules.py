"""Modules, optimizers and instances of this file's classes: calling them, their methods."""

from __future__ import annotations

from torchcopylint.flow import (
    activations,
    aliasing,
    assigning,
    containers,
    conversions,
    custom,
    frozen,
    generators,
    gradients,
    grads,
    kinds,
    layout,
    making,
    memory,
    naming,
    operations,
    ownership,
    reading,
    recurrent,
    runs,
    sharing,
    slots,
    statistics,
    stepping,
    summaries,
    unknowns,
    writing,
)
from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import Saved
from torchcopylint.flow.machine import Machine
from torchcopylint.flow.model import (
    ANY_ELEMENT,
    CONTAINERS,
    INFERENCE,
    MIXED,
    OUTPUT,
    PLACEHOLDER,
    REGISTERED,
    TENSORS,
    UNKNOWN,
    WRITES_INPUT,
    Fact,
    How,
    Kind,
    Object,
    Part,
    Sure,
    Value,
)
from torchcopylint.flow.references import FunctionReference, Super
from torchcopylint.flow.sites import Arguments, Site
from torchcopylint.knowledge import losses, table

STATE_METHODS = frozenset(
    {"state_dict", "load_state_dict", "parameters", "named_parameters", "buffers", "named_buffers"}
)
SEQUENTIAL = "torch.nn.Sequential"
REGISTERING = frozenset({"register_parameter", "add_module", "register_module"})
_SELF_METHODS = frozenset(
    [
        "to",
        "cuda",
        "cpu",
        "float",
        "double",
        "half",
        "bfloat16",
        "type",
        "eval",
        "train",
        "apply",
        "requires_grad_",
        "share_memory",
        "compile",
        "xpu",
    ]
)


# -- calling


def call_module(m: Machine, function: Value, arguments: Arguments, site: int, name: str) -> Value:
    """The result of calling a module."""
    result = _call_module(m, function, arguments, site, name)
    layout.keep(m, m.state.object(function.refs[0]).type, arguments, result)
    if m.facts:
        conversions.let_go_of(m, [*arguments.positional, *arguments.keywords.values()])
    custom.called(m, function, arguments, result, site)
    return result


def output_of_one(m: Machine, function: Value, arguments: Arguments, result: Value, site: int, name: str) -> Value:
    """What one of several modules returns, nobody knows which: it carries a graph to its parameters."""
    aliasing.note_use(m, function, site, "call")
    trained = {m.state.object(ref).requires_grad for ref in function.refs}
    obj = Object(Kind.MODULE, requires_grad=trained.pop() if len(trained) == 1 else Fact.UNKNOWN)
    return _output(m, function, obj, arguments, result, site, name)


def _call_module(m: Machine, function: Value, arguments: Arguments, site: int, name: str) -> Value:
    obj = m.state.object(function.refs[0])
    aliasing.note_use(m, function, site, "call")
    row = table.module_class(obj.type) if obj.type else None
    if row is not None and not row.container:
        return _call_known(m, function, obj, row, arguments, site, name)
    if WRITES_INPUT in obj.flags and arguments.at(0).refs:
        _write_first(m, arguments.at(0), site, name)
    result = None
    forward = m.world.method_of(obj, "forward")
    if forward is not None:
        bound = Arguments([function, *arguments.positional], arguments.keywords)
        result = summaries.call(m, FunctionReference(forward), bound, site, name)
        if not m.world.is_own(forward) and m.state.object(result.refs[0] if result.refs else -1).kind in CONTAINERS:
            # What the parts of the result are is not handed on.
            result = memory.unknown(m, site, f"{name}(...)")
    if result is None:
        for value in (*arguments.positional, *arguments.keywords.values()):
            reading.read(m, value, site, "argument", name)
        result = memory.unknown(m, site, f"{name}(...)")
        if obj.type == SEQUENTIAL and not _ends_with_several(m, function.refs[0]):
            m.state.set_object(
                result.refs[0], m.state.object(result.refs[0])._replace(kind=Kind.TENSOR, sure=Sure.LIKELY)
            )
            result = result._replace(kind=Kind.TENSOR)
    return _output(m, function, obj, arguments, result, site, name)


def _ends_with_several(m: Machine, ref: int) -> bool:
    """Whether the last layer of a chain is known, and returns several tensors."""
    held = [slots.slot_value(m, slot) for slot in m.state.slot_names(ref) if slot[1].startswith("[")]
    rows = [table.module_class(m.state.object(last).type) for last in held[-1].refs] if held else []
    return any(row is not None and row.output == "tensors" for row in rows)


def _write_first(m: Machine, first: Value, site: int, name: str) -> None:
    """A chain that starts with an activation in place overwrites its input."""
    activations.known_tensor(m, first)
    at = Site(site, naming.key_text(m, first.root) or "its input", f"{name}(...)", "call")
    reading.read(m, first, site, "argument", name)
    operations.write_through(m, first, [], at, reads_old=True, versioned=True)
    activations.note_result(m, site)


def _output(
    m: Machine, function: Value, obj: Object, arguments: Arguments, result: Value, site: int, name: str
) -> Value:
    """What a network returns carries a graph to its parameters, which backward needs."""
    recording = m.state.mode.recording
    trains_nothing = frozen.trains_nothing(m, function, obj)
    given = [*arguments.positional, *arguments.keywords.values()]
    inputs = grads.tensors_in(m, given)
    # What comes back as it was given is no output of a layer: `forward` may return its argument.
    untouched = {*function.refs, *(ref for value in given for ref in value.refs)}
    # Whether a network cuts the graph of what it is given, only its author knows; no layer of torch does, and no
    # discriminator: what it judges is to learn from it. Nor does what is given a hidden state and returns the next one.
    whole = _is_of_layers(m, function) or kinds.named_judge(name) or recurrent.goes_round(m, site)
    for ref in (*result.refs, *_parts_of(m, result, 2)):
        made = m.state.object(ref)
        if made.kind not in (*TENSORS, Kind.UNKNOWN) or ref in untouched or made.owner not in ("", "local"):
            continue
        graph = frozenset[int]().union(made.graph, *(i.graph if whole else runs.without(i.graph) for i in inputs))
        fact = Fact.NO if recording is Fact.NO else Fact.UNKNOWN if recording is Fact.UNKNOWN else Fact.LIKELY
        if trains_nothing and not any(i.requires_grad > 0 for i in inputs):
            fact = min(fact, Fact.UNKNOWN)
        if fact > 0:
            number = site * 8 + 7
            kept = grads.save(m, function, number, Saved(site, f"{name}(...)", "network", name))
            # Of one of several networks, the graph is known, and not what it needs.
            graph = graph | frozenset(kept if len(function.refs) == 1 else [number])
            m.module_saves[number] = function
            if ref not in result.refs:
                graph |= {runs.branch(m, number, m.runs.groups.get(ref | 1, ref))}
        inference = {INFERENCE} if m.state.mode.inference > 0 and made.kind in (*TENSORS, Kind.UNKNOWN) else set()
        made = made._replace(flags=made.flags | {OUTPUT} | inference, graph=graph if fact > 0 else frozenset())
        if (made.requires_grad is Fact.UNKNOWN and MIXED not in made.flags) or fact is Fact.NO:
            made = made._replace(requires_grad=fact, leaf=Fact.NO if fact > 0 else made.leaf)
        m.state.set_object(ref, made)
    return result


def _is_of_layers(m: Machine, function: Value, depth: int = 3) -> bool:
    """Whether something is a layer of `torch.nn`, or a chain of nothing but such layers, as far as is known."""
    for ref in function.refs:
        obj = m.state.object(ref)
        row = table.module_class(obj.type) if obj.type else None
        if row is None or not depth:
            return False
        if row.container:
            if obj.type != SEQUENTIAL:
                return False
            held = [slots.slot_value(m, slot) for slot in m.state.slot_names(ref) if slot[1].startswith("[")]
            if not all(_is_of_layers(m, one, depth - 1) for one in held):
                return False
    return bool(function.refs)


def _parts_of(m: Machine, result: Value, depth: int) -> list[int]:
    """What stands in the tuple that a `forward` of this file returns: `return y, (h, c)`."""
    found = []
    for ref in result.refs if depth else ():
        if m.state.object(ref).kind is Kind.TUPLE:
            held = [inner for slot in m.state.slot_names(ref) for inner in m.state.refs_of(slot)]
            found += [*held, *_parts_of(m, Value(tuple(held)), depth - 1)]
    return found


def _call_known(
    m: Machine, function: Value, obj: Object, row: table.ModuleOp, arguments: Arguments, site: int, name: str
) -> Value:
    """A layer of `torch.nn`."""
    first = arguments.at(0)
    config = dict(obj.config)
    at = Site(site, naming.key_text(m, first.root) or "its input", f"{name}(...)", "call")
    for value in arguments.positional:
        reading.read(m, value, site, "argument", name)
    if config.get("inplace") is True and first.refs:
        activations.known_tensor(m, first)
        operations.write_through(m, first, [], at, reads_old=True, versioned=True)
        activations.note_result(m, site)
        result = writing.current(m, first)
        grads.note_output(m, result, at, activations.keeps_output(row.name))
        return result
    if row.output != "tensors" and not any(s.how is How.DATA for r in first.refs for s in m.state.object(r).shares):
        # Recurrent layers take packed sequences, too; and what has a tensor for its `.data` need not be one.
        activations.known_tensor(m, first)
    if row.output == "scalar" and len(arguments.positional) == 2:
        # A loss takes two of them.
        activations.known_tensor(m, arguments.at(1))
    trainable = row.parameters and obj.requires_grad is not Fact.NO
    made = Object(Kind.TENSOR, Sure.PROVEN, dtype="", text=f"{name}(...)")
    if m.state.mode.inference > 0:
        made = made._replace(flags=frozenset({INFERENCE}))
    reduction = config.get("reduction", "mean")
    if row.output == "scalar" and reduction != "none":
        made = made._replace(scalar=Fact.YES)
    made = grads.result_of(m, made, arguments.positional, True)
    if trainable and m.state.mode.recording > 0 and made.requires_grad <= 0:
        made = made._replace(requires_grad=Fact.LIKELY, leaf=Fact.NO)
    if row.output == "tensors":
        if trainable and made.requires_grad > 0:
            number = site * 8 + 7
            m.module_saves[number] = function
            made = made._replace(
                graph=made.graph | {number, *grads.save(m, function, number, _parameters_of(site, name))}
            )
        each = memory.fresh(m, site, made._replace(flags=made.flags | {PLACEHOLDER}), "each")
        result = containers.iterator(m, site, each, "tensors", Kind.TUPLE)
        packed = any(m.state.object(ref).type == making.PACKED for ref in first.refs)
        if packed or row.name == "torch.nn.LSTM":
            output = Object(Kind.OTHER, Sure.PROVEN, type=making.PACKED, text=made.text) if packed else made
            slots.bind_slot(m, (result.refs[0], "[0]"), memory.fresh(m, site, output, "output"), site)
        if row.name == "torch.nn.LSTM":
            # The state is a pair of its own.
            state = containers.iterator(m, site, each, "state", Kind.TUPLE)
            slots.bind_slot(m, (result.refs[0], "[1]"), state, site)
        return result
    trains = row.when == "mode" and config.get(statistics.MODE) is True
    if row.shares in ("same", "maybe", "view") and first.refs and not trains:
        how = How.VIEW if row.shares == "view" else How.CONDITIONAL
        when = operations.condition(row.when) if row.shares == "maybe" else ""
        result = memory.alias(m, first, site, how, made, when=when)
    else:
        result = memory.fresh(m, site, made)
    if made.requires_grad > 0:
        loss = losses.function_of(row.name)
        if loss is not None and not trainable:
            grads.note_saved(m, loss, arguments, result, at)
        else:
            _save_layer(m, row, function, first, result, site, name, bool(trainable))
    statistics.update(m, function, row, site, name)
    return result


def _save_layer(
    m: Machine, row: table.ModuleOp, function: Value, first: Value, result: Value, site: int, name: str, trainable: bool
) -> None:
    ids = []
    source = naming.key_text(m, first.root) or "its input"
    if "input" in row.saves:
        ids += grads.save(m, first, site * 8, Saved(site, f"{name}(...)", "input", source))
    if "output" in row.saves:
        ids += grads.save(m, result, site * 8 + 1, Saved(site, f"{name}(...)", "output", "its result"))
    needs_weight = any(obj.requires_grad > 0 for obj in grads.tensors_in(m, [first]))
    if trainable:
        number = site * 8 + 7
        m.module_saves[number] = function
        if needs_weight:
            ids += grads.save(m, function, number, _parameters_of(site, name))
        else:
            ids.append(number)
    if ids:
        ref = result.refs[0]
        obj = m.state.object(ref)
        m.state.set_object(ref, obj._replace(graph=obj.graph | frozenset(ids)))


def _parameters_of(site: int, name: str) -> Saved:
    return Saved(site, f"{name}(...)", "parameters", name)


def call_instance(m: Machine, base: Value, arguments: Arguments, site: int, text: str, name: str) -> Value:
    """A method of an instance of a class of this file."""
    unit = m.world.method_of(m.state.object(base.refs[0]), name)
    if name == "__call__":
        arguments = Arguments([base, *arguments.positional], arguments.keywords)
    if unit is not None:
        static = "staticmethod" in m.world.decorators(unit)
        positional = arguments.positional[1:] if static else arguments.positional
        bound = Arguments(positional, arguments.keywords)
        return summaries.call(m, FunctionReference(unit), bound, site, f"{text}.{name}")
    rest = Arguments(arguments.positional[1:], arguments.keywords)
    return unknowns.call_unknown(m, rest, site, f"{text}.{name}", base)


def call_super(m: Machine, event: t.Invoke, arguments: Arguments) -> Value:
    """`super().method(...)`: the base's method on this very object."""
    base = arguments.positional[0]
    assert isinstance(base.const, Super)
    rest = Arguments(arguments.positional[1:], arguments.keywords)
    info = m.world.program.classes[base.const.number] if base.const.number >= 0 else None
    unit = None
    for parent in m.world.parents(info.number) if info is not None else ():
        unit = m.world.method(parent, event.name)
        if unit is not None:
            break
    own = m.state.cell(m.unit.parameters[0].name) if m.unit.parameters else None
    if unit is not None and own is not None:
        bound = Arguments([Value(own.refs, own.kind), *rest.positional], rest.keywords)
        return summaries.call(m, FunctionReference(unit), bound, event.site, f"super().{event.name}")
    if event.name == "__init__":
        for value in rest.positional:
            reading.read(m, value, event.site, "argument", event.name)
        return Value(kind=Kind.NONE)
    if own is not None and event.name in STATE_METHODS:
        return call_method(
            m, Value(own.refs, own.kind), event, Arguments([Value(own.refs), *rest.positional], rest.keywords)
        )
    return unknowns.call_unknown(m, rest, event.site, f"super().{event.name}")


# -- methods of modules


def call_method(m: Machine, base: Value, event: t.Invoke, arguments: Arguments) -> Value:
    """A method of a module (or of something that has a method only modules and optimizers have)."""
    obj = m.state.object(base.refs[0])
    unit = m.world.method_of(obj, event.name)
    text = naming.text_of(m, event.base)
    name = event.name
    if name != "load_state_dict":
        aliasing.note_use(m, base, event.site, "call")
    if unit is not None and name not in ("forward",):
        static = "staticmethod" in m.world.decorators(unit)
        positional = arguments.positional[1:] if static else arguments.positional
        return summaries.call(
            m, FunctionReference(unit), Arguments(positional, arguments.keywords), event.site, f"{text}.{name}"
        )
    rest = Arguments(arguments.positional[1:], arguments.keywords)
    if name in ("parameters", "named_parameters", "state_dict"):
        m.asked.update(base.refs)
    if name == "state_dict":
        return _state_dict(m, base, event, text)
    if name == "load_state_dict":
        return _load_state_dict(m, base, event, rest, text)
    if name in ("parameters", "named_parameters", "buffers", "named_buffers"):
        return _parameters(m, base, obj, event, name)
    if name in ("children", "modules", "named_children", "named_modules"):
        child = slots.child_module(m, base.refs[0], event.site, f"{text}.{name}()[...]")
        named = name.startswith("named")
        return (
            containers.lazily(m, event.site, containers.NAMED, containers.iterator(m, event.site, child))
            if named
            else containers.iterator(m, event.site, child)
        )
    if name in ("forward", "__call__"):
        return call_module(m, base, rest, event.site, text)
    if name == "register_buffer":
        return _register_buffer(m, base, event, rest, text)
    if name in REGISTERING:
        return _register(m, base, event, rest, text)
    if name == "append" and rest.positional:
        already = m.state.cell((base.refs[0], ANY_ELEMENT))
        slots.note_put_again(m, already, rest.positional[0], event.site, text)
        making.adopt(m, base.refs[0], rest.positional[0], event.site)
        return base
    if name == "extend" and rest.positional:
        making.hold_children(m, base, rest, event.site)
        return base
    if name in ("requires_grad_", "freeze"):
        return _set_requires_grad(m, base, rest, name)
    if name in ("train", "eval"):
        statistics.set_mode(m, base, name, rest)
    if name in _SELF_METHODS:
        _note_apply(m, rest)
        return base
    if name == "zero_grad":
        gradients.zeroed(m, base, rest, event.site, text)
        return Value(kind=Kind.NONE)
    if name == "register_full_backward_hook":
        custom.hook(m, base, event.site)
    if name in ("register_forward_hook", "register_full_backward_hook"):
        return Value(kind=Kind.NONE)
    return _call_other(m, base, obj, event, rest, text)


def _set_requires_grad(m: Machine, base: Value, arguments: Arguments, name: str) -> Value:
    """`requires_grad_(...)` of a module, or what freezes it by its name: that holds for those in it, too."""
    told = arguments.at(0) if arguments.positional else arguments.keywords.get("requires_grad", Value(const=True))
    frozen = Fact.NO if told.const is False or name == "freeze" else Fact.YES
    for held in (base.refs[0], *sorted(_children(m, base.refs[0]))):
        m.state.set_object(held, m.state.object(held)._replace(requires_grad=frozen))
    return base


def _register(m: Machine, base: Value, event: t.Invoke, arguments: Arguments, text: str) -> Value:
    """A parameter or a module is put into a field by its name."""
    key, value = arguments.at(0).const, arguments.at(1)
    if isinstance(key, str):
        ref, place = base.refs[0], f"{text}.{key}"
        sharing.replaced(m, value, place)
        slots.register_module(m, ref, m.state.object(ref), key, value, event.site)
        frozen.note_part(m, ref, value)
        ownership.note_replaced(m, ref, Part("field", key), value, place, event.site)
        slots.bind_slot(m, (ref, f".{key}"), value, event.site)
    elif event.name != "register_parameter":
        # Under a name that each turn of a loop makes anew: `add_module(f"layer{i}", layer)`.
        already = m.state.cell((base.refs[0], ANY_ELEMENT))
        slots.note_put_again(m, already, value, event.site, text)
        making.adopt(m, base.refs[0], value, event.site)
    return Value(kind=Kind.NONE)


def _call_other(m: Machine, base: Value, obj: Object, event: t.Invoke, arguments: Arguments, text: str) -> Value:
    """A method that modules do not have by themselves, of a class of which nothing is known."""
    name = event.name
    slots.field_read(m, base.root, event.site, "argument", name)
    result = unknowns.call_unknown(m, arguments, event.site, f"{text}.{name}")
    if _computes(name):
        return _output(m, base, obj, arguments, result, event.site, f"{text}.{name}")
    if m.state.mode.recording is not Fact.NO and obj.requires_grad is not Fact.NO:
        # `model.loss(batch)`: if backward is called on it, it goes through the network.
        number = event.site * 8 + 7
        m.module_saves[number] = base
        for ref in result.refs:
            made = m.state.object(ref)
            m.state.set_object(ref, made._replace(graph=made.graph | {number}))
    return result


def _computes(name: str) -> bool:
    """Whether a method's name says that it computes what backward can go through. What predicts, samples or generates
    records nothing in most libraries, and returns classes or tokens."""
    return name.startswith(("forward", "encode", "decode"))


def _note_apply(m: Machine, arguments: Arguments) -> None:
    for value in arguments.positional:
        if isinstance(value.const, FunctionReference):
            m.world.called(value.const.unit, m.unit.number, m.state.mode)


def _state_dict(m: Machine, base: Value, event: t.Invoke, text: str) -> Value:
    made = Object(Kind.STATE_DICT, Sure.PROVEN, text=f"{text}.state_dict()", type="module")
    if m.state.object(base.refs[0]).kind is Kind.OPTIMIZER:
        made = made._replace(type="optimizer", flags=frozenset({"optimizer state"}))
        if base.refs[0] | 1 in m.optimizers and not base.marks:
            # It has been built here, and has not stepped yet: it has no state.
            return memory.fresh(m, event.site, made)
    whole = Value(tuple(sorted({*base.refs, *_children(m, base.refs[0])})), base.kind, None, base.marks, base.root)
    value = memory.alias(m, whole, event.site, How.STATE, made)
    # One model is one source, however many parts of it are known by name.
    obj = m.state.object(value.refs[0])
    sure = [share._replace(sure=True) for share in obj.shares]
    sure.sort(key=lambda share: share.of != base.refs[0])
    m.state.set_object(value.refs[0], obj._replace(shares=tuple(sure)))
    return value._replace(root=None)


def _children(m: Machine, ref: int, depth: int = 3) -> set[int]:
    """The parts of a module that are known by name and have memory of their own."""
    found: set[int] = set()
    for slot in m.state.slot_names(ref):
        cell = m.state.cell(slot)
        for held in cell.refs if cell is not None else ():
            obj = m.state.object(held)
            if obj.kind in (Kind.MODULE, Kind.PARAMETER) and held != ref and held not in found:
                found.add(held)
                if depth and obj.kind is Kind.MODULE:
                    found |= _children(m, held, depth - 1)
    return found


def _load_state_dict(m: Machine, base: Value, event: t.Invoke, arguments: Arguments, text: str) -> Value:
    source = arguments.at(0) if arguments.positional else arguments.keywords.get("state_dict", UNKNOWN)
    reading.read(m, source, event.site, "load_state_dict", text)
    slots.field_read(m, source.root, event.site, "load_state_dict", text)
    if source.root is None:
        aliasing.note_pair(m, base, source, event.site, "load")
    if arguments.flag("assign") is True:
        assigning.take_over(m, base, source, event.site, text)
        return Value(kind=Kind.OTHER)
    writing.write(
        m,
        base,
        event.site,
        op="load_state_dict(...)",
        form="load",
        name=text,
        reads_old=False,
        cause=f"{text}.load_state_dict(...)",
        also_own=(source.root, *assigning.own_values(m, source)),
    )
    return Value(kind=Kind.OTHER)


def _parameters(m: Machine, base: Value, obj: Object, event: t.Invoke, name: str) -> Value:
    text = naming.text_of(m, event.base)
    trained = Fact.NO if obj.requires_grad is Fact.NO or "buffers" in name else Fact.LIKELY
    if trained > 0 and any(frozen.is_switched(m, ref) for ref in base.refs):
        trained = Fact.UNKNOWN
    kind = Kind.TENSOR if "buffers" in name else Kind.PARAMETER
    sure = Sure.PROVEN if obj.kind is Kind.MODULE or name != "buffers" else Sure.LIKELY
    made = Object(kind, sure, leaf=Fact.YES, requires_grad=trained, text=f"a parameter of {text}")
    made = made._replace(flags=frozenset({PLACEHOLDER}))
    whole = Value(tuple(sorted({*base.refs, *_children(m, base.refs[0])})), base.kind, None, base.marks, base.root)
    one = memory.alias(m, whole, event.site, How.PARAMETERS, made, region=(Part("each"),), tag="parameter")
    shared = m.state.object(one.refs[0])
    m.state.set_object(one.refs[0], shared._replace(shares=tuple(s._replace(sure=True) for s in shared.shares)))
    one = one._replace(root=None)
    if name.startswith("named"):
        named = containers.lazily(m, event.site, containers.NAMED, containers.iterator(m, event.site, one))
        generators.note_made(m, named, event.site)
        return named
    iterator = containers.iterator(m, event.site, one)
    if name == "parameters" and not event.arguments:
        ownership.note_whole(m, iterator, naming.text_of(m, event.out), one)
    generators.note_made(m, iterator, event.site)
    return iterator


def _register_buffer(m: Machine, base: Value, event: t.Invoke, arguments: Arguments, text: str) -> Value:
    key = arguments.at(0).const
    value = arguments.at(1) if len(arguments.positional) > 1 else arguments.keywords.get("tensor", UNKNOWN)
    if isinstance(key, str):
        shared = slots.lives_on(m, value, -1)
        already = m.state.refs_of((base.refs[0], f".{key}"))
        # What is there under that name is registered again, and shared with nobody.
        if shared is not None and not set(already) & set(value.refs):
            sharing.note(m, event.site, -1, value, f"{text}.{key}", shared, "buffer", Sure.PROVEN)
        if not value.refs:
            value = memory.fresh(
                m, event.site, Object(Kind.TENSOR, Sure.PROVEN, leaf=Fact.YES, requires_grad=Fact.NO), key
            )
        for ref in value.refs:
            obj = m.state.object(ref)
            if obj.kind is Kind.UNKNOWN:
                obj = obj._replace(kind=Kind.TENSOR, sure=Sure.PROVEN)
            m.state.set_object(ref, obj._replace(flags=obj.flags | {REGISTERED}))
        slots.bind_slot(m, (base.refs[0], f".{key}"), value, event.site)
        m.world.stored(m, m.state.object(base.refs[0]), key, value)
    return Value(kind=Kind.NONE)


# -- optimizers


def call_optimizer_method(m: Machine, base: Value, event: t.Invoke, arguments: Arguments) -> Value:
    """A method of an optimizer."""
    text = naming.text_of(m, event.base)
    rest = Arguments(arguments.positional[1:], arguments.keywords)
    if event.name == "step":
        stepping.step(m, base, event.site, text)
        return Value()
    if event.name == "state_dict":
        return _state_dict(m, base, event, text)
    if event.name == "load_state_dict":
        return _load_state_dict(m, base, event, rest, text)
    if event.name == "zero_grad":
        gradients.zeroed(m, base, rest, event.site, text)
        return Value(kind=Kind.NONE)
    if event.name == "add_param_group":
        ownership.note_added(m, base.refs[0])
    if m.world.method_of(m.state.object(base.refs[0]), event.name) is not None:
        # A method that the class adds: a helper of `step`, which finds recording switched off as `step` leaves it.
        return call_instance(m, base, arguments, event.site, text, event.name)
    return unknowns.call_unknown(m, rest, event.site, f"{text}.{event.name}")
