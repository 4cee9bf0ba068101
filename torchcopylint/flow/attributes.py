"""Attributes: reading and storing them, `.data`, `.grad` and `requires_grad` above all."""

from __future__ import annotations

from torchcopylint.flow import (
    aliasing,
    callbacks,
    children,
    conversions,
    devices,
    dtypes,
    frozen,
    grads,
    held_functions,
    idioms,
    imports,
    inquiries,
    keeping,
    kinds,
    layout,
    lost,
    memory,
    naming,
    ownership,
    reading,
    rebinding,
    records,
    sharing,
    slots,
    sums,
    training_fields,
    writing,
)
from torchcopylint.flow import tape as t
from torchcopylint.flow.classes import APPENDED
from torchcopylint.flow.exclusion import exclude
from torchcopylint.flow.facts import AttributeSet, DataAccess, GradientRead, VolatileUsed
from torchcopylint.flow.machine import Machine, handles
from torchcopylint.flow.model import (
    ANY_ELEMENT,
    CONTAINERS,
    FIELD,
    GLOBAL,
    GRADLESS,
    LOCAL,
    NO_TENSOR,
    OUTPUT,
    PLACEHOLDER,
    REGISTERED,
    RETAINS,
    SWITCHED,
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
    bounded,
)
from torchcopylint.flow.sites import Arguments
from torchcopylint.flow.tape import Dotted
from torchcopylint.knowledge import table

_MISSPELT = frozenset(
    {"require_grad", "requires_gard", "required_grad", "requires_grads", "requiers_grad", "require_grads"}
)
_RESULTS = {"values": 0, "indices": 1}
"""What `torch.max(x, dim)`, `sort`, `topk` and the like return goes by these names as well."""


def load(m: Machine, event: t.Attribute) -> None:
    """An attribute is read that is no property of a class of the file."""
    base = m.value(event.base)
    if base.marks:
        aliasing.note_use(m, base, event.site, "look")
    m.set(event.out, attribute(m, base, event.name, event.site, naming.text_of(m, event.base), event.out))


def attribute(m: Machine, base: Value, name: str, site: int, text: str, out: int = -1) -> Value:
    """The value of `base.name`; `text` is the base as the user wrote it."""
    if isinstance(base.const, Dotted):
        return imports.member(m, base.const, name)
    if not base.refs:
        return UNKNOWN if base.kind is not Kind.NONE else Value()
    return slots.join_values([_of_object(m, base, ref, name, site, text, out) for ref in m.each(base.refs)])


def _of_object(m: Machine, base: Value, ref: int, name: str, site: int, text: str, out: int) -> Value:
    obj = m.state.object(ref)
    if obj.kind is Kind.UNKNOWN:
        found = kinds.evidence(name, called=False)
        if found == "tensor":
            memory.refine(m, Value((ref,)), Kind.TENSOR, Sure.LIKELY)
            m.note_evidence(Value((ref,)), frozenset({name}))
        elif found == "module":
            memory.refine(m, Value((ref,)), Kind.MODULE, Sure.LIKELY)
        elif kinds.named_model(obj.text) or (name in kinds.PARAMETER_NAMES and _is_part(obj)):
            # So that its parts are parts of it: `model.fc.weight` is written where the model is trained.
            memory.refine(m, Value((ref,)), Kind.MODULE, Sure.HINT)
        obj = m.state.object(ref)
    if NO_TENSOR in obj.flags and obj.kind in TENSORS:
        # On this path it is something else, and so is its `.data`.
        obj = obj._replace(kind=Kind.UNKNOWN, sure=Sure.NOT)
    if obj.kind in TENSORS or (obj.kind is Kind.UNKNOWN and name == "data"):
        return _of_tensor(m, base, ref, obj, name, site, text, out)
    if obj.kind is Kind.ARRAY:
        return _of_array(m, base, ref, name, site)
    if obj.kind is Kind.OPTIMIZER and name == "param_groups":
        return _param_groups(m, ref, site)
    if obj.kind is Kind.TUPLE and name in _RESULTS:
        return slots.element(m, Value((ref,), obj.kind, None, base.marks, base.root), _RESULTS[name], site, text)
    slot = (ref, f".{name}")
    if m.state.cell(slot) is None:
        function = held_functions.in_field(m, obj.type, name)
        if function is not None:
            return function
        value = slots.slot_value(m, slot, _field(m, ref, obj, name))
        _bind_element(m, value, obj, name)
        held_functions.bind(m, value, obj.type, name)
    else:
        value = slots.slot_value(m, slot)
    if value.root is not None and obj.owner == "self":
        cell = m.state.cell(slot)
        if cell is not None and cell.site == -1:
            m.initial_fields.setdefault(name, slot)
    return value


