"""Method calls, by what the receiver is."""

from __future__ import annotations

from torchcopylint.flow import tape as t
from torchcopylint.flow.autograd import detaching, distributions, frozen, gradients, grads, stepping, unknowns
from torchcopylint.flow.events import attribute_stores, guessing
from torchcopylint.flow.graphs import callbacks, copied_terms, severed, switched_on, terms
from torchcopylint.flow.interprocedural import forward_hooks
from torchcopylint.flow.library import containers, custom, operations, results
from torchcopylint.flow.model import (
    CONTAINERS,
    EITHER,
    HANDED,
    INFERENCE,
    OUTPUT,
    PART,
    PASSED,
    TENSORS,
    UNKNOWN,
    Fact,
    How,
    Kind,
    Object,
    Sure,
    Value,
)
from torchcopylint.flow.networks import hooked_inputs, modules
from torchcopylint.flow.running.machine import Machine
from torchcopylint.flow.storages import conversions, copies, reading, resizing, slots, swaps, transfers, unlike
from torchcopylint.flow.tapes import layout, numbers, taken_as
from torchcopylint.flow.values import callforms, devices, dtypes, memory, naming
from torchcopylint.flow.values.modes import MODES_BY_NAME
from torchcopylint.flow.values.sites import Arguments, Site
from torchcopylint.knowledge import arity, table
from torchcopylint.knowledge.table import Op

NO_GRAPH: frozenset[int] = frozenset()
PLAIN_RESULTS = frozenset({"number", "bool", "size", "string", "array", "list"})
"""Results of methods that carry no graph."""
_OF_TENSORS_AND_MODULES = frozenset({"requires_grad_", "backward"})
"""Methods that show a tensor once it is no module, nor what wraps one."""
_OF_CONTEXTS = frozenset({"mark_dirty", "save_for_backward"})
"""Methods that the context of a custom Function has, and no tensor, module or optimizer."""
ARGUMENT_WRITERS = {"shuffle": 1, "readinto": 1, "recv_into": 1}
"""Methods of whatever object that write one of their arguments in place: generators, files, sockets."""


def call(m: Machine, base: Value, event: t.Invoke, arguments: Arguments) -> Value:
    """The result of `base.name(...)` for one object."""
    name = event.name
    callbacks.note_hook(m, event, arguments)
    forward_hooks.note(m, event, arguments)
    hooked_inputs.note(m, event, arguments)
    obj = m.state.object(base.refs[0])
    guessed = obj.kind is Kind.UNKNOWN or (obj.kind in TENSORS and obj.sure is not Sure.PROVEN)
    if guessed and not obj.type and _is_of_others(event, arguments):
        # Whatever may have spoken for a tensor: it is none.
        return unknowns.call_unknown(m, arguments, event.site, naming.text_of(m, event.out).removesuffix("(...)"))
    if obj.kind is Kind.UNKNOWN or EITHER in obj.flags:
        obj = guessing.receiver(m, base, event)
    if (EITHER in obj.flags and not _is_of_both(name)) or (name in _OF_CONTEXTS and not obj.type):
        # Whatever has been set on the context of a Function, `ctx.training`, it is none of these.
        return _call_on_unknown(m, base, obj, event, arguments)
    if obj.kind in TENSORS and m.world.is_method(name) and m.world.method_of(obj, name) is not None:
        # A class of parameters or tensors that has a `cuda()` of its own.
        return modules.call_instance(m, base, arguments, event.site, naming.text_of(m, event.base), name)
    if obj.kind in TENSORS:
        op = table.tensor_method(name)
        if name in _OF_TENSORS_AND_MODULES or (m.shown.dropped and table.evidence(name) == "tensor"):
            # A method that is dropped has shown that it is no module, and one that only tensors have is enough.
            memory.note_dropped(m, base, name)
        if op is not None:
            op = taken_as.one_or_two(m, callforms.of_call(m, op, arguments), event.out)
            return call_tensor_method(m, op, arguments, event, name)
    elif obj.kind is Kind.ARRAY:
        if name == "backward" and obj.sure is Sure.PROVEN:
            severed.note_number(m, event.base, event.site, naming.text_of(m, event.base))
        op = table.array_method(name)
        if op is not None and op.result == "none" and obj.sure < Sure.PROVEN and _is_used(m, event):
            # `x, order = x.sort(0)`: NumPy returns nothing there, so that it is no array.
            return _call_on_unknown(m, base, obj, event, arguments)
        if op is not None:
            return _call_array_method(m, op, arguments, event, name)
    elif obj.kind is Kind.MODULE:
        return modules.call_method(m, base, event, arguments)
    elif obj.kind is Kind.OPTIMIZER:
        return modules.call_optimizer_method(m, base, event, arguments)
    elif obj.kind in CONTAINERS:
        return containers.call_method(m, base, event, arguments)
    elif obj.kind is Kind.INSTANCE:
        return modules.call_instance(m, base, arguments, event.site, naming.text_of(m, event.base), name)
    elif obj.kind is Kind.UNKNOWN:
        return _call_on_unknown(m, base, obj, event, arguments)
    elif obj.type == memory.GENERATOR and (drawn := table.function(f"{memory.GENERATOR}.{name}")) is not None:
        return operations.apply(m, drawn, arguments, Site(event.site, naming.text_of(m, event.base), name))
    elif obj.type == memory.RANDOM_STATE and (drawn := table.function(f"numpy.random.{name}")) is not None:
        without = arguments._replace(positional=arguments.positional[1:])
        return operations.apply(m, drawn, without, Site(event.site, naming.text_of(m, event.base), name))
    elif obj.type == memory.WINDOW and name in ("cast", "toreadonly"):
        return memory.alias(m, base, event.site, How.VIEW, obj._replace(text=naming.text_of(m, event.out)))
    text = naming.text_of(m, event.out).removesuffix("(...)")
    asked = distributions.method(m, name, arguments, event.site, text) if obj.type == distributions.PREFIX else None
    if asked is not None:
        return asked
    slots.field_read(m, base.root, event.site, "argument", name)
    return unknowns.call_unknown(m, arguments, event.site, naming.text_of(m, event.out).removesuffix("(...)"))


