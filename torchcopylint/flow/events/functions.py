"""Functions with a meaning of their own: builtins, `copy`, and `torch` where a row of the table is not enough."""

from __future__ import annotations

from torchcopylint.flow import tape as t
from torchcopylint.flow.autograd import grads
from torchcopylint.flow.graphs import callbacks
from torchcopylint.flow.interprocedural import records
from torchcopylint.flow.library import containers, copying, operations
from torchcopylint.flow.model import (
    ANY_ELEMENT,
    CONTAINERS,
    TENSORS,
    Fact,
    How,
    Kind,
    Object,
    Part,
    Share,
    Sure,
    Value,
)
from torchcopylint.flow.networks import making
from torchcopylint.flow.program import mapping
from torchcopylint.flow.references import FunctionReference
from torchcopylint.flow.running.machine import Machine
from torchcopylint.flow.running.special import EACH, receiver_text, special
from torchcopylint.flow.storages import copies, memory_given, reading, sharing, slots, storing, writing
from torchcopylint.flow.tapes import by_default, layout, taken_as
from torchcopylint.flow.values import callforms, devices, memory, naming
from torchcopylint.flow.values.sites import WRITING_KEYWORDS, Arguments, Site
from torchcopylint.flow.values.state import MODE, Mode, kind_of
from torchcopylint.knowledge import table
from torchcopylint.knowledge.table import Op


def _combines(m: Machine, op: Op, arguments: Arguments) -> bool:
    """Whether something new is made of several tensors, and never in place. Sizes, as in `pad(x, (0, n))`, are none.

    Nobody takes `torch.mm(a, b)` for a change of `a`: whoever drops that wants the work to be done, as in a benchmark.
    """
    twin = table.tensor_method(f"{op.short}_")
    operands = [
        one for one in arguments.positional if one.refs and kind_of(one, m.state) not in (Kind.TUPLE, Kind.LIST)
    ]
    return op.shares == "fresh" and twin is None and len(operands) > 1 and op.short not in _LIMITING


_LIMITING = frozenset({"max", "min", "maximum", "minimum"})
"""What keeps a tensor within others, as `clamp` does within numbers: who drops that means a change of the first."""