def _is_part(obj: Object) -> bool:
    """Whether an object is a field of a module."""
    return any(share.how is How.FIELD for share in obj.shares)


def _bind_element(m: Machine, field: Value, holder: Object, name: str) -> None:
    """What stands in a container that a field holds is of the kind that the class has put there."""
    if not field.refs or m.state.object(field.refs[0]).kind not in CONTAINERS:
        return
    owner = holder.type
    known = m.world.element_of(owner, name)
    if known is None and holder.owner == "self":
        # Who makes an object sees by himself what he has put into it.
        name += APPENDED
        known = m.world.element_of(owner, name)
    if known is None or known.kind is Kind.UNKNOWN:
        return
    ref = field.refs[0]
    inner = m.number("slot", (ref, ANY_ELEMENT))
    text = f"{m.state.object(ref).text}[...]"
    shares = (Share(inner, How.OWN, -1, inner),)
    made = known._replace(shares=shares, text=text, owner=FIELD, flags=frozenset({PLACEHOLDER}))
    m.state.set_object(inner, made)
    memory.bind(m, (ref, ANY_ELEMENT), Value((inner,), known.kind), -1)
    for slot, part in m.world.parts_of_element(owner, name).items() if known.kind is Kind.TUPLE else ():
        held = m.number("slot", (inner, slot))
        own = (Share(held, How.OWN, -1, held),)
        m.state.set_object(held, part._replace(shares=own, text=text + slot, owner=FIELD))
        memory.bind(m, (inner, slot), Value((held,), part.kind), -1)


def _field(m: Machine, ref: int, obj: Object, name: str) -> Object:
    """What an untouched field is, by the class of its object and by its own name."""
    known = m.world.field_of(obj.type, name)
    region = (Part("field", name),)
    switched = ref | 1 in m.switched or SWITCHED in obj.flags
    if known is None and obj.kind is Kind.MODULE:
        row = table.module_class(obj.type) if obj.type else None
        if row is not None and name in row.parameters:
            trained = Fact.NO if obj.requires_grad is Fact.NO else Fact.UNKNOWN if switched else Fact.YES
            known = Object(Kind.PARAMETER, obj.sure, leaf=Fact.YES, requires_grad=trained)
        elif row is not None and name in row.buffers:
            known = Object(Kind.TENSOR, obj.sure, leaf=Fact.YES, requires_grad=Fact.NO)
    if known is None and obj.kind is Kind.INSTANCE:
        known = records.declared(m, obj.type, name)
    if known is None and (_is_property(m, obj, name) if obj.type else m.world.is_method(name)):
        # The class, or of what has none that is known, some class of the file, has a property of that name.
        known = Object()
    if known is None and name in kinds.PARAMETER_NAMES and obj.kind in (Kind.MODULE, Kind.UNKNOWN):
        trained = Fact.NO if obj.requires_grad is Fact.NO else Fact.UNKNOWN if switched else Fact.LIKELY
        known = Object(Kind.PARAMETER, Sure.LIKELY, leaf=Fact.YES, requires_grad=trained)
    if known is None and name in kinds.BUFFER_NAMES and obj.kind in (Kind.MODULE, Kind.UNKNOWN):
        known = Object(Kind.TENSOR, Sure.LIKELY, leaf=Fact.YES, requires_grad=Fact.NO)
    known = children.marked(m.world, obj.type, name, known) if known else Object()
    local = m.world.local_class(obj.type) if known.kind is Kind.OPTIMIZER else None
    if local is not None and (moved := training_fields.shares_of(m, ref, local, name)):
        own = m.number("slot", (ref, f".{name}"))
        return known._replace(shares=(*moved, Share(own, How.OWN, -1, own)))
    if m.world.is_switched(obj.type, name) or (switched and known.kind is Kind.MODULE):
        known = known._replace(flags=known.flags | {SWITCHED})
    if obj.kind is Kind.MODULE and known.kind in (*TENSORS, Kind.MODULE, Kind.UNKNOWN):
        # A parameter or submodule is a part of what its module trains.
        own = m.number("slot", (ref, f".{name}"))
        shares = [Share(own, How.OWN, -1, own)]
        shares += [Share(s.storage, How.FIELD, -1, ref, (*s.region, *region)) for s in obj.shares]
        return known._replace(shares=tuple(shares))
    return known


