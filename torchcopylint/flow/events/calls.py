"""Calls: who is called, and with what."""

from __future__ import annotations

from torchcopylint.flow import tape as t
from torchcopylint.flow.autograd import distributions, unknowns
from torchcopylint.flow.events import functions, methods, properties
from torchcopylint.flow.graphs import callbacks, two_modes
from torchcopylint.flow.interprocedural import applying, attributes, class_bodies, partials
from torchcopylint.flow.library import custom
from torchcopylint.flow.model import (
    ANY_ELEMENT,
    ARCHIVE,
    BUFFERS,
    CONTAINERS,
    FETCHING,
    FOREIGN,
    LOCAL,
    UNKNOWN,
    Kind,
    Object,
    Slot,
    Sure,
    Value,
)
from torchcopylint.flow.networks import chains, layers, making, modules, neighbours
from torchcopylint.flow.program import generators, ownership
from torchcopylint.flow.references import AppliedReference, ClassReference, FunctionReference, OneOf, Super
from torchcopylint.flow.running import special
from torchcopylint.flow.running.machine import Machine, handles
from torchcopylint.flow.storages import conversions, memory_given, queues, reading, slots, transfers
from torchcopylint.flow.tape import Dotted
from torchcopylint.flow.tapes import callees, pictures, uses
from torchcopylint.flow.values import imports, kinds, memory, naming, packages
from torchcopylint.flow.values.sites import Arguments
from torchcopylint.flow.values.state import kind_of
from torchcopylint.knowledge import table


def gather(m: Machine, arguments: tuple[t.Argument, ...], first: list[Value] | None = None) -> Arguments:
    """The arguments of a call as values; a starred one stands for its elements, as far as they are known."""
    positional: list[Value] = list(first or [])
    keywords: dict[str, Value] = {}
    for argument in arguments:
        value = m.value(argument.register)
        if argument.keyword:
            keywords[argument.keyword] = value
        elif argument.stars == 1:
            positional += _spread(m, value)
        elif argument.stars == 2:
            known, whole = _named(m, value)
            keywords |= known if whole else {**known, "**": value}
        else:
            positional.append(value)
    return Arguments(positional, keywords)


def _spread(m: Machine, value: Value) -> list[Value]:
    spread = []
    for ref in value.refs:
        held = m.state.slot_names(ref)
        if m.state.object(ref).kind in CONTAINERS and held:
            spread += [slots.slot_value(m, slot) for slot in sorted(held, key=_place)]
    return spread or [value]


def _named(m: Machine, value: Value) -> tuple[dict[str, Value], bool]:
    """What a dictionary that is passed by `**` passes under which names, and whether that is all that it passes."""
    if len(value.refs) != 1 or m.state.object(value.refs[0]).kind is not Kind.DICT:
        return {}, False
    ref = value.refs[0]
    obj = m.state.object(ref)
    held = [slot for slot in m.state.slot_names(ref) if slot[1].startswith("['")]
    surely = [slot for slot in held if not _is_put_sometimes(m, slot)]
    all_told = len(held) == len(surely) == len(m.state.slot_names(ref)) and obj.owner in ("", LOCAL)
    return {slot[1][2:-2]: slots.slot_value(m, slot) for slot in surely}, all_told and ref not in m.holding.shallow_of


def _is_put_sometimes(m: Machine, slot: Slot) -> bool:
    """Whether an entry was put into its dictionary on some paths only."""
    cell = m.state.cell(slot)
    return cell is None or (cell.site >= 0 and uses.on_some_paths(m, cell.site))


def _place(slot: Slot) -> tuple[bool, int, str]:
    """Sorts elements as they stand; those that are not told apart have been put behind the others."""
    number = slot[1][1:-1]
    return (slot[1] == ANY_ELEMENT, int(number) if number.isdecimal() else 0, number)


@handles(t.Call)
def _call(m: Machine, event: t.Call) -> None:
    function = m.value(event.function)
    bound = _bound_method(m, event) if function.const is None else None
    if bound is not None:
        _invoke(m, bound)
        return
    arguments = gather(m, event.arguments)
    name = naming.text_of(m, event.function)
    if (m.holding.flights or m.holding.queues) and transfers.waits(name):
        transfers.land(m)
        queues.forget(m)
    m.set(event.out, call_value(m, function, arguments, event, name))


