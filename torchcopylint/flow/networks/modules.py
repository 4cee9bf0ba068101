"""Modules, optimizers and instances of this file's classes: calling them, their methods."""

from __future__ import annotations

from torchcopylint.flow import tape as t
from torchcopylint.flow.autograd import frozen, gradients, refusals, statistics, stepping, unknowns
from torchcopylint.flow.graphs import callbacks
from torchcopylint.flow.interprocedural import applying, outer_reads, records
from torchcopylint.flow.library import containers, custom
from torchcopylint.flow.model import (
    ANY_ELEMENT,
    INFERENCE,
    OPTIMIZER_STATE,
    PLACEHOLDER,
    REGISTERED,
    UNKNOWN,
    Fact,
    How,
    Kind,
    Object,
    Part,
    Sure,
    Value,
)
from torchcopylint.flow.networks import chains, layers, making, neighbours
from torchcopylint.flow.program import assigning, chain_layers, generators, ownership, wholes
from torchcopylint.flow.references import FunctionReference, Super
from torchcopylint.flow.running.machine import Machine
from torchcopylint.flow.storages import (
    aliasing,
    entries_loaded,
    kept_while_trained,
    reading,
    repeating,
    sharing,
    slots,
    writing,
)
from torchcopylint.flow.values import devices, dtypes, memory, naming
from torchcopylint.flow.values.sites import Arguments, Site

STATE_METHODS = frozenset(
    {"state_dict", "load_state_dict", "parameters", "named_parameters", "buffers", "named_buffers"}
)
REGISTERING = frozenset({"register_parameter", "add_module", "register_module"})
_FULL_HOOKS = frozenset({"register_full_backward_hook", "register_full_backward_pre_hook"})
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


def call_instance(m: Machine, base: Value, arguments: Arguments, site: int, text: str, name: str) -> Value:
    """A method of an instance of a class of this file."""
    unit = m.world.method_of(m.state.object(base.refs[0]), name)
    if name == "__call__":
        arguments = Arguments([base, *arguments.positional], arguments.keywords)
    if unit is not None:
        static = "staticmethod" in m.world.decorators(unit)
        positional = arguments.positional[1:] if static else arguments.positional
        bound = Arguments(positional, arguments.keywords)
        return applying.call(m, FunctionReference(unit), bound, site, f"{text}.{name}")
    if name == "_replace" and len(base.refs) == 1:
        # Only named tuples have such a method that is not their own.
        return records.copied(m, base, arguments.keywords, site, f"{text}._replace(...)")
    rest = Arguments(arguments.positional[1:], arguments.keywords)
    return unknowns.call_unknown(m, rest, site, f"{text}.{name}", base)


def call_super(m: Machine, event: t.Invoke, arguments: Arguments) -> Value:
    """`super().method(...)`: the base's method on this very object."""
    base = arguments.positional[0]
    assert isinstance(base.const, Super)
    rest = Arguments(arguments.positional[1:], arguments.keywords)
    unit = m.world.method_above(base.const.number, event.name) if base.const.number >= 0 else None
    own = m.state.cell(m.unit.first) if m.unit.parameters else None
    if unit is not None and own is not None:
        bound = Arguments([Value(own.refs, own.kind), *rest.positional], rest.keywords)
        return applying.call(m, FunctionReference(unit), bound, event.site, f"super().{event.name}")
    if event.name == "__init__":
        for value in rest.positional:
            reading.read(m, value, event.site, "argument", event.name)
        if neighbours.is_chain(m):
            neighbours.check(m, event)
        return Value(kind=Kind.NONE)
    if own is not None and event.name in STATE_METHODS:
        return call_method(
            m, Value(own.refs, own.kind), event, Arguments([Value(own.refs), *rest.positional], rest.keywords)
        )
    return unknowns.call_unknown(m, rest, event.site, f"super().{event.name}")


# -- methods of modules


_CHILDREN = frozenset({"children", "modules", "named_children", "named_modules"})