def _is_of_others(event: t.Invoke, arguments: Arguments) -> bool:
    """Whether a call passes what no method of a tensor takes: `semiring.zero_(chart)`."""
    placed = any(not argument.keyword and not argument.stars for argument in event.arguments)
    return (placed and event.name in arity.BARE) or not arity.OF_OTHERS.isdisjoint(arguments.keywords)


def _is_of_both(name: str) -> bool:
    """Whether a method of tensors and arrays does the same to the memory of both: `sort` writes arrays alone."""
    tensor, array = table.tensor_method(name), table.array_method(name)
    return tensor is not None and array is not None and (tensor.writes, tensor.shares) == (array.writes, array.shares)


def of_plain(m: Machine, base: Value, event: t.Invoke, arguments: Arguments) -> Value:
    """A method of something that is no object we follow: a string, a number."""
    if base.kind is Kind.NUMBER and event.name == "backward":
        severed.note_number(m, event.base, event.site, naming.text_of(m, event.base))
    consumer = "text" if base.kind is Kind.STRING and event.name == "format" else "argument"
    for value in (*arguments.positional[1:], *arguments.keywords.values()):
        reading.read(m, value, event.site, consumer, event.name)
    if base.kind is Kind.STRING and event.name in ("join", "format", "strip", "lower", "upper", "replace"):
        return Value(kind=Kind.STRING)
    return memory.unknown(m, event.site, naming.text_of(m, event.out))


def _is_used(m: Machine, event: t.Invoke) -> bool:
    user = m.consumer_of(event.out)
    return user is not None and not isinstance(user, t.Discard)