def _of_tensor(m: Machine, base: Value, ref: int, obj: Object, name: str, site: int, text: str, out: int) -> Value:
    single = Value((ref,), obj.kind, None, base.marks, base.root)
    if name == "data":
        return _data(m, single, obj, site, text, out)
    if name == "grad":
        return _grad(m, single, obj, site, text, out)
    if name == "volatile":
        m.fact(VolatileUsed(site, f"{text}.{name}", obj.sure))
    op = table.tensor_property(name)
    if op is None:
        return slots.slot_value(m, (ref, f".{name}"))
    if op.shares in ("view", "same", "maybe", "unversioned"):
        made = Object(Kind.TENSOR, obj.sure, requires_grad=obj.requires_grad, graph=obj.graph, text=f"{text}.{name}")
        made = made._replace(leaf=Fact.NO if obj.requires_grad > 0 else obj.leaf, dtype=obj.dtype)
        made = layout.permuted(made, name, Arguments([single], {}), obj)
        return memory.alias(m, single, site, How.VIEW, made, tag=name)
    if op.result in ("number", "bool"):
        return Value(kind=Kind.NUMBER)
    return Value(kind=Kind.OTHER)


def _data(m: Machine, base: Value, obj: Object, site: int, text: str, out: int) -> Value:
    if site >= 0 and not inquiries.is_inquiry(m, out):
        # Where a summary leads through `.data`, it was read in the function.
        m.fact(
            DataAccess(
                site,
                text,
                "read",
                "",
                text.endswith(".grad"),
                obj.scalar,
                obj.kind,
                data_evidence(m, obj, text),
                m.world.context(m),
                kinds.named_loss(text),
                _is_buffer(obj, text),
                _is_unheld(m, base, obj),
            )
        )
        m.data_reads[out] = site
    made = Object(
        obj.kind if obj.kind is not Kind.PARAMETER else Kind.TENSOR,
        obj.sure,
        leaf=Fact.YES,
        requires_grad=Fact.NO,
        scalar=obj.scalar,
        dtype=obj.dtype,
        config=devices.at(devices.place_of(obj)),
        text=f"{text}.data",
    )
    return memory.alias(m, base, site, How.DATA, made, tag="data")


def data_evidence(m: Machine, obj: Object, text: str) -> Sure:
    """How sure it is that `.data` of an object is a tensor's: its kind, else what its name hints at."""
    if obj.kind in TENSORS:
        return obj.sure
    if obj.kind is Kind.UNKNOWN and OUTPUT in obj.flags and not m.world.is_of_another_framework:
        # What a network returns and has a `.data` is a tensor, or a packed sequence, which nobody asks for `.data` so.
        return Sure.LIKELY
    if obj.kind is Kind.UNKNOWN and m.world.imports_torch and kinds.named_loss(text):
        return Sure.HINT
    return Sure.NOT