def call_method(m: Machine, base: Value, event: t.Invoke, arguments: Arguments) -> Value:
    """A method of a module (or of something that has a method only modules and optimizers have)."""
    obj = m.state.object(base.refs[0])
    unit = m.world.method_of(obj, event.name)
    text = naming.text_of(m, event.base)
    name = event.name
    if name != "load_state_dict":
        kept_while_trained.note_use(m, base, event.site, "call")
    if unit is not None and name not in ("forward",):
        static = "staticmethod" in m.world.decorators(unit)
        positional = arguments.positional[1:] if static else arguments.positional
        return applying.call(
            m, FunctionReference(unit), Arguments(positional, arguments.keywords), event.site, f"{text}.{name}"
        )
    rest = Arguments(arguments.positional[1:], arguments.keywords)
    if name in ("parameters", "named_parameters", "state_dict"):
        m.backward.asked.update(base.refs)
    if name == "state_dict":
        return _state_dict(m, base, event, text)
    if name == "load_state_dict":
        return _load_state_dict(m, base, event, rest, text)
    if name == "update_parameters" and obj.type == making.AVERAGED:
        return _average(m, base, event, rest, text)
    if name in ("parameters", "named_parameters", "buffers", "named_buffers"):
        return _parameters(m, base, obj, event, name)
    if name in _CHILDREN or (obj.type in slots.DICTIONARIES and name in ("keys", "items", "values")):
        return _parts(m, base, event, text)
    if name in ("forward", "__call__"):
        return layers.call_module(m, base, rest, event.site, text)
    if name == "register_buffer":
        return _register_buffer(m, base, event, rest, text)
    if name in REGISTERING:
        return _register(m, base, event, rest, text)
    if name == "append" and rest.positional:
        if obj.type in repeating.LAYERS:
            memory.refine(m, rest.positional[0], Kind.MODULE, Sure.LIKELY)
        already = m.state.cell((base.refs[0], ANY_ELEMENT))
        repeating.note_put_again(m, already, rest.positional[0], event.site, text)
        ownership.note_replaced(m, base.refs[0], Part("item"), rest.positional[0], f"{text}[-1]", event.site)
        making.adopt(m, base.refs[0], rest.positional[0], event.site)
        chain_layers.grown(m, base.refs[0], rest.positional[0])
        return base
    if name == "extend" and rest.positional:
        chain_layers.forget(m, base.refs[0])
        making.hold_children(m, base, rest, event.site)
        return base
    if name in ("requires_grad_", "freeze"):
        return _set_requires_grad(m, base, rest, event)
    if name in ("train", "eval"):
        statistics.set_mode(m, base, name, rest)
    if name in _SELF_METHODS:
        devices.move(m, base, name, arguments)
        if name in sharing.CONVERSIONS - {"cpu", "cuda"}:
            _convert(m, base.refs[0])
        _note_apply(m, rest, event)
        return base
    if name == "zero_grad":
        gradients.zeroed(m, base, rest, event.site, text)
        return Value(kind=Kind.NONE)
    if name in _FULL_HOOKS:
        # A layer that is taken out of a chain by its number is that one alone.
        alone = chains.picked(m, event.base)
        if alone is None or set(base.refs) <= set(alone):
            custom.hook(m, base, event.site)
    if name in ("register_forward_hook", *_FULL_HOOKS):
        return Value(kind=Kind.NONE)
    return _call_other(m, base, obj, event, rest, text)


def _parts(m: Machine, base: Value, event: t.Invoke, text: str) -> Value:
    """What goes over the parts of a module, or over their names, or both: `children()`, `items()` of a `ModuleDict`."""
    name = event.name
    if name == "keys":
        return containers.iterator(m, event.site, Value(kind=Kind.STRING))
    child = slots.child_module(m, base.refs[0], event.site, f"{text}.{name}()[...]")
    iterator = containers.iterator(m, event.site, child)
    named = name.startswith("named") or name == "items"
    return containers.lazily(m, event.site, containers.NAMED, iterator) if named else iterator


def _set_requires_grad(m: Machine, base: Value, arguments: Arguments, event: t.Invoke) -> Value:
    """`requires_grad_(...)` of a module, or what freezes it by its name: that holds for those in it, too."""
    told = arguments.at(0) if arguments.positional else arguments.keywords.get("requires_grad", Value(const=True))
    off = Fact.NO if told.const is False or event.name == "freeze" else Fact.YES
    if off is Fact.NO and len(base.refs) == 1:
        text = naming.text_of(m, event.base)
        bound = m.consumer_of(event.out)
        if text.endswith(")"):
            text = naming.field_set(m, event.out) or (bound.name if isinstance(bound, t.Bind) else text)
        op = "freeze()" if event.name == "freeze" else "requires_grad_(False)"
        frozen.note_copy(m, base.refs[0], text, op, event.site)
    for held in (base.refs[0], *sorted(_children(m, base.refs[0]))):
        m.state.set_object(held, m.state.object(held)._replace(requires_grad=off))
    return base


def _register(m: Machine, base: Value, event: t.Invoke, arguments: Arguments, text: str) -> Value:
    """A parameter or a module is put into a field by its name."""
    key, value = arguments.at(0).const, arguments.at(1)
    if isinstance(key, str):
        ref, place = base.refs[0], f"{text}.{key}"
        sharing.replaced(m, value, place)
        # Before it is registered: from then on, it is a part of what the optimizer was built over.
        ownership.note_replaced(m, ref, Part("field", key), value, place, event.site)
        slots.register_module(m, ref, m.state.object(ref), key, value, event.site)
        if m.state.cell((ref, f".{key}")) is None and not key.isdecimal():
            chain_layers.grown(m, ref, value)
        else:
            chain_layers.forget(m, ref)
        frozen.note_part(m, ref, value)
        for held in value.refs:
            # It is called as the field is, as if it had been set there.
            inner = m.state.object(held)
            if not inner.text or inner.text.endswith(")") or inner.text == "...":
                m.state.set_object(held, inner._replace(text=f"{m.state.object(ref).text}.{key}"))
        slots.bind_slot(m, (ref, f".{key}"), value, event.site)
        m.world.stored(m, m.state.object(ref), key, value)
    elif event.name != "register_parameter":
        # Under a name that each turn of a loop makes anew: `add_module(f"layer{i}", layer)`.
        already = m.state.cell((base.refs[0], ANY_ELEMENT))
        repeating.note_put_again(m, already, value, event.site, text)
        making.adopt(m, base.refs[0], value, event.site)
        chain_layers.forget(m, base.refs[0])
    return Value(kind=Kind.NONE)