def _call_on_unknown(m: Machine, base: Value, obj: Object, event: t.Invoke, arguments: Arguments) -> Value:
    """A receiver of unknown kind: what tensors and others have alike may be what it is for tensors."""
    if m.holding.flights:
        transfers.before(m, event.name, arguments)
    if event.name in MODES_BY_NAME and len(arguments.positional) == 1:
        # `from fastai.basics import *` hands on `torch`, too.
        return Value(kind=Kind.MODE, const=MODES_BY_NAME[event.name])
    op = table.tensor_method(event.name)
    for value in (*arguments.positional[1:], *arguments.keywords.values()):
        reading.read(m, value, event.site, "argument", event.name)
    position = ARGUMENT_WRITERS.get(event.name)
    if position is not None and position < len(arguments.positional):
        target = arguments.positional[position]
        text = naming.key_text(m, target.root) or "its argument"
        at = Site(event.site, text, f"{naming.text_of(m, event.base)}.{event.name}(...)", "call")
        operations.write_through(m, target, [], at, reads_old=True, versioned=False)
    unknowns.write_out(m, arguments, event.site, f"{naming.text_of(m, event.base)}.{event.name}")
    if event.name == "mark_dirty":
        custom.mark_dirty(m, arguments, event.site)
        return Value(kind=Kind.NONE)
    if event.name == "save_for_backward":
        custom.save_for_backward(m, arguments)
    if event.name in modules.STATE_METHODS:
        return modules.call_method(m, base, event, arguments)
    if event.name == "backward" and len(arguments.positional) == 1 and not unknowns.is_handed_back(m, event.out):
        # A loss of which nobody knows where it comes from.
        grads.backward(m, base, event.site, arguments, naming.text_of(m, event.base))
        copied_terms.note(m, event.base, event.site)
        terms.note(m, event.base, event.site)
        return Value(kind=Kind.NONE)
    if event.name in ("requires_grad_", "eval", "train"):
        return _returns_itself(m, base, obj, event, arguments)
    if op is not None:
        _note_pure(m, op, event, naming.text_of(m, event.base), event.name, base, arguments)
    if (
        op is not None
        and op.shares in ("view", "maybe", "same")
        and op.of == 0
        and event.name not in ("type", "get", "copy")
        and arguments.flag("copy") is False
    ):
        made = Object(text=naming.text_of(m, event.out), requires_grad=obj.requires_grad, graph=obj.graph)
        # A view of what a network returns is as much its output as that is.
        made = layout.permuted(made._replace(flags=obj.flags & {OUTPUT, PART}), event.name, arguments, obj)
        if op.shares == "maybe" and dtypes.same(obj.dtype, dtypes.named(arguments) or op.dtype) is Fact.NO:
            return memory.fresh(m, event.site, made)
        if unlike.is_converted(m, base, event.site):
            return memory.fresh(m, event.site, made)
        when = results.condition(op.when) if op.shares == "maybe" else ""
        result = memory.alias(m, base, event.site, How.CONDITIONAL, made, when=when or memory.IF_TENSOR)
        if event.name == "to":
            result = transfers.to_host(m, arguments, result, event, naming.text_of(m, event.base))
        return result
    return _computed_of_unknown(m, base, obj, event, arguments)