def _is_unheld(m: Machine, base: Value, obj: Object) -> bool:
    """Whether a tensor that takes no gradient has just been computed, and no name or slot holds its memory.

    Where there is a gradient to cut, `.detach()` would do it.
    """
    graphless = obj.requires_grad is Fact.NO or obj.dtype in (*dtypes.INTEGERS, dtypes.INTEGRAL)
    if base.root is not None or obj.kind is not Kind.TENSOR or not graphless:
        return False
    below = [share.storage for share in obj.shares]
    if any(m.state.object(s).owner not in ("", LOCAL) or m.state.object(s).kind is not Kind.TENSOR for s in below):
        return False
    return all(str(key).startswith("%") for storage in below for key, _ in m.state.holders_of(storage))


def _is_buffer(obj: Object, text: str) -> bool:
    untrained = obj.kind is not Kind.PARAMETER and obj.leaf is Fact.YES and obj.requires_grad is Fact.NO
    return REGISTERED in obj.flags or (untrained and text.rpartition(".")[2] in kinds.BUFFER_NAMES)


def _grad(m: Machine, base: Value, obj: Object, site: int, text: str, out: int) -> Value:
    ref = base.refs[0]
    lacking = _keeps_no_gradient(m, obj) or _has_no_gradient(m, obj, out)
    lacking = site >= 0 and lacking and not _may_retain(m, base)
    if lacking and not exclude(m, obj.site, site) and not inquiries.is_asserted_none(m, out):
        m.fact(GradientRead(site, text, obj.site, obj.text, obj.sure if obj.requires_grad is Fact.YES else Sure.LIKELY))
    rebinding.note_gradient_read(m, ref, obj, site)
    slot = (ref, ".grad")
    m.gradients.add(ref)
    if obj.leaf is obj.requires_grad is Fact.UNKNOWN:
        m.unexplained_gradients.add(ref)
    if m.state.cell(slot) is None:
        found = slots.slot_value(m, slot, Object(Kind.TENSOR, Sure.LIKELY, leaf=Fact.YES, requires_grad=Fact.NO))
        m.note_evidence(found, frozenset({"grad"}))
        return found
    return slots.slot_value(m, slot)


def _keeps_no_gradient(m: Machine, obj: Object) -> bool:
    computed = obj.leaf is Fact.NO and obj.requires_grad > 0 and obj.kind in TENSORS
    return computed and RETAINS not in obj.flags and not _may_be_a_leaf(m, obj)


def _has_no_gradient(m: Machine, obj: Object, out: int) -> bool:
    """Whether a gradient is worked with that is `None`, whatever the tensor was computed from.

    It either has a graph and is no leaf, or has none and requires no grad. That somebody asks for it shows that
    backward was to reach it.
    """
    used = m.consumer_of(out) if out >= 0 else None
    if not m.trains or not isinstance(used, t.Attribute | t.Invoke) or used.base != out:
        return False
    unknown = obj.kind in TENSORS and obj.leaf is obj.requires_grad is Fact.UNKNOWN and RETAINS not in obj.flags
    own = obj.owner in ("", LOCAL) and all(share.how is How.OWN for share in obj.shares)
    return unknown and own and any(event.site == obj.site for event in m.index.of(t.Operate))


def _may_retain(m: Machine, base: Value) -> bool:
    """Whether something is in a field that this unit has not set, and whoever set it may have called `retain_grad`."""
    cell = m.state.cell(base.root) if isinstance(base.root, tuple) else None
    if cell is None or cell.site != -1 or not isinstance(base.root, tuple):
        return False
    local = m.world.local_class(m.state.object(base.root[0]).type)
    if local is not None and not m.world.is_own_class(local):
        return True
    units = [unit for unit in m.world.program.units if local is None or unit.owner == local]
    return any(isinstance(e, t.Invoke) and e.name == "retain_grad" for unit in units for e in unit.definitions)


def _may_be_a_leaf(m: Machine, obj: Object) -> bool:
    """Whether a tensor is a leaf if it already was what it was converted to, and may well have been.

    What is kept in a field or a global is on the device where it is used, and what is not known to be of another dtype
    is mostly of this one.
    """
    if any(s.when == "when the dtype already matches" and m.state.object(s.of).leaf > 0 for s in obj.shares):
        return True
    moved = [s for s in obj.shares if "device" in s.when and m.state.object(s.of).leaf > 0]
    handed = any(devices.place_of(m.state.object(s.of)) == devices.HANDED for s in moved)
    return handed or any(m.state.object(s.storage).owner in (FIELD, GLOBAL) for s in moved)