def _bound_method(m: Machine, event: t.Call) -> t.Invoke | None:
    """The call of a method that has been given a name of its own: `keep = losses.append`, and then `keep(loss)`."""
    method = uses.method_named(m, event.function)
    if method is None:
        return None
    objects = [m.state.object(ref) for ref in m.value(method.base).refs]
    known = bool(objects) and all(
        (obj.kind in CONTAINERS and method.name in _OF_CONTAINERS)
        or (obj.kind in (Kind.INSTANCE, Kind.MODULE) and m.world.method_of(obj, method.name) is not None)
        for obj in objects
    )
    return t.Invoke(event.out, method.base, method.name, event.arguments, event.site) if known else None


_OF_CONTAINERS = frozenset({"append", "extend", "insert", "add", "appendleft", "setdefault", "update", "get", "pop"})


@handles(t.Invoke)
def _invoke(m: Machine, event: t.Invoke) -> None:
    base = m.value(event.base)
    if (m.holding.flights or m.holding.queues) and transfers.waits(event.name):
        transfers.land(m)
        queues.forget(m)
    elif m.holding.queues:
        queues.answered(m, event.name)
    if not base.refs and base.const is None and base.kind in (Kind.UNKNOWN, Kind.NONE):
        # `None` has no methods: what we took for it is something else.
        base = memory.unknown(m, event.site, naming.text_of(m, event.base), "receiver")
    if isinstance(base.const, Dotted):
        called = imports.member(m, base.const, event.name)
        arguments = gather(m, event.arguments)
        text = f"{naming.text_of(m, event.base)}.{event.name}"
        m.set(event.out, call_value(m, called, arguments, event, text))
        return
    arguments = gather(m, event.arguments, [base])
    if base.const.__class__ is Super:
        callbacks.note_super(m, event)
        m.set(event.out, modules.call_super(m, event, arguments))
        return
    if base.const.__class__ is ClassReference:
        m.set(event.out, _class_method(m, base.const, event, arguments))
        return
    if not base.refs:
        m.set(event.out, methods.of_plain(m, base, event, arguments))
        return
    if base.root.__class__ is tuple:
        two_modes.note_called(m, base, event.site, event.name)
    results = []
    kinds_of_it = memory.by_kind(m, base)
    if len(kinds_of_it) > 1 and event.name == "values" and any(obj.kind in CONTAINERS for _, obj in kinds_of_it):
        # Only sparse tensors have such a method: where it may be a dictionary, it is that here.
        kinds_of_it = [(single, obj) for single, obj in kinds_of_it if obj.kind not in BUFFERS]
    for single, obj in m.each(kinds_of_it):
        if len(kinds_of_it) > 1 and obj.kind not in (Kind.MODULE, Kind.INSTANCE):
            m.beside = frozenset(single.refs), tuple(ref for ref in base.refs if ref not in single.refs)
        if obj.kind in (Kind.MODULE, Kind.INSTANCE) and _is_field(m, single, obj, event.name):
            rest = Arguments(arguments.positional[1:], arguments.keywords)
            results.append(_call_field(m, single, event, rest))
        elif (got := _property_of(m, single, event)) is not None:
            rest = Arguments(arguments.positional[1:], arguments.keywords)
            text = f"{naming.text_of(m, event.base)}.{event.name}"
            results.append(call_value(m, got, rest, event, text))
        else:
            bound = Arguments([single, *arguments.positional[1:]], arguments.keywords)
            results.append(methods.call(m, single, event, bound))
        m.returned_beside.update(results[-1].refs)
    m.returned_beside.clear()
    if len(kinds_of_it) > 1:
        m.beside = frozenset(), ()
    m.set(event.out, slots.join_values(results))


def _property_of(m: Machine, base: Value, event: t.Invoke) -> Value | None:
    """What `base.name(...)` calls if `name` is a property, or the class of the object."""
    if event.name == "__class__":
        made = class_bodies.of_instance(m, base)
        return made if made.const is not None else None
    if not m.world.is_method(event.name):
        return None
    return properties.called(m, base.refs[0], event.name, event.site, f"{naming.text_of(m, event.base)}.{event.name}")


def _is_field(m: Machine, base: Value, obj: Object, name: str) -> bool:
    """Whether `base.name(...)` calls something stored in a field, such as a layer, rather than a method."""
    if m.state.cell((base.refs[0], f".{name}")) is not None:
        return True
    local = m.world.local_class(obj.type)
    if local is not None and m.world.method(local, name) is not None:
        return False
    named = kinds.named_model(name) and name not in modules.REGISTERING
    return named or m.world.field_of(obj.type, name) is not None


def _call_field(m: Machine, base: Value, event: t.Invoke, arguments: Arguments) -> Value:
    text = naming.text_of(m, event.base)
    held = attributes.attribute(m, base, event.name, event.site, text)
    if (
        kind_of(base, m.state) is Kind.MODULE
        and kind_of(held, m.state) is Kind.UNKNOWN
        and kinds.named_part(event.name)
    ):
        memory.refine(m, held, Kind.MODULE, Sure.HINT)
    return call_value(m, held, arguments, event, f"{text}.{event.name}")