def call_known(m: Machine, op: Op, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    """A function that the table knows."""
    arguments = callforms.out_by_place(op, callforms.inplace_by_name(op, arguments.without_none()))
    if op.name.endswith(".einsum"):
        arguments = _operands_apart(m, arguments)
    op = taken_as.one_or_two(m, callforms.of_call(m, op, arguments), event.out)
    receiver = receiver_text(m, event)
    at = Site(event.site, receiver, f"{name}(...)" if op.writes else name, "call")
    result = operations.apply(m, op, arguments, at)
    if op.result == "tensor" and not op.writes and (op.differentiable or op.name.endswith("_like")):
        _shows_tensor(m, op, arguments)
    pure = op.result in ("tensor", "tensors") and not op.writes and arguments.flag("inplace") is False
    pure = pure and not arguments.keywords.keys() & WRITING_KEYWORDS and not _combines(m, op, arguments)
    pure = pure and op.short not in callforms.CHECKING
    if pure and _has_tensor(m, arguments):
        m.called.pure[event.out] = (receiver, name, False, _sure_tensor(m, arguments))
    return result


def _operands_apart(m: Machine, arguments: Arguments) -> Arguments:
    """`einsum(equation, [a, b])` is `einsum(equation, a, b)`."""
    listed = arguments.at(1)
    if (
        len(arguments.positional) != 2
        or len(listed.refs) != 1
        or kind_of(listed, m.state) not in (Kind.LIST, Kind.TUPLE)
    ):
        return arguments
    slots_of = m.state.slot_names(listed.refs[0])
    operands = [slots.slot_value(m, slot) for slot in slots_of if slot[1] != ANY_ELEMENT]
    if not operands or len(operands) < len(slots_of):
        return arguments
    return Arguments([arguments.at(0), *operands], arguments.keywords)


def _shows_tensor(m: Machine, op: Op, arguments: Arguments) -> None:
    """What torch computes with is a tensor; what it joins is a list of them, and has no method of that name."""
    first = arguments.at(0)
    if op.arguments[1:2] == ("target",):
        # A loss takes two of them.
        target = callforms.argument(op, arguments, 1)
        memory.evidence_tensor(m, target)
        m.note_evidence(target, frozenset({"loss"}))
    if op.arguments[:2] in table.PAIRS:
        memory.evidence_tensor(m, callforms.argument(op, arguments, 1))
    if not first.refs or kind_of(first, m.state) is not Kind.UNKNOWN or not op.name.startswith("torch."):
        return
    short = op.short
    alike = short.endswith("_like") or op.arguments[:2] in table.PAIRS or op.name.startswith(table.OF_TENSORS)
    if alike or table.tensor_method(short) is not None:
        memory.evidence_tensor(m, first)
        m.note_evidence(first, frozenset({short}))


def _has_tensor(m: Machine, arguments: Arguments) -> bool:
    return bool(arguments.positional) and kind_of(arguments.positional[0], m.state) in TENSORS


def _sure_tensor(m: Machine, arguments: Arguments) -> Sure:
    return min((m.state.object(ref).sure for ref in arguments.positional[0].refs), default=Sure.NOT)


def initialise(m: Machine, arguments: Arguments, site: int, name: str) -> Value:
    """`torch.nn.init.*_` writes its argument under `no_grad`."""
    target = arguments.first("tensor")
    mode = m.state.mode
    m.state.put(MODE, Mode(Fact.NO))
    writing.write(
        m, target, site, op=f"{name}(...)", form="call", name=naming.key_text(m, target.root), reads_old=False
    )
    m.state.put(MODE, mode)
    return target


# -- copy


@special("copy.deepcopy")
def _deepcopy(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    source = arguments.at(0)
    reading.read(m, source, event.site, "argument", name)
    slots.field_read(m, source.root, event.site, "argument", name)
    if not source.refs:
        return source
    copies.deepcopy(m, source, event, name)
    copying.note_deepcopy(m, source, event.site, receiver_text(m, event))
    obj = m.state.object(source.refs[0])
    made = obj._replace(
        text=naming.text_of(m, event.out),
        owner="",
        saved=frozenset(),
        kind=kind_of(source, m.state),
        graph=frozenset(),
        flags=frozenset(),
    )
    if made.kind is Kind.STATE_DICT:
        # Its own tensors: nobody else holds them.
        made = made._replace(kind=Kind.DICT)
    return memory.fresh(m, event.site, made)


@special(making.AVERAGED)
def _averaged(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    """A network that holds a deep copy of another one, which its method `update_parameters` goes on to write."""
    source = arguments.first("model")
    kinds = {m.state.object(ref).kind for ref in source.refs}
    if not kinds or not kinds <= {Kind.MODULE, Kind.UNKNOWN}:
        return memory.unknown(m, event.site, f"{name}(...)")
    memory.refine(m, source, Kind.MODULE, Sure.LIKELY)
    made = making.wrap(m, _deepcopy(m, Arguments([source], {}), event, name), event.site, name)
    obj = m.state.object(made.refs[0])
    m.state.set_object(made.refs[0], obj._replace(type=making.AVERAGED, sure=Sure.PROVEN))
    return made


@special("copy.copy")
def _copy(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    source = arguments.at(0)
    if not source.refs:
        return source
    copying.refine_source(m, source, event.out)
    obj = m.state.object(source.refs[0])
    text = naming.text_of(m, event.out)
    if obj.kind is Kind.STATE_DICT:
        return containers.shallow_copy(m, source, event.site, text)
    if obj.kind in TENSORS:
        copying.note_copy(m, source, event, receiver_text(m, event))
        made = Object(obj.kind, obj.sure, leaf=Fact.YES, requires_grad=obj.requires_grad, dtype=obj.dtype, text=text)
        return memory.alias(m, source, event.site, How.COPY, made)
    if obj.kind in CONTAINERS:
        made_value = memory.fresh(m, event.site, Object(obj.kind, obj.sure, text=text))
        containers.copy_elements(m, source.refs[0], made_value.refs[0], event.site)
        if obj.kind is Kind.DICT and len(source.refs) == 1:
            containers.note_copy(m, made_value.refs[0], source.refs[0])
        return made_value
    if obj.kind in (Kind.MODULE, Kind.INSTANCE) and m.world.method_of(obj, "__copy__") is not None:
        # What such a copy shares is up to the class.
        return memory.fresh(m, event.site, obj._replace(text=text, owner="", saved=frozenset(), flags=frozenset()))
    if obj.kind is Kind.MODULE:
        return memory.alias(m, source, event.site, How.COPY, obj._replace(text=text, owner="", shares=()))
    reading.read(m, source, event.site, "argument", name)
    if obj.kind is Kind.INSTANCE and len(source.refs) == 1:
        return records.copied(m, source, {}, event.site, text)
    made_value = memory.fresh(m, event.site, obj._replace(text=text, owner="", saved=frozenset(), site=event.site))
    if obj.kind is Kind.UNKNOWN and len(source.refs) == 1:
        m.holding.shallow_of[made_value.refs[0]] = source.refs[0]
    return made_value


@special("dataclasses.replace", "copy.replace")
def _replace(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    source, text = arguments.at(0), naming.text_of(m, event.out)
    if len(source.refs) == 1 and m.state.object(source.refs[0]).kind is Kind.INSTANCE:
        return records.copied(m, source, arguments.keywords, event.site, text)
    return memory.unknown(m, event.site, text)


# -- torch


@special(*sorted(mapping.VMAP))
def _vmap(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    """What it returns does to its arguments what the function does."""
    given = arguments.keywords.get("func", arguments.at(0))
    register = next((one.register for one in event.arguments if one.keyword in ("func", "")), t.NO_REGISTER)
    function = callbacks.called(m, register, given).const if register >= 0 else given.const
    mapping.note(m, function, arguments, bound=function is not given.const)
    reading.read(m, given, event.site, "argument", name)
    return given if isinstance(given.const, FunctionReference) else memory.unknown(m, event.site, f"{name}(...)")


@special("torch.autograd.backward")
def _backward(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    arguments = arguments.under_names("grad_tensors", "retain_graph", "create_graph", "grad_variables", "inputs")
    for value in arguments.positional[:1]:
        grads.backward(m, value, event.site, arguments, receiver_text(m, event))
    return Value(kind=Kind.NONE)


@special("torch.autograd.grad")
def _grad(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    arguments = arguments.under_names("grad_outputs", "retain_graph", "create_graph", behind=2)
    for value in arguments.positional[:1]:
        grads.backward(m, value, event.site, arguments, receiver_text(m, event), part=True)
    taken = m.consumer_of(event.out)
    if isinstance(taken, t.Item) and taken.base == event.out and len(arguments.positional) > 1:
        # `grad(loss, x)[0]`: of several inputs, nobody wants the gradient of the first alone.
        memory.evidence_tensor(m, arguments.positional[1])
    made = grads.of_gradient(m, Object(Kind.TENSOR, Sure.PROVEN, text="grad", flags=EACH), arguments, event.site)
    one = memory.fresh(m, event.site, made, "gradient")
    return containers.iterator(m, event.site, one, "gradients", Kind.TUPLE)


@special("torch.device")
def _device(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    named = arguments.at(0).const
    return Value(kind=Kind.OTHER, const=named if isinstance(named, str) else None)


@special("torch.save")
def _save(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    storing.note(m, arguments.at(0), event.site)
    reading.read(m, arguments.at(0), event.site, "argument", name)
    slots.field_read(m, arguments.at(0).root, event.site, "argument", name)
    return Value(kind=Kind.NONE)


def _is_trained(m: Machine, arguments: Arguments, event: t.Call | t.Invoke) -> Fact:
    """Whether a parameter requires a gradient: as it says, or, if a parameter of the function does, by its default."""
    if arguments.keywords.get("requires_grad", arguments.at(1)).const is False:
        return Fact.NO
    asked = [argument.register for argument in event.arguments if argument.keyword == "requires_grad"]
    return Fact.UNKNOWN if asked and by_default.holds(m, asked[0]) is False else Fact.YES


@special("torch.nn.Parameter")
def _parameter(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    source = arguments.first("data")
    requires = _is_trained(m, arguments, event)
    obj = m.state.object(source.refs[0]) if len(source.refs) == 1 else Object()
    text = naming.text_of(m, event.out)
    made = Object(Kind.PARAMETER, Sure.PROVEN, leaf=Fact.YES, requires_grad=requires, dtype=obj.dtype, text=text)
    dense = ((layout.DENSE, True),) if layout.is_dense(m, source) else ()
    made = made._replace(config=(*devices.at(devices.place_of(obj)), *dense))
    if not source.refs:
        return memory.fresh(m, event.site, made)
    shared = slots.lives_on(m, source, -1)
    result = memory.alias(m, source, event.site, How.PARAMETER, made)
    if shared is not None and not sharing.is_passing(m, event.out):
        sharing.note(m, event.site, result.refs[0], source, text, shared, "parameter", obj.sure)
    elif shared is None and requires is Fact.YES:
        memory_given.note(m, event.site, source, _place_of(m, event.out) or text)
    return result


def _place_of(m: Machine, register: int) -> str:
    """The field or name that is bound to what a call returns, or nothing."""
    use = m.consumer_of(register)
    if isinstance(use, t.StoreAttribute):
        return f"{naming.text_of(m, use.base)}.{use.name}"
    return use.name if isinstance(use, t.Bind) else ""


@special(
    "torch.nn.utils.rnn.PackedSequence",
    "torch.nn.utils.rnn.pack_padded_sequence",
    "torch.nn.utils.rnn.pack_sequence",
)
def _packed(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    """A packed sequence is a tuple, whose `data` is what it says and not a way around autograd."""
    for value in (*arguments.positional, *arguments.keywords.values()):
        reading.read(m, value, event.site, "argument", name)
    return memory.fresh(m, event.site, Object(Kind.OTHER, Sure.PROVEN, type=making.PACKED, text=f"{name}(...)"))


@special("torch.nn.Embedding.from_pretrained", "torch.nn.EmbeddingBag.from_pretrained")
def _from_pretrained(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    source = arguments.first("embeddings")
    frozen = arguments.keywords.get("freeze", arguments.at(1)).const is not False
    made = making.make_module(m, t.Dotted("torch.nn.Embedding"), Arguments([], {}), event.site, name)
    if len(source.refs) == 1 and m.state.object(source.refs[0]).kind in TENSORS:
        trained = Fact.NO if frozen else Fact.YES
        weight = Object(Kind.PARAMETER, Sure.PROVEN, leaf=Fact.YES, requires_grad=trained, text=f"{name}(...).weight")
        held = memory.alias(m, source, event.site, How.PARAMETER, weight, tag="weight")
        slots.bind_slot(m, (made.refs[0], ".weight"), held, event.site)
        module = m.state.object(made.refs[0])
        obj = m.state.object(held.refs[0])
        m.state.set_object(held.refs[0], obj._replace(shares=(*obj.shares, *_as_field(module, made.refs[0]))))
    memory_given.note_table(m, source, event.site, frozen, _place_of(m, event.out))
    return made


def _as_field(module: Object, ref: int) -> list[Share]:
    return [Share(s.storage, How.FIELD, s.site, ref, (*s.region, Part("field", "weight"))) for s in module.shares]


_WRAPPED = {
    "torch.compile": "model",
    "torch.jit.trace": "func",
    "torch.jit.script": "obj",
    "torch.fx.symbolic_trace": "root",
}


@special(
    "torch.nn.DataParallel",
    "torch.nn.parallel.DataParallel",
    "torch.nn.parallel.DistributedDataParallel",
    "torch.nn.parallel.distributed.DistributedDataParallel",
    "torch.distributed.fsdp.FullyShardedDataParallel",
    "torch.compile",
    "torch.jit.trace",
    "torch.jit.script",
    "torch.fx.symbolic_trace",
)
def _wrapper(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    """A module around another one, or the same in another form: the parameters are the inner module's own."""
    inner = arguments.first(_WRAPPED.get(m.dotted_of(event), "module"))
    reading.read(m, inner, event.site, "argument", name)
    if isinstance(inner.const, FunctionReference):
        return inner
    kinds = {m.state.object(ref).kind for ref in inner.refs}
    if not kinds or not kinds <= {Kind.MODULE, Kind.UNKNOWN}:
        return memory.unknown(m, event.site, f"{name}(...)")
    memory.refine(m, inner, Kind.MODULE, Sure.LIKELY)
    return making.wrap(m, inner, event.site, name)