def _of_array(m: Machine, base: Value, ref: int, name: str, site: int) -> Value:
    op = table.array_method(name)
    obj = m.state.object(ref)
    if op is not None and op.shares in ("view", "same", "maybe"):
        made = Object(Kind.ARRAY, obj.sure, dtype=obj.dtype, text=f"{obj.text}.{name}")
        return memory.alias(m, Value((ref,), obj.kind, None, base.marks, base.root), site, How.VIEW, made, tag=name)
    return Value(kind=Kind.OTHER)


def _param_groups(m: Machine, ref: int, site: int) -> Value:
    slot = (ref, ".param_groups")
    if m.state.cell(slot) is None:
        obj = m.state.object(ref)
        group = m.number("group", ref)
        each = (Part("each"),)
        shares = tuple(s._replace(how=How.PARAMETERS, of=ref, region=(*s.region, *each)) for s in obj.shares)
        m.state.set_object(group, Object(Kind.DICT, Sure.PROVEN, text="group"))
        parameters = m.number("group params", ref)
        m.state.set_object(parameters, Object(Kind.LIST, Sure.PROVEN, text="group['params']"))
        one = m.number("group param", ref)
        m.state.set_object(
            one,
            Object(
                Kind.PARAMETER,
                Sure.PROVEN,
                shares,
                leaf=Fact.YES,
                requires_grad=Fact.LIKELY,
                text="p",
                flags=frozenset({PLACEHOLDER}),
            ),
        )
        groups = m.number("groups", ref)
        m.state.set_object(groups, Object(Kind.LIST, Sure.PROVEN, text=f"{obj.text}.param_groups"))
        memory.bind(m, (groups, ANY_ELEMENT), Value((group,), Kind.DICT), -1)
        memory.bind(m, (group, "['params']"), Value((parameters,), Kind.LIST), -1)
        memory.bind(m, (parameters, ANY_ELEMENT), Value((one,), Kind.PARAMETER), -1)
        memory.bind(m, slot, Value((groups,), Kind.LIST), -1)
    return slots.slot_value(m, slot)


@handles(t.StoreAttribute)
def store(m: Machine, event: t.StoreAttribute) -> None:
    """An attribute is set, by an assignment or by its name."""
    base, value = m.value(event.base), m.value(event.value)
    text = naming.text_of(m, event.base)
    if event.name == "writeable":
        conversions.set_writeable(m, _flagged(m, event.base), value)
    for ref in base.refs:
        obj = m.state.object(ref)
        if obj.kind in TENSORS | {Kind.UNKNOWN} and event.name == "data" and not event.augmented:
            _assign_data(m, event, base, ref, value, text)
        elif event.name == "requires_grad" and not _is_property(m, obj, event.name):
            _set_requires_grad(m, event, ref, obj, value, text)
        elif event.name == "volatile" and obj.kind in TENSORS:
            m.fact(VolatileUsed(event.site, f"{text}.{event.name}", obj.sure))
        elif event.name in _MISSPELT and obj.kind in (*TENSORS, Kind.MODULE) and not _is_property(m, obj, event.name):
            m.fact(AttributeSet(event.site, text, event.name, _constant_text(value), obj.kind, obj.sure))
        _store_field(m, event, ref, obj, value)
        callbacks.note_context(m, obj, event.name, value, event.site)
        if ref == base.refs[0]:
            keeping.note_stored(m, event, ref, value)
    if not event.augmented and base.refs:
        sums.note(m, event, value)


def _flagged(m: Machine, register: int) -> Value:
    """The array that `array.flags` belongs to."""
    made = m.unit.definitions[register]
    return m.value(made.base) if isinstance(made, t.Attribute) and made.name == "flags" else UNKNOWN