def _average(m: Machine, base: Value, event: t.Invoke, arguments: Arguments, text: str) -> Value:
    """What holds an average of a network's parameters takes them into it, in place."""
    reading.read(m, arguments.first("model"), event.site, "argument", text)
    call = f"{text}.{event.name}(...)"
    writing.write(m, base, event.site, op=call, form="load", name=text, reads_old=True, cause=call)
    return Value(kind=Kind.NONE)


def _call_other(m: Machine, base: Value, obj: Object, event: t.Invoke, arguments: Arguments, text: str) -> Value:
    """A method that modules do not have by themselves, of a class of which nothing is known."""
    name = event.name
    if name in ("insert", "pop"):
        chain_layers.forget(m, base.refs[0])
    slots.field_read(m, base.root, event.site, "argument", name)
    result = unknowns.call_unknown(m, arguments, event.site, f"{text}.{name}")
    if _computes(name):
        return layers.output(m, base, obj, arguments, result, event.site, f"{text}.{name}")
    if m.state.mode.recording is not Fact.NO and obj.requires_grad is not Fact.NO:
        # `model.loss(batch)`: if backward is called on it, it goes through the network.
        number = event.site * 8 + 7
        m.needed.by_modules[number] = base
        for ref in result.refs:
            made = m.state.object(ref)
            m.state.set_object(ref, made._replace(graph=made.graph | {number}))
    return result


def _computes(name: str) -> bool:
    """Whether a method's name says that it computes what backward can go through. What predicts, samples or generates
    records nothing in most libraries, and returns classes or tokens."""
    return name.startswith(("forward", "encode", "decode"))


def _note_apply(m: Machine, arguments: Arguments, event: t.Invoke) -> None:
    for value in arguments.positional:
        if isinstance(value.const, FunctionReference):
            m.world.called(value.const.unit, m.unit.number, m.state.mode)
    if event.name == "apply":
        callbacks.hand_module(m, event, arguments)


def _state_dict(m: Machine, base: Value, event: t.Invoke, text: str) -> Value:
    place = devices.at(devices.place_of(m.state.object(base.refs[0])))
    made = Object(Kind.STATE_DICT, Sure.PROVEN, text=f"{text}.state_dict()", type="module", config=place)
    if m.state.object(base.refs[0]).kind is Kind.OPTIMIZER:
        made = made._replace(type="optimizer", flags=frozenset({OPTIMIZER_STATE}))
        if base.refs[0] | 1 in m.owners.optimizers and not base.marks:
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


def _convert(m: Machine, ref: int) -> None:
    """A module may be converted: of what dtype it and its parts are is not known any more."""
    for held in (ref, *sorted(_children(m, ref))):
        obj = m.state.object(held)
        dtype = "" if obj.dtype == dtypes.UNCONVERTED else obj.dtype
        if dtype != obj.dtype or INFERENCE in obj.flags:
            # What inference mode has made is then a copy that it has not made.
            m.state.set_object(held, obj._replace(dtype=dtype, flags=obj.flags - {INFERENCE}))


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
    source = arguments.first("state_dict")
    reading.read(m, source, event.site, "load_state_dict", text)
    for register in entries_loaded.sources(m, event.arguments[0].register) if event.arguments else ():
        reading.read(m, m.value(register), event.site, "load_state_dict", text)
    slots.field_read(m, source.root, event.site, "load_state_dict", text)
    if source.root is None:
        aliasing.note_pair(m, base, source, event.site, "load")
    if arguments.flag("assign") is True:
        assigning.take_over(m, base, source, event.site, text)
        for ref in base.refs:
            made = m.state.object(ref)
            m.state.set_object(ref, made._replace(flags=made.flags - {INFERENCE}))
        return Value(kind=Kind.OTHER)
    refusals.check_inference(m, base, Site(event.site, text, "load_state_dict(...)", "call"))
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
        wholes.note_whole(m, iterator, naming.text_of(m, event.out), one)
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
        closure = rest.keywords.get("closure", rest.at(0)).const
        if isinstance(closure, FunctionReference):
            outer_reads.by_call(m, closure.unit, event.site, f"{text}.step")
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
        group = rest.keywords.get("param_group", rest.at(0))
        making.add_group(m, base.refs[0], group, event.site, f"{text}.{event.name}")
    if m.world.method_of(m.state.object(base.refs[0]), event.name) is not None:
        # A method that the class adds: a helper of `step`, which finds recording switched off as `step` leaves it.
        return call_instance(m, base, arguments, event.site, text, event.name)
    return unknowns.call_unknown(m, rest, event.site, f"{text}.{event.name}")