def _computed_of_unknown(m: Machine, base: Value, obj: Object, event: t.Invoke, arguments: Arguments) -> Value:
    """What a method of an unknown receiver computes, and what calling it may do besides."""
    op = table.tensor_method(event.name)
    if op is None or op.reads:
        reading.read(m, base, event.site, "argument", event.name)
    slots.field_read(m, base.root, event.site, "argument", event.name)
    rest = Arguments(arguments.positional[1:], arguments.keywords)
    slots.forget_fields(m, base)
    if event.name == "zero_grad":
        # A module or an optimizer, by whatever name.
        gradients.zeroed(m, base, rest, event.site, naming.text_of(m, event.base))
    stepping.maybe_trains(m, rest, event.site, event.name, base)
    stepping.maybe_step(m, rest, event.site, event.name)
    unknowns.maybe_backward(m, rest, event.site, event.name)
    if op is None:
        unknowns.maybe_filled(m, rest)
    graph = unknowns.graph_behind(m, rest, event.name)
    if event.name == "scale" and len(rest.positional) == 1:
        # `scaler.scale(loss)`: whatever scales a loss, multiplies it.
        run = m.consumer_of(event.out)
        if isinstance(run, t.Invoke) and run.name == "backward" and run.base == event.out:
            return rest.positional[0]
        graph = frozenset[int]().union(*(m.state.object(ref).graph for ref in rest.positional[0].refs))
        return memory.fresh(m, event.site, Object(text=naming.text_of(m, event.out), graph=graph))
    if event.name == unknowns.SCALED_LOSS and rest.positional:
        return rest.positional[0]._replace(root=None)
    if (inner := unknowns.unwrapped(m, rest, event.name)) is not None:
        return inner
    if event.name == "copy":
        made = obj._replace(text=naming.text_of(m, event.out), owner="", saved=frozenset(), flags=frozenset())
        result = memory.fresh(m, event.site, made)
        if obj.kind is Kind.UNKNOWN and isinstance(m.unit.definitions[event.base], t.Item):
            # One of several records, if what stands in it is asked for by name; a table is not one of several.
            m.holding.shallow_of[result.refs[0]] = base.refs[0]
        return result
    # Whatever has a method `item` or `tolist`, what it returns has no graph.
    plain = op is not None and op.result in PLAIN_RESULTS
    config = devices.kept(m, event.name, arguments) if op is not None else ()
    behind = (NO_GRAPH if plain else obj.graph) | graph
    made = Object(text=naming.text_of(m, event.out), graph=behind, flags=obj.flags & {PART}, config=config)
    if plain and not behind:
        made = made._replace(requires_grad=Fact.NO)
    if op is not None and op.result == "tensor" and m.state.mode.inference > 0 and _is_torchs(obj, event.name):
        made = made._replace(kind=Kind.TENSOR, sure=Sure.LIKELY, flags=made.flags | {INFERENCE})
    if op is not None and op.result == "tensor" and op.differentiable and obj.requires_grad > 0:
        made = grads.result_of(m, made, [base], True)
    return memory.fresh(m, event.site, made)


def _is_torchs(obj: Object, name: str) -> bool:
    """Whether a method is a tensor's, as what a network returned has them, or as no array has one of that name."""
    return bool(obj.flags & {OUTPUT, INFERENCE}) or table.array_method(name) is None


def _returns_itself(m: Machine, base: Value, obj: Object, event: t.Invoke, arguments: Arguments) -> Value:
    """Whether tensor or module: these switch something and return the receiver."""
    if event.name == "requires_grad_":
        values = [*arguments.positional[1:], *arguments.keywords.values()]
        wanted = values[0].const if values else True
        fact = Fact.NO if wanted is False else Fact.YES if wanted is True else Fact.UNKNOWN
        leaf = Fact.UNKNOWN if HANDED in obj.flags else obj.leaf
        m.state.set_object(base.refs[0], obj._replace(requires_grad=fact, leaf=leaf))
        if wanted is True:
            m.switches.on.add(base.refs[0] | 1)
        made = m.unit.definitions[m.index.calls.get(obj.site, event.base)]
        if isinstance(made, t.Invoke) and made.name == "clone":
            # Modules have no such method.
            memory.refine(m, base, Kind.TENSOR, Sure.LIKELY)
            if isinstance(wanted, bool):
                attribute_stores.set_requires_grad(m, base.refs[0], wanted)
    return base


def call_tensor_method(m: Machine, op: Op, arguments: Arguments, event: t.Invoke | t.Call, name: str) -> Value:
    """A method of a tensor."""
    arguments = arguments.without_none()
    base = arguments.positional[0]
    text = _receiver_text(m, event, base)
    at = Site(event.site, text, name)
    if name in conversions.METHODS:
        conversions.method(m, name, arguments, event, text)
    elif name in copies.METHODS and isinstance(event, t.Invoke):
        copies.method(m, name, arguments, event, text)
    if m.holding.flights:
        transfers.before(m, name, arguments)
    if name == "type" and len(arguments.positional) == 1 and not arguments.keywords:
        # It is asked what type it is, and answers with a name.
        return Value(kind=Kind.STRING)
    if name == "copy_" and len(arguments.positional) > 1:
        swaps.note(m, base, arguments.positional[1], event.site)
    special = _TENSOR_METHODS.get(name)
    if name == "zero_" and m.backward.gradients and gradients.zeroed_in_loop(m, base, event.site):
        return base
    if special is not None:
        return special(m, op, arguments, event, at)
    slots.field_read(m, base.root, event.site, "argument", name)
    if op.writes:
        numbers.note_method(m, name, arguments, event.site, text)
    if name == "view" and not any(argument.stars for argument in event.arguments):
        layout.note_view(m, arguments, at)
    elif name in resizing.RESIZING:
        resizing.note(m, base, at)
    result = operations.apply(m, op, arguments, at)
    _note_pure(m, op, event, text, name, base, arguments)
    return result