def _is_property(m: Machine, obj: Object, name: str) -> bool:
    local = m.world.local_class(obj.type)
    return local is not None and (m.world.method(local, name) is not None or m.world.reads_field(local, name))


def _store_field(m: Machine, event: t.StoreAttribute, ref: int, obj: Object, value: Value) -> None:
    text = f"{naming.text_of(m, event.base)}.{event.name}"
    if obj.kind is Kind.MODULE:
        lost.note_parameter(m, event, ref, obj, value)
        ownership.note_field(m, event, value, text)
    if obj.kind is Kind.MODULE or obj.owner == "self":
        ownership.note_replaced(m, ref, Part("field", event.name), value, text, event.site)
    if obj.kind is Kind.MODULE:
        slots.register_module(m, ref, obj, event.name, value, event.site)
        frozen.note_part(m, ref, value)
    sharing.replaced(m, value, f"{naming.text_of(m, event.base)}.{event.name}")
    for held in value.refs:
        inner = m.state.object(held)
        if not inner.text or inner.text.endswith(")") or inner.text == "...":
            m.state.set_object(held, inner._replace(text=f"{obj.text}.{event.name}"))
    if not event.augmented:
        rebinding.note_store(m, (ref, f".{event.name}"), text, event.value, value, event.site)
        sharing.let_go(m, (ref, f".{event.name}"), value)
    slots.bind_slot(m, (ref, f".{event.name}"), value, event.site, weak=ref & 1 == 1)
    m.world.stored(m, obj, event.name, value)


def _assign_data(m: Machine, event: t.StoreAttribute, base: Value, ref: int, value: Value, text: str) -> None:
    obj = m.state.object(ref)
    sure = data_evidence(m, obj, text)
    gradient = text.endswith(".grad")
    context, buffer = m.world.context(m), _is_buffer(obj, text)
    if _is_own_conversion(m, ref, event.value):
        context = context or idioms.CONVERSION
    fact = DataAccess(event.site, text, "assign", "=", gradient, obj.scalar, obj.kind, sure, context, False, buffer)
    m.fact(fact._replace(given=naming.text_of(m, event.value)))
    shared = slots.lives_on(m, value, ref)
    if shared is not None and obj.kind in TENSORS:
        sharing.note(m, event.site, ref, value, text, shared, "assign", obj.sure)
    elif obj.kind is Kind.PARAMETER:
        sharing.note_again(m, event.site, value, text)
    if not _is_exchanged(m, value, event.site):
        reading.read(m, value, event.site, "operand", text)
    target = Value((ref,), obj.kind, None, base.marks, base.root)
    writing.write(m, target, event.site, op=".data =", form="assign", name=text, reads_old=False, versioned=False)
    _put_on(m, ref, value, event.site)


def _is_exchanged(m: Machine, value: Value, site: int) -> bool:
    """Whether what is put back was taken off its parameter by another `p.data = ...`: they are exchanged for a time."""
    written = {mark.write for mark in value.marks} & m.writes.keys()
    return any(m.writes[write].form == "assign" and write != site for write in written)


def _put_on(m: Machine, ref: int, value: Value, site: int) -> None:
    """A tensor that shared memory with others is on other memory from here on: it leaves them as they are."""
    obj = m.state.object(ref)
    mine = {share.storage for share in obj.shares}
    taken = [(source, share) for source in value.refs for share in m.state.object(source).shares]
    apart = all(share.how in memory.VIEWS | {How.DATA, How.ASSIGNED} for share in obj.shares)
    if ref & 1 or obj.kind is not Kind.TENSOR or not apart or not taken:
        return
    if not mine & {share.storage for _, share in taken}:
        put = tuple(share._replace(how=How.ASSIGNED, site=site, of=source) for source, share in taken)
        m.state.set_object(ref, obj._replace(shares=bounded(put)))


def _is_own_conversion(m: Machine, ref: int, register: int) -> bool:
    """Whether what is stored is an object's own `.data`, converted: `p.data = p.data.to(device)`, as modules do it."""
    made = m.unit.definitions[register] if register >= 0 else None
    converted = False
    while isinstance(made, t.Invoke) and made.name in sharing.CONVERSIONS:
        made, converted = m.unit.definitions[made.base], True
    return converted and isinstance(made, t.Attribute) and made.name == "data" and ref in m.value(made.base).refs


