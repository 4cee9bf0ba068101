"""Functions with a meaning of their own: builtins, `copy`, and `torch` where a row of the table is not enough."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from torchcopylint.flow import (
    aliasing,
    attributes,
    callforms,
    collectives,
    containers,
    copies,
    copying,
    devices,
    generators,
    grads,
    making,
    mapping,
    memory,
    naming,
    operations,
    ownership,
    partials,
    reading,
    sharing,
    slots,
    storing,
    writing,
)
from torchcopylint.flow import tape as t
from torchcopylint.flow.iteration import iterate
from torchcopylint.flow.machine import Machine
from torchcopylint.flow.model import (
    ANY_ELEMENT,
    BUFFERS,
    CONTAINERS,
    LISTS,
    PLACEHOLDER,
    TENSORS,
    UNKNOWN,
    Fact,
    How,
    Kind,
    Object,
    Part,
    Share,
    Sure,
    Value,
)
from torchcopylint.flow.references import FunctionReference, Super
from torchcopylint.flow.sites import WRITING_KEYWORDS, Arguments, Site
from torchcopylint.flow.state import MODE, Mode, kind_of
from torchcopylint.knowledge import table
from torchcopylint.knowledge.table import Op

Handler: TypeAlias = "Callable[[Machine, Arguments, t.Call | t.Invoke, str], Value]"
SPECIAL: dict[str, Handler] = {}
EACH = frozenset({PLACEHOLDER})


def special(*names: str) -> Callable[[Handler], Handler]:
    """Register the meaning of some functions by their canonical dotted names."""

    def register(function: Handler) -> Handler:
        for name in names:
            SPECIAL[name] = function
        return function

    return register


def _combines(op: Op, arguments: Arguments) -> bool:
    """Whether something new is made of several tensors, and never in place.

    Nobody takes `torch.mm(a, b)` for a change of `a`: whoever drops that wants the work to be done, as in a benchmark.
    """
    twin = table.tensor_method(f"{op.name.rpartition('.')[2]}_")
    return op.shares == "fresh" and twin is None and sum(bool(value.refs) for value in arguments.positional) > 1


def call_known(m: Machine, op: Op, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    """A function that the table knows."""
    arguments = arguments.without_none()
    if op.name.endswith(".einsum"):
        arguments = _operands_apart(m, arguments)
    op = callforms.of_call(m, op, arguments)
    receiver = _receiver_text(m, event)
    at = Site(event.site, receiver, f"{name}(...)" if op.writes else name, "call")
    result = operations.apply(m, op, arguments, at)
    if op.result == "tensor" and not op.writes and (op.differentiable or op.name.endswith("_like")):
        _shows_tensor(m, op, arguments)
    pure = op.result in ("tensor", "tensors") and not op.writes and arguments.flag("inplace") is False
    pure = pure and not arguments.keywords.keys() & WRITING_KEYWORDS and not _combines(op, arguments)
    pure = pure and op.name.rpartition(".")[2] not in callforms.CHECKING
    if pure and _has_tensor(m, arguments):
        m.pure_calls[event.out] = (receiver, name, False, _sure_tensor(m, arguments))
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
        target = operations.argument(op, arguments, 1)
        memory.evidence_tensor(m, target)
        m.note_evidence(target, frozenset({"loss"}))
    if not first.refs or kind_of(first, m.state) is not Kind.UNKNOWN or not op.name.startswith("torch."):
        return
    short = op.name.rpartition(".")[2].partition("(")[0]
    alike = short.endswith("_like") or op.name.startswith("torch.nn.functional.")
    if alike or table.tensor_method(short) is not None:
        memory.evidence_tensor(m, first)
        m.note_evidence(first, frozenset({short}))


def _receiver_text(m: Machine, event: t.Call | t.Invoke) -> str:
    first = next((a.register for a in event.arguments if not a.keyword and not a.stars), -1)
    return naming.text_of(m, first) if first >= 0 else "..."


def _has_tensor(m: Machine, arguments: Arguments) -> bool:
    return bool(arguments.positional) and kind_of(arguments.positional[0], m.state) in TENSORS


def _sure_tensor(m: Machine, arguments: Arguments) -> Sure:
    return min((m.state.object(ref).sure for ref in arguments.positional[0].refs), default=Sure.NOT)


def initialise(m: Machine, arguments: Arguments, site: int, name: str) -> Value:
    """`torch.nn.init.*_` writes its argument under `no_grad`."""
    target = arguments.at(0) if arguments.positional else arguments.keywords.get("tensor", Value())
    mode = m.state.mode
    m.state.put(MODE, Mode(Fact.NO))
    writing.write(
        m, target, site, op=f"{name}(...)", form="call", name=naming.key_text(m, target.root), reads_old=False
    )
    m.state.put(MODE, mode)
    return target


# -- builtins


@special("builtins.isinstance", "builtins.hasattr", "builtins.callable", "builtins.issubclass", "builtins.id")
def _metadata(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    return Value(kind=Kind.NUMBER)


@special("builtins.len", "torch.is_tensor", "torch.numel", "builtins.type")
def _length(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    return Value(kind=Kind.NUMBER) if name != "type" else Value(kind=Kind.OTHER)


@special("builtins.int", "builtins.float", "builtins.bool", "builtins.round", "builtins.abs", "builtins.hash")
def _number(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    for value in arguments.positional:
        reading.read(m, value, event.site, "look", name)
    if name in ("abs", "round") and arguments.positional and kind_of(arguments.positional[0], m.state) in BUFFERS:
        obj = m.state.object(arguments.positional[0].refs[0])
        return memory.fresh(m, event.site, grads.result_of(m, Object(obj.kind, obj.sure), arguments.positional, True))
    return Value(kind=Kind.NUMBER)


@special("builtins.slice")
def _slice(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    return Value(kind=Kind.OTHER)


@special("builtins.str", "builtins.repr", "builtins.format")
def _string(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    for value in arguments.positional:
        reading.read(m, value, event.site, "look", name)
    return Value(kind=Kind.STRING)


@special("builtins.range")
def _range(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    return containers.iterator(m, event.site, Value(kind=Kind.NUMBER))


@special("builtins.enumerate", "tqdm.tqdm", "tqdm.auto.tqdm", "tqdm.notebook.tqdm", "builtins.reversed")
def _enumerate(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    if name.rpartition(".")[2] == "enumerate":
        generators.note_taken(m, arguments.at(0), event.site)
        return containers.lazily(m, event.site, containers.NUMBERED, arguments.at(0))
    return arguments.at(0)


@special("builtins.zip", "itertools.product")
def _zip(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    for source in arguments.positional:
        generators.note_taken(m, source, event.site)
    aliasing.note_zip(m, arguments.positional, event.site)
    return containers.lazily(m, event.site, containers.ZIP, *arguments.positional)


@special("builtins.list", "builtins.tuple", "builtins.sorted", "builtins.iter", "builtins.set")
def _list(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    kind = {"tuple": Kind.TUPLE, "set": Kind.SET, "iter": Kind.ITERATOR}.get(name, Kind.LIST)
    if not arguments.positional:
        return memory.fresh(m, event.site, Object(kind, Sure.PROVEN, text="..."))
    source = arguments.positional[0]
    if len(source.refs) == 1 and m.state.object(source.refs[0]).kind in (Kind.LIST, Kind.TUPLE) and name != "sorted":
        made = memory.fresh(m, event.site, Object(kind, Sure.PROVEN, text="..."))
        _copy_in_order(m, source.refs[0], made.refs[0], event.site)
        return made
    generators.note_taken(m, source, event.site)
    item = iterate(m, source, event.site, _receiver_text(m, event))
    made = containers.iterator(m, event.site, item, "list", kind)
    ownership.note_taken(m, [source], made)
    return made


def _copy_in_order(m: Machine, source: int, target: int, site: int) -> None:
    for slot in m.state.slot_names(source):
        cell = m.state.cell(slot)
        if cell is not None:
            held = Value(cell.refs, cell.kind, cell.const, cell.marks)
            slots.bind_slot(m, (target, slot[1]), held, site, weak=slot[1] == ANY_ELEMENT)


@special("itertools.chain")
def _chain(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    items = [iterate(m, v, event.site, "...", str(i)) for i, v in enumerate(arguments.positional)]
    made = containers.iterator(m, event.site, slots.join_values(items))
    ownership.note_taken(m, arguments.positional, made)
    return made


@special("itertools.repeat")
def _repeat(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    use = m.consumer_of(event.out)
    if isinstance(use, t.Call | t.Invoke) and m.dotted_of(use) in _HOLDING and len(arguments.positional) > 1:
        slots.note_repeated(m, arguments.at(0), event.site, "multiplied", naming.text_of(m, event.out), event.out)
    return containers.iterator(m, event.site, arguments.at(0))


_HOLDING = frozenset({"torch.nn.ModuleList", "torch.nn.Sequential", "builtins.list"})
"""What keeps all that it is given."""


@special("builtins.filter", "builtins.map")
def _filter(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    if name == "filter":
        source = arguments.at(1)
        if not any(ref | 1 in m.wholes for ref in source.refs):
            return source
        # Some of a module's parameters: no longer every one of them.
        made = containers.iterator(m, event.site, iterate(m, source, event.site, "..."), "filtered")
        generators.note_made(m, made, event.site)
        return made
    return containers.iterator(m, event.site, memory.fresh(m, event.site, Object(text="...", flags=EACH), "mapped"))


@special("builtins.next")
def _next(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    return iterate(m, arguments.at(0), event.site, _receiver_text(m, event))


@special("builtins.dict", "collections.OrderedDict")
def _dict(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    source = arguments.at(0)
    if len(source.refs) == 1 and m.state.object(source.refs[0]).kind is Kind.STATE_DICT:
        return containers.shallow_copy(m, source, event.site, naming.text_of(m, event.out))
    made = memory.fresh(m, event.site, Object(Kind.DICT, Sure.PROVEN, text="..."))
    for ref in source.refs:
        obj = m.state.object(ref)
        if obj.kind is Kind.DICT:
            containers.copy_elements(m, ref, made.refs[0], event.site)
        elif obj.type in (containers.NAMED, containers.ZIP) or obj.kind is Kind.LIST:
            # Pairs of a key and a value, as in `dict(model.named_parameters())`.
            pairs = iterate(m, Value((ref,)), event.site, "...").refs
            for pair in (pair for pair in pairs if m.state.object(pair).kind is Kind.TUPLE):
                held = slots.slot_value(m, (pair, "[1]"))
                slots.bind_slot(m, (made.refs[0], ANY_ELEMENT), held._replace(root=None), event.site, weak=True)
    for key, value in arguments.keywords.items():
        if key != "**":
            slots.bind_slot(m, (made.refs[0], f"[{key!r}]"), value, event.site)
    return made


@special("collections.deque")
def _deque(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    return _list(m, arguments, event, "list")


@special("collections.defaultdict")
def _defaultdict(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    factory = arguments.at(0).const
    flags = frozenset({LISTS}) if factory == "builtins.list" else frozenset[str]()
    made = memory.fresh(m, event.site, Object(Kind.DICT, Sure.PROVEN, text="...", flags=flags))
    if isinstance(factory, FunctionReference) and m.world.is_own(factory.unit):
        # `lambda: zeros` hands out the one object that `zeros` is, `lambda: torch.zeros(2)` makes one for each key.
        returned = [held for held in m.world.unit(factory.unit).tape if isinstance(held, t.Return)]
        loaded = [m.world.unit(factory.unit).definitions[held.value] for held in returned if held.value >= 0]
        outer = m.state.cell(loaded[0].name) if len(loaded) == 1 and isinstance(loaded[0], t.Load) else None
        if outer is not None:
            place = naming.field_set(m, event.out) or naming.text_of(m, event.out)
            held = Value(outer.refs, outer.kind)
            slots.note_repeated(m, held, event.site, "fromkeys", place)
            slots.bind_slot(m, (made.refs[0], ANY_ELEMENT), held, event.site)
    return made


@special("builtins.dict.fromkeys", "collections.OrderedDict.fromkeys")
def _fromkeys(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    place = naming.field_set(m, event.out) or naming.text_of(m, event.out)
    slots.note_repeated(m, arguments.at(1), event.site, "fromkeys", place)
    return containers.iterator(m, event.site, arguments.at(1), "fromkeys", Kind.DICT)


@special("builtins.sum", "builtins.max", "builtins.min")
def _sum(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    for value in arguments.positional:
        reading.read(m, value, event.site, "argument", name)
    inputs = [obj for obj in grads.tensors_in(m, arguments.positional) if obj.kind in TENSORS]
    if inputs:
        made = Object(Kind.TENSOR, min(obj.sure for obj in inputs), text=f"{name}(...)")
        return memory.fresh(m, event.site, grads.result_of(m, made, arguments.positional, True))
    return memory.unknown(m, event.site, f"{name}(...)")


@special("builtins.super")
def _super(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    return Value(kind=Kind.OTHER, const=Super(m.unit.owner))


@special("builtins.getattr")
def _getattr(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    attribute = arguments.at(1).const
    if isinstance(attribute, str) and arguments.at(0).refs:
        return attributes.attribute(m, arguments.at(0), attribute, event.site, _receiver_text(m, event))
    return memory.unknown(m, event.site, f"{name}(...)")


@special("builtins.print")
def _print(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    for value in arguments.positional:
        reading.read(m, value, event.site, "look", name)
        slots.field_read(m, value.root, event.site, "look", name)
    return Value(kind=Kind.NONE)


def _collective(function: str) -> Handler:
    return lambda m, arguments, event, name: collectives.fill(m, function, arguments, event.site, name)


for _name in collectives.FILLED:
    SPECIAL[_name] = _collective(_name)


@special("functools.partial")
def _partial(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    return partials.make(m, arguments, event.site, name)


# -- copy


@special("copy.deepcopy")
def _deepcopy(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    source = arguments.at(0)
    reading.read(m, source, event.site, "argument", name)
    slots.field_read(m, source.root, event.site, "argument", name)
    if not source.refs:
        return source
    copies.deepcopy(m, source, event, name)
    copying.note_deepcopy(m, source, event.site, _receiver_text(m, event))
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


@special("copy.copy")
def _copy(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    source = arguments.at(0)
    if not source.refs:
        return source
    obj = m.state.object(source.refs[0])
    text = naming.text_of(m, event.out)
    if obj.kind is Kind.STATE_DICT:
        return containers.shallow_copy(m, source, event.site, text)
    if obj.kind in TENSORS:
        copying.note_copy(m, source, event.site, _receiver_text(m, event))
        made = Object(obj.kind, obj.sure, leaf=Fact.YES, requires_grad=obj.requires_grad, dtype=obj.dtype, text=text)
        return memory.alias(m, source, event.site, How.COPY, made)
    if obj.kind in CONTAINERS:
        made_value = memory.fresh(m, event.site, Object(obj.kind, obj.sure, text=text))
        containers.copy_elements(m, source.refs[0], made_value.refs[0], event.site)
        return made_value
    if obj.kind is Kind.MODULE:
        return memory.alias(m, source, event.site, How.COPY, obj._replace(text=text, owner="", shares=()))
    reading.read(m, source, event.site, "argument", name)
    return memory.fresh(m, event.site, obj._replace(text=text, owner="", saved=frozenset()))


# -- torch


@special(*sorted(mapping.VMAP))
def _vmap(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    """What it returns does to its arguments what the function does."""
    mapping.note(m, arguments)
    given = arguments.keywords.get("func", arguments.at(0))
    reading.read(m, given, event.site, "argument", name)
    return given if isinstance(given.const, FunctionReference) else memory.unknown(m, event.site, f"{name}(...)")


@special("torch.autograd.backward")
def _backward(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    for value in arguments.positional[:1]:
        grads.backward(m, value, event.site, arguments, _receiver_text(m, event))
    return Value(kind=Kind.NONE)


@special("torch.autograd.grad")
def _grad(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    for value in arguments.positional[:1]:
        grads.backward(m, value, event.site, arguments, _receiver_text(m, event), part=True)
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


@special("torch.nn.Parameter")
def _parameter(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    source = arguments.at(0) if arguments.positional else arguments.keywords.get("data", Value())
    wanted = arguments.keywords.get("requires_grad", arguments.at(1)).const
    requires = Fact.NO if wanted is False else Fact.YES
    obj = m.state.object(source.refs[0]) if len(source.refs) == 1 else Object()
    text = naming.text_of(m, event.out)
    made = Object(Kind.PARAMETER, Sure.PROVEN, leaf=Fact.YES, requires_grad=requires, dtype=obj.dtype, text=text)
    made = made._replace(config=devices.at(devices.place_of(obj)))
    if not source.refs:
        return memory.fresh(m, event.site, made)
    shared = slots.lives_on(m, source, -1)
    result = memory.alias(m, source, event.site, How.PARAMETER, made)
    if shared is not None and not sharing.is_passing(m, event.out):
        sharing.note(m, event.site, result.refs[0], source, text, shared, "parameter", obj.sure)
    elif shared is None and requires is Fact.YES:
        use = m.consumer_of(event.out)
        place = f"{naming.text_of(m, use.base)}.{use.name}" if isinstance(use, t.StoreAttribute) else text
        sharing.note_again(m, event.site, source, place)
    return result


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
    source = arguments.at(0) if arguments.positional else arguments.keywords.get("embeddings", Value())
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
        sharing.note_table(m, source, event.site, frozen)
    return made


def _as_field(module: Object, ref: int) -> list[Share]:
    return [Share(s.storage, How.FIELD, s.site, ref, (*s.region, Part("field", "weight"))) for s in module.shares]


@special(
    "torch.nn.DataParallel",
    "torch.nn.parallel.DataParallel",
    "torch.nn.parallel.DistributedDataParallel",
    "torch.nn.parallel.distributed.DistributedDataParallel",
    "torch.distributed.fsdp.FullyShardedDataParallel",
    "torch.compile",
)
def _wrapper(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    """A module around another one: the parameters are the inner module's own."""
    inner = arguments.at(0) if arguments.positional else arguments.keywords.get("module", UNKNOWN)
    reading.read(m, inner, event.site, "argument", name)
    if isinstance(inner.const, FunctionReference):
        return inner
    kinds = {m.state.object(ref).kind for ref in inner.refs}
    if not kinds or not kinds <= {Kind.MODULE, Kind.UNKNOWN}:
        return memory.unknown(m, event.site, f"{name}(...)")
    memory.refine(m, inner, Kind.MODULE, Sure.LIKELY)
    return making.wrap(m, inner, event.site, name)