def _receiver_text(m: Machine, event: t.Invoke | t.Call, base: Value) -> str:
    """How what a method is called on is written, which may be in the brackets: `torch.detach_(x)`."""
    if event.__class__ is t.Invoke and not isinstance(m.value(event.base).const, t.Dotted):
        return naming.text_of(m, event.base)
    text = naming.spelling(m, event.arguments[0].register) if event.arguments else "..."
    return text if text != "..." else naming.key_text(m, base.root) or "..."


def _note_pure(
    m: Machine, op: Op, event: t.Invoke | t.Call, text: str, name: str, base: Value, arguments: Arguments
) -> None:
    """An out-of-place operation: if its result is dropped, nothing has happened."""
    pure = op.result in ("tensor", "tensors") and not op.writes and arguments.flag("inplace") is False
    if pure and "out" not in arguments.keywords and not name.endswith("_") and name not in callforms.CHECKING:
        if devices.is_there(m, base, name, arguments) is Fact.YES:
            # It is where it is sent: the call is one too many, and nothing is lost with its result.
            return
        several = len(arguments.positional) > 2 or any(v.const is not None for v in arguments.positional[1:])
        several = several or (name == "clamp" and bool(arguments.keywords))
        sures = [_independently_sure(m, ref, name, several) for ref in base.refs]
        # Where one of several things is known, what only tensors have is called on that, or on another tensor.
        choose = max if table.evidence(name) == "tensor" else min
        sure = choose(sures, default=Sure.NOT)
        if name in devices.SENDING and _is_filled_before(m, event, base):
            # `z.normal_().cuda()`: what is wanted is that it is filled, and it may be there already.
            sure = min(sure, Sure.HINT)
        m.called.pure[event.out] = (text, name, True, sure)


def _is_filled_before(m: Machine, event: t.Invoke | t.Call, base: Value) -> bool:
    """Whether the receiver of a call has just been written by the same expression, and comes from elsewhere."""
    before = m.unit.definitions[event.base] if isinstance(event, t.Invoke) and event.base >= 0 else None
    if not isinstance(before, t.Invoke) or before.site not in m.writes:
        return False
    return not devices.is_on_host(m, base)


PURE_EVERYWHERE = frozenset({"squeeze", "unsqueeze", "permute", "masked_fill", "clamp"})
"""Methods that change their receiver in no library that has them."""
_BY_NUMBERS = frozenset({"permute", "clamp"})
"""Those of them that others have as well, but not with several arguments, or numbers."""


def _independently_sure(m: Machine, ref: int, name: str, several: bool) -> Sure:
    """How sure it is that an object is a tensor, apart from this very call being made on it.

    What a network returns is one, but one of several things may be a state with methods of its own. What permutes by an
    order that it is given may be anything; by `several` numbers, it has dimensions.
    """
    obj = m.state.object(ref)
    if name in PURE_EVERYWHERE and obj.kind in (Kind.UNKNOWN, Kind.TENSOR) and (name not in _BY_NUMBERS or several):
        return max(obj.sure, Sure.LIKELY)
    returned = OUTPUT in obj.flags and PART not in obj.flags
    # What a call passes that is a tensor by its use alone may as well be a batch with methods of its own.
    shown = m.shown.evidence.get(ref | 1, frozenset()).union(
        *(m.shown.evidence.get(share.of | 1, ()) for share in obj.shares)
    )
    if obj.sure is Sure.LIKELY and not returned and shown <= {name, PASSED}:
        return Sure.NOT
    return obj.sure