def _set_requires_grad(m: Machine, event: t.StoreAttribute, ref: int, obj: Object, value: Value, text: str) -> None:
    wanted = value.const if isinstance(value.const, bool) else None
    as_part = _is_part(obj) and kinds.named_layer(obj.text)
    unsure = obj.kind in (Kind.UNKNOWN, Kind.MODULE) and obj.sure < Sure.LIKELY
    if unsure and ((as_part and obj.kind is Kind.UNKNOWN) or _has_parameters(m, event)):
        obj = obj._replace(kind=Kind.MODULE, sure=Sure.LIKELY)
    if obj.kind is Kind.MODULE:
        if _keeps_option(m, event, obj):
            return
        m.fact(AttributeSet(event.site, text, "requires_grad", _constant_text(value), obj.kind, obj.sure))
        return
    # Of several elements that it may be, nobody knows which it is.
    apart = len({m.state.object(each).dtype for each in m.value(event.base).refs}) > 1
    if apart or not grads.note_switched(m, ref, wanted, event.site, text):
        set_requires_grad(m, ref, wanted)
        frozen.note_loop(m, wanted, event.site)


_OF_NO_TENSOR = frozenset(
    {"parameters", "named_parameters", "state_dict", "load_state_dict", "modules", "named_modules"}
)


def _has_parameters(m: Machine, event: t.StoreAttribute) -> bool:
    """Whether a unit asks what it switches `requires_grad` of for its parameters or its state: that is no tensor."""
    text = naming.text_of(m, event.base)
    asking = (one for one in m.index.of(t.Invoke) if one.name in _OF_NO_TENSOR)
    return any(naming.text_of(m, one.base) == text for one in asking)


def _keeps_option(m: Machine, event: t.StoreAttribute, obj: Object) -> bool:
    """Whether an object keeps an option under the name that it was told it by: `self.requires_grad = requires_grad`.

    Who wants to freeze something says so of that.
    """
    loaded = m.unit.definitions[event.value] if event.value >= 0 else None
    named = isinstance(loaded, t.Load) and loaded.name == event.name
    return obj.owner == "self" and named and any(p.name == event.name for p in m.unit.parameters)


def _constant_text(value: Value) -> str:
    return repr(value.const) if isinstance(value.const, bool) else "..."


def set_requires_grad(m: Machine, ref: int, wanted: bool | None) -> None:
    """`requires_grad` of an object is switched; `None` for a value that is not known."""
    if wanted is not True:
        m.switched.update(s.of | 1 for s in m.state.object(ref).shares if s.how is How.PARAMETERS)
    obj = m.state.object(ref)
    if obj.kind is Kind.UNKNOWN:
        obj = obj._replace(kind=Kind.TENSOR, sure=Sure.LIKELY)
    fact = Fact.UNKNOWN if wanted is None else Fact.YES if wanted else Fact.NO
    leaf = Fact.YES if obj.leaf is Fact.UNKNOWN and not obj.graph else obj.leaf
    if wanted and leaf is Fact.NO and obj.requires_grad is Fact.LIKELY:
        # Who asks for the gradient of what a network has returned may know that nothing in there requires one.
        leaf = Fact.UNKNOWN
    m.state.set_object(ref, obj._replace(requires_grad=fact, leaf=leaf, flags=obj.flags - {GRADLESS}))


@handles(t.DeleteItem)
def _delete_item(m: Machine, event: t.DeleteItem) -> None:
    if event.name:
        for ref in m.value(event.base).refs:
            sharing.let_go(m, (ref, f".{event.name}"), UNKNOWN)
            m.state.put((ref, f".{event.name}"), None)
    else:
        # `del kept[:]`; of `del kept[0]` nobody knows what is left.
        for ref in m.value(event.base).refs:
            if m.state.object(ref).kind is Kind.LIST:
                slots.clear(m, ref)