def call_value(m: Machine, function: Value, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    """The result of calling a value."""
    if isinstance(function.const, Dotted):
        return call_dotted(m, function.const, arguments, event, name)
    if function.const.__class__ is FunctionReference:
        return applying.call(m, function.const, arguments, event.site, name)
    if isinstance(function.const, AppliedReference):
        return custom.apply(m, function.const.number, arguments, event.site, name)
    if isinstance(function.const, ClassReference):
        return making.instantiate(m, function.const, arguments, event.site, name)
    if isinstance(function.const, OneOf):
        return _call_one_of(m, function.const, arguments, event, name)
    if len(function.refs) == 1:
        later = partials.called(m, function, arguments)
        if later is not None:
            return call_value(m, *later, event, name)
        if function.root.__class__ is tuple:
            two_modes.note_called(m, function, event.site)
        obj = m.state.object(function.refs[0])
        if obj.kind is Kind.MODULE:
            return layers.call_module(m, function, arguments, event.site, name)
        if obj.kind is Kind.INSTANCE:
            return modules.call_instance(m, function, arguments, event.site, name, "__call__")
        if obj.kind is Kind.UNKNOWN and (kinds.named_model(name) or kinds.named_rival(name)):
            memory.refine(m, function, Kind.MODULE, Sure.HINT)
            return layers.call_module(m, function, arguments, event.site, name)
    elif function.refs and all(m.state.object(ref).kind is Kind.MODULE for ref in function.refs):
        if function.root.__class__ is tuple:
            two_modes.note_called(m, function, event.site)
        made = unknowns.call_unknown(m, arguments, event.site, name)
        return layers.output_of_one(m, function, arguments, made, event.site, name)
    if isinstance(event, t.Call):
        for number in callees.handed_out(m, event.function):
            m.world.called(number, m.unit.number, m.state.mode)
    return unknowns.call_unknown(m, arguments, event.site, name)


def _call_one_of(m: Machine, function: OneOf, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    """A call of one of several functions: each of them is an arm of a condition that nobody knows."""
    results, deltas = [], []
    for option in m.each(function.options):
        m.state.fork()
        results.append(call_value(m, Value(kind=Kind.FUNCTION, const=option), arguments, event, name))
        deltas.append(m.state.take())
    m.state.merge(deltas)
    return slots.join_values(results)


def _call_bound(m: Machine, dotted: Dotted, arguments: Arguments, event: t.Call | t.Invoke) -> Value:
    """A method of an object is called by another name than its own, the object being the first argument."""
    receiver = event.base if isinstance(event, t.Invoke) else event.function
    invoked = t.Invoke(event.out, receiver, dotted.rpartition(".")[2], event.arguments, event.site)
    result = methods.call(m, arguments.positional[0], invoked, arguments)
    for ref in result.refs:
        # What stands in front of the brackets is no name of the object that the method belongs to.
        obj, owner = m.state.object(ref), m.state.object(arguments.positional[0].refs[0])
        m.state.set_object(ref, obj._replace(text=f"{owner.text}.{invoked.name}()"))
    return result


_RECOMPUTING = frozenset({"torch.utils.checkpoint.checkpoint"})
_OF_RECOMPUTING = frozenset(
    {"use_reentrant", "preserve_rng_state", "context_fn", "determinism_check", "debug", "early_stop"}
)
"""Keywords of these functions, which are not handed on."""


def _recomputed(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> None:
    """`checkpoint(block, x)` calls what it is given with the rest, and keeps nothing of what that saves: of the result
    it is known that it was computed."""
    rest = {key: value for key, value in arguments.keywords.items() if key not in _OF_RECOMPUTING}
    call_value(m, arguments.positional[0], Arguments(arguments.positional[1:], rest), event, name)


def call_dotted(m: Machine, dotted: Dotted, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    """A call of something imported or built in."""
    if dotted in generators.CONSUMING:
        for value in (*arguments.positional[:2], arguments.keywords.get("parameters", UNKNOWN)):
            generators.note_taken(m, value, event.site)
    conversions.call(m, dotted, arguments, event, name)
    callbacks.note_pack(m, dotted, event)
    if dotted in ownership.REPARAMETRISING:
        given = [argument.register for argument in event.arguments if not argument.stars]
        ownership.note_reparametrised(m, arguments, naming.spelling(m, given[0]) if given else "", event.site)
    if dotted == "torch.nn.utils.vector_to_parameters" and len(event.arguments) == 2:
        memory_given.note(m, event.site, arguments.at(0), naming.spelling(m, event.arguments[1].register))
    if dotted.startswith(partials.METHOD) and arguments.positional and arguments.positional[0].refs:
        return _call_bound(m, dotted, arguments, event)
    if dotted in _RECOMPUTING and arguments.positional:
        _recomputed(m, arguments, event, name)
    meaning = special.SPECIAL.get(dotted)
    if meaning is not None:
        return meaning(m, arguments, event, name)
    if dotted.startswith("torch.nn.init.") and "calculate_" not in dotted:
        return functions.initialise(m, arguments, event.site, name)
    if dotted.startswith(distributions.PREFIX) and dotted.rpartition(".")[2][:1].isupper():
        return distributions.make(m, arguments, event.site, name)
    op = table.function(dotted)
    if op is not None:
        if dotted in conversions.LEGACY:
            arguments = conversions.of_no_guess(m, arguments, event.site)
        of_tensors = dotted.startswith("torch.Tensor.") or dotted in methods.ALSO_FUNCTIONS
        if of_tensors and arguments.positional:
            return methods.call_tensor_method(m, op, arguments, event, dotted.rpartition(".")[2])
        result = functions.call_known(m, op, arguments, event, name)
        if op.result == "array":
            conversions.note_layout(m, dotted, arguments, event, result)
            pictures.note(m, dotted, event, result)
        return result
    if dotted.startswith("math."):
        for value in (*arguments.positional, *arguments.keywords.values()):
            reading.read(m, value, event.site, "look", name)
        return Value(kind=Kind.NUMBER)
    if table.module_class(dotted) is not None:
        made = making.make_module(m, dotted, arguments, event.site, name)
        if table.canonical(dotted) == chains.SEQUENTIAL:
            neighbours.check(m, event)
        return made
    if kinds.is_optimizer_class(dotted):
        return making.make_optimizer(m, dotted, arguments, event.site, name)
    local = m.world.class_named(dotted)
    if local is not None:
        return making.instantiate(m, ClassReference(local), arguments, event.site, name)
    if kinds.makes_model(dotted):
        return memory.fresh(m, event.site, Object(Kind.MODULE, Sure.LIKELY, text=f"{name}(...)"))
    result = unknowns.call_unknown(m, arguments, event.site, name)
    flag = _origin(dotted)
    for ref in result.refs if flag else ():
        obj = m.state.object(ref)
        if obj.kind is Kind.UNKNOWN:
            m.state.set_object(ref, obj._replace(flags=obj.flags | {flag}))
    return result


def _origin(dotted: str) -> str:
    """What the package that a function belongs to says of what it returns: a flag, or nothing."""
    package = dotted.partition(".")[0]
    if package in kinds.OTHER_FRAMEWORKS:
        return FOREIGN
    if dotted == "numpy.load":
        return ARCHIVE
    # Who asks an object of an unknown class calls its `__getitem__`.
    return FETCHING if package in packages.FETCHING or dotted.rpartition(".")[2][:1].isupper() else ""


def _note_forward(m: Machine, reference: ClassReference, arguments: Arguments) -> None:
    """`Function.apply(...)` hands its arguments to `forward`, behind the context."""
    unit = m.world.method(reference.number, "forward")
    if unit is not None:
        names = [parameter.name for parameter in m.world.unit(unit).parameters[1:]]
        m.world.note_arguments(m, unit, dict(zip(names, arguments.positional[1:], strict=False)))


_TAKING_CLASS = frozenset({"__class_getitem__", "__init_subclass__"})
"""Methods that are handed the class without a decorator."""


def _class_method(m: Machine, reference: ClassReference, event: t.Invoke, arguments: Arguments) -> Value:
    name = f"{naming.text_of(m, event.base)}.{event.name}"
    if event.name == "apply" and m.world.is_function_class(reference.number):
        given = Arguments(arguments.positional[1:], arguments.keywords)
        return custom.apply(m, reference.number, given, event.site, name)
    unit = m.world.method(reference.number, event.name)
    if unit is None:
        if event.name == "apply" and m.world.is_function_class(reference.number):
            _note_forward(m, reference, arguments)
        return unknowns.call_unknown(m, arguments, event.site, naming.text_of(m, event.out))
    of_class = event.name in _TAKING_CLASS or "classmethod" in m.world.decorators(unit)
    # `Base.__init__(self, size)` passes the object itself.
    positional = arguments.positional if of_class else arguments.positional[1:]
    return applying.call(m, FunctionReference(unit), Arguments(positional, arguments.keywords), event.site, name)