def _call_array_method(m: Machine, op: Op, arguments: Arguments, event: t.Invoke, name: str) -> Value:
    at = Site(event.site, naming.text_of(m, event.base), name)
    slots.field_read(m, arguments.positional[0].root, event.site, "argument", name)
    if name == "resize" and arguments.keywords.get("refcheck", UNKNOWN).const is not False:
        resizing.note_array(m, arguments.positional[0], at)
    if name == "setflags":
        conversions.set_writeable(m, arguments.positional[0], arguments.keywords.get("write", UNKNOWN))
    result = operations.apply(m, callforms.of_call(m, op, arguments), arguments, at)
    if name == "diagonal":
        conversions.note_layout(m, op.name, arguments, event, result)
    return result


# -- methods with a meaning of their own


def _backward(m: Machine, op: Op, arguments: Arguments, event: t.Invoke | t.Call, at: Site) -> Value:
    run_backward(m, arguments, event.base if isinstance(event, t.Invoke) else -1, at.site, at.name)
    return Value(kind=Kind.NONE)


def run_backward(m: Machine, arguments: Arguments, register: int, site: int, name: str) -> None:
    """Backward runs over a tensor, the first of the arguments, which a register holds."""
    arguments = arguments.under_names("gradient", "retain_graph", "create_graph", "inputs")
    value = arguments.positional[0]
    reading.read(m, value, site, "backward")
    for ref in value.refs:
        obj = m.state.object(ref)
        alone = arguments.keywords.get("gradient", Value(kind=Kind.NONE)).kind is Kind.NONE
        if alone:
            obj = obj._replace(scalar=Fact.YES)
        if obj.requires_grad is Fact.UNKNOWN:
            # Else the call raises. What is handed a gradient may be a leaf, which accumulates that.
            computed = alone and obj.leaf is Fact.UNKNOWN
            obj = obj._replace(requires_grad=Fact.YES, leaf=Fact.NO if computed else obj.leaf)
        m.state.set_object(ref, obj)
    if not severed.note(m, value, register, site, name):
        switched_on.note(m, register, site, name)
    copied_terms.note(m, register, site)
    grads.backward(m, value, site, arguments, name)
    terms.note(m, register, site)


def _requires_grad(m: Machine, op: Op, arguments: Arguments, event: t.Invoke | t.Call, at: Site) -> Value:
    wanted: bool | None = True
    values = [*arguments.positional[1:], *arguments.keywords.values()]
    if values:
        wanted = values[0].const if isinstance(values[0].const, bool) else None
    for ref in arguments.positional[0].refs:
        if not grads.note_switched(m, ref, wanted, at.site, at.name):
            attribute_stores.set_requires_grad(m, ref, wanted)
            frozen.note_loop(m, wanted, at.site)
    return arguments.positional[0]


def _retain_grad(m: Machine, op: Op, arguments: Arguments, event: t.Invoke | t.Call, at: Site) -> Value:
    grads.retain_grad(m, arguments.positional[0])
    return Value(kind=Kind.NONE)


def _to(m: Machine, op: Op, arguments: Arguments, event: t.Invoke | t.Call, at: Site) -> Value:
    result = operations.apply(m, op, arguments, at)
    _note_pure(m, op, event, at.name, at.op, arguments.positional[0], arguments)
    return transfers.to_host(m, arguments, result, event, at.name)


def _copy(m: Machine, op: Op, arguments: Arguments, event: t.Invoke | t.Call, at: Site) -> Value:
    numbers.note_method(m, at.op, arguments, at.site, at.name)
    slots.field_read(m, arguments.positional[0].root, event.site, "argument", at.op)
    result = operations.apply(m, op, arguments, at)
    transfers.into_host(m, arguments, event, at.name)
    return result


def _clone(m: Machine, op: Op, arguments: Arguments, event: t.Invoke | t.Call, at: Site) -> Value:
    slots.field_read(m, arguments.positional[0].root, event.site, "argument", at.op)
    result = operations.apply(m, op, arguments, at)
    _note_pure(m, op, event, at.name, at.op, arguments.positional[0], arguments)
    return result


_TENSOR_METHODS = {
    "backward": _backward,
    "requires_grad_": _requires_grad,
    "retain_grad": _retain_grad,
    "detach_": detaching.in_place,
    "to": _to,
    "copy_": _copy,
}
ALSO_FUNCTIONS = frozenset({"torch.detach_"})
"""Functions of torch that do what one of these methods does to their first argument."""
