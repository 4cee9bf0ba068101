"""Attributes: reading and storing them, `.data`, `.grad` and `requires_grad` above all."""

from __future__ import annotations

from torchcopylint.flow import tape as t
from torchcopylint.flow.autograd import frozen
from torchcopylint.flow.facts import DataAccess, GradientRead, VolatileUsed
from torchcopylint.flow.interprocedural import class_bodies, partials, records, unheld
from torchcopylint.flow.interprocedural.classes import APPENDED
from torchcopylint.flow.library import picking
from torchcopylint.flow.model import (
    ANY_ELEMENT,
    ARCHIVE,
    ARGUMENT,
    BUFFERS,
    COMPUTED_AT,
    CONTAINERS,
    FIELD,
    GLOBAL,
    GRADED,
    HANDED,
    HOOKED,
    INFERENCE,
    LOCAL,
    NO_TENSOR,
    OUTPUT,
    PARTED,
    PINNED,
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
    Slot,
    Sure,
    Value,
    join_objects,
)
from torchcopylint.flow.program import children, held_functions, training_fields
from torchcopylint.flow.references import AppliedReference, ClassReference
from torchcopylint.flow.running.machine import Machine
from torchcopylint.flow.storages import kept_while_trained, rebinding, slots
from torchcopylint.flow.tape import Dotted
from torchcopylint.flow.tapes import inquiries, layout, uses
from torchcopylint.flow.tapes.exclusion import exclude
from torchcopylint.flow.values import devices, imports, kinds, memory, naming
from torchcopylint.flow.values.sites import Arguments
from torchcopylint.knowledge import table

_RESULTS = {"values": 0, "indices": 1}
"""What `torch.max(x, dim)`, `sort`, `topk` and the like return goes by these names as well."""
_TURNED = frozenset({"T", "mT", "H", "mH"})
"""What is made anew at each look, be it of a tensor, an array or a frame: no field that keeps what it held."""


def load(m: Machine, event: t.Attribute) -> None:
    """An attribute is read that is no property of a class of the file."""
    base = m.value(event.base)
    if base.marks:
        kept_while_trained.note_use(m, base, event.site, "look")
    m.set(event.out, attribute(m, base, event.name, event.site, naming.text_of(m, event.base), event.out))


def attribute(m: Machine, base: Value, name: str, site: int, text: str, out: int = -1) -> Value:
    """The value of `base.name`; `text` is the base as the user wrote it."""
    if isinstance(base.const, Dotted):
        return imports.member(m, base.const, name)
    if base.const.__class__ is ClassReference and not base.refs:
        if name == "apply" and m.world.is_function_class(base.const.number):
            return Value(kind=Kind.FUNCTION, const=AppliedReference(base.const.number))
        return class_bodies.by_name(m, base.const.number, name, text)
    if not base.refs:
        return UNKNOWN if base.kind is not Kind.NONE else Value()
    refs = _having(m, base.refs, name) if len(base.refs) > 1 else base.refs
    return slots.join_values([_of_object(m, base, ref, name, site, text, out) for ref in m.each(refs)])


def _having(m: Machine, refs: tuple[int, ...], name: str) -> tuple[int, ...]:
    """Of what may be one of several modules, those that may have a weight: `net[0].weight` is none of a `ReLU`."""
    if name not in kinds.PARAMETER_NAMES | kinds.BUFFER_NAMES:
        return refs
    rows = [table.module_class(m.state.object(ref).type) if m.state.object(ref).type else None for ref in refs]
    found = [ref for ref, row in zip(refs, rows, strict=True) if row is None or name in (*row.parameters, *row.buffers)]
    return tuple(found) if any(row is not None and name in row.parameters for row in rows) else refs


def _of_object(m: Machine, base: Value, ref: int, name: str, site: int, text: str, out: int) -> Value:
    obj = m.state.object(ref)
    if obj.kind is Kind.UNKNOWN:
        found = kinds.evidence(name, called=False)
        if found == "tensor":
            memory.refine(m, Value((ref,)), Kind.TENSOR, Sure.LIKELY)
            m.note_evidence(Value((ref,)), frozenset({name}))
        elif found == "module":
            memory.refine(m, Value((ref,)), Kind.MODULE, Sure.LIKELY)
        elif kinds.named_model(obj.text) or (name in kinds.PARAMETER_NAMES and is_part(obj)):
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
    if obj.kind is Kind.UNKNOWN and name in _TURNED:
        return UNKNOWN
    if obj.kind is Kind.OPTIMIZER and name == "param_groups":
        return _param_groups(m, ref, site)
    if obj.kind is Kind.TUPLE and name in _RESULTS:
        return slots.element(m, Value((ref,), obj.kind, None, base.marks, base.root), _RESULTS[name], site, text)
    slot = (ref, f".{name}")
    if (same := _of_copied(m, ref, slot)) is not None:
        value = same
    elif m.state.cell(slot) is None:
        function = held_functions.in_field(m, obj.type, name)
        if function is not None:
            return function
        if site >= 0 and name in partials.BY_REFERENCE and obj.kind is Kind.MODULE:
            return partials.bound(m, Value((ref,), obj.kind, None, base.marks, base.root), name, site, text)
        value = slots.slot_value(m, slot, _field(m, ref, obj, name))
        _bind_element(m, value, obj, name)
        held_functions.bind(m, value, obj.type, name)
    else:
        value = slots.slot_value(m, slot)
    if value.root is not None and obj.owner == "self":
        cell = m.state.cell(slot)
        if cell is not None and cell.site == -1:
            m.fields.initial.setdefault(name, slot)
    return value


def _of_copied(m: Machine, ref: int, slot: Slot) -> Value | None:
    """What a field of a copy holds that nobody has looked at since, if that of the first object is the same still."""
    source = slots.copied_from(m, ref) if ref in m.holding.shallow_of and m.state.cell(slot) is None else None
    if source is None:
        return None
    copied, first = m.state.object(ref).site, m.state.object(source)
    held = m.state.cell((source, slot[1]))
    if held is not None and held.site > copied:
        return None
    value = attribute(m, Value((source,), first.kind), slot[1][1:], -1, first.text)
    if not value.refs:
        return None
    slots.bind_slot(m, slot, value._replace(root=None), copied)
    return slots.slot_value(m, slot)


def is_part(obj: Object) -> bool:
    """Whether an object is a field of a module."""
    return any(share.how is How.FIELD for share in obj.shares)


def _bind_element(m: Machine, field: Value, holder: Object, name: str) -> None:
    """What stands in a container that a field holds is of the kind that the class has put there."""
    if not field.refs or m.state.object(field.refs[0]).kind not in CONTAINERS:
        return
    owner = holder.type
    known = m.world.element_of(owner, name)
    # Who makes an object sees by himself what he has put into it.
    added = m.world.element_of(owner, name + APPENDED) if holder.owner in ("self", ARGUMENT) else None
    if known is None:
        name += APPENDED
        known = added
    elif added is not None and added.kind is not known.kind:
        known = join_objects(known, added)
    # What an unknown network returned in inference mode is no less an inference tensor; and of what `numpy.load`
    # returns, a method shows that it is an array. Pinned memory stays pinned.
    flags = known.flags & {ARCHIVE, HANDED, INFERENCE, OUTPUT, PINNED} if known is not None else frozenset[str]()
    flags = flags if flags != {OUTPUT} else frozenset()
    if known is None or (known.kind is Kind.UNKNOWN and not flags):
        return
    ref = field.refs[0]
    inner = m.number("slot", (ref, ANY_ELEMENT))
    text = f"{m.state.object(ref).text}[...]"
    shares = (Share(inner, How.OWN, -1, inner),)
    if known.kind is Kind.PARAMETER:
        # Each time that somebody goes through them, it is all of them.
        shares = (Share(ref, How.PARAMETERS, -1, ref, (Part("each"),)),)
    made = known._replace(shares=shares, text=text, owner=FIELD, flags=flags | {PLACEHOLDER})
    m.state.set_object(inner, made)
    memory.bind(m, (ref, ANY_ELEMENT), Value((inner,), known.kind), -1)
    for slot, part in m.world.parts_of_element(owner, name).items() if known.kind in PARTED else ():
        held = m.number("slot", (inner, slot))
        own = (Share(held, How.OWN, -1, held),)
        m.state.set_object(held, part._replace(shares=own, text=text + slot, owner=FIELD))
        memory.bind(m, (inner, slot), Value((held,), part.kind), -1)


def _field(m: Machine, ref: int, obj: Object, name: str) -> Object:
    """What an untouched field is, by the class of its object and by its own name."""
    known = m.world.field_of(obj.type, name)
    region = (Part("field", name),)
    switched = ref | 1 in m.switches.parameters or SWITCHED in obj.flags
    if known is None and obj.kind is Kind.MODULE:
        row = _row(m, obj)
        if row is not None and name in row.parameters:
            trained = Fact.NO if obj.requires_grad is Fact.NO else Fact.UNKNOWN if switched else Fact.YES
            known = Object(Kind.PARAMETER, obj.sure, leaf=Fact.YES, requires_grad=trained, dtype=obj.dtype)
            # Layers make their parameters so, and nobody turns them round but for another memory format.
            known = known._replace(config=((layout.DENSE, True),))
        elif row is not None and name in row.buffers:
            known = Object(Kind.TENSOR, obj.sure, leaf=Fact.YES, requires_grad=Fact.NO)
    if known is None:
        known = class_bodies.attribute(m.world, obj.type, name, BUFFERS)
        known = known or class_bodies.display(m.world, obj.type, name)
    if known is None and obj.kind is Kind.INSTANCE:
        known = records.declared(m, obj.type, name)
    if known is None and (is_property(m, obj, name) if obj.type else m.world.is_method(name)):
        # The class, or of what has none that is known, some class of the file, has a property of that name.
        known = Object()
    if known is None and name in kinds.PARAMETER_NAMES and obj.kind in (Kind.MODULE, Kind.UNKNOWN):
        trained = Fact.NO if obj.requires_grad is Fact.NO else Fact.UNKNOWN if switched else Fact.LIKELY
        known = Object(Kind.PARAMETER, Sure.LIKELY, leaf=Fact.YES, requires_grad=trained)
    if known is None and name in kinds.BUFFER_NAMES and obj.kind in (Kind.MODULE, Kind.UNKNOWN):
        known = Object(Kind.TENSOR, Sure.LIKELY, leaf=Fact.YES, requires_grad=Fact.NO)
    if (known is None or known.kind is Kind.UNKNOWN) and m.world.is_called_module(obj.type, name):
        off = known is not None and known.requires_grad is Fact.NO
        known = Object(Kind.MODULE, Sure.LIKELY, requires_grad=Fact.NO if off else Fact.UNKNOWN)
    known = children.marked(m.world, obj.type, name, known) if known else Object()
    local = m.world.local_class(obj.type) if known.kind is Kind.OPTIMIZER else None
    if local is not None and (moved := training_fields.shares_of(m, ref, local, name)):
        own = m.number("slot", (ref, f".{name}"))
        return known._replace(shares=(*moved, Share(own, How.OWN, -1, own)))
    if obj.owner == "self" and (m.unit.owner, name) in m.world.frozen_fields:
        known = known._replace(requires_grad=Fact.NO)
    if known.kind is Kind.MODULE and m.world.is_hooked(obj.type, name):
        known = known._replace(flags=known.flags | {HOOKED})
    if m.world.is_switched(obj.type, name) or (switched and known.kind is Kind.MODULE):
        known = known._replace(flags=known.flags | {SWITCHED})
    if known.kind is Kind.MODULE and known.requires_grad is not Fact.YES and frozen.is_frozen(m, ref):
        known = known._replace(requires_grad=Fact.NO)
    computed = known.kind is Kind.UNKNOWN and kinds.named_loss(name)
    if obj.kind is Kind.MODULE and known.kind in (*TENSORS, Kind.MODULE, Kind.UNKNOWN) and not computed:
        # A parameter or submodule is a part of what its module trains; a loss is what it has computed.
        own = m.number("slot", (ref, f".{name}"))
        shares = [Share(own, How.OWN, -1, own)]
        shares += [Share(s.storage, How.FIELD, -1, ref, (*s.region, *region)) for s in obj.shares]
        # What inference mode has made has all its parts from there.
        flags = known.flags | obj.flags & {INFERENCE}
        return known._replace(shares=tuple(shares), config=(*known.config, *devices.of_part(obj, known)), flags=flags)
    return known


def numbered(m: Machine, base: Value, site: int, text: str) -> Value | None:
    """What `getattr(rnn, f"weight_hh_l{i}")` asks a recurrent layer for: one of the parameters of its levels."""
    obj = m.state.object(base.refs[0]) if len(base.refs) == 1 else Object()
    row = _row(m, obj) if obj.kind is Kind.MODULE else None
    if row is None or not any(name.endswith("_l0") for name in row.parameters):
        return None
    trained = Fact.NO if obj.requires_grad is Fact.NO else Fact.YES
    sure = min(obj.sure, Sure.LIKELY)
    return memory.fresh(m, site, Object(Kind.PARAMETER, sure, leaf=Fact.YES, requires_grad=trained, text=text))


def _row(m: Machine, obj: Object) -> table.ModuleOp | None:
    """What is known of the class of `torch.nn` that a module is made of, or that its class inherits from."""
    row = table.module_class(obj.type) if obj.type else None
    local = m.world.local_class(obj.type) if row is None and obj.type else None
    bases = sorted(m.world.base_names(local)) if local is not None else []
    return row or next((base for base in map(table.module_class, bases) if base is not None), None)


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
        if name in picking.COMPONENTS:
            return picking.component(m, single, name, How.VIEW, made, site, tag=name)
        return memory.alias(m, single, site, How.VIEW, made, tag=name)
    if op.result in ("number", "bool"):
        return Value(kind=Kind.NUMBER)
    return Value(kind=Kind.OTHER)


def _data(m: Machine, base: Value, obj: Object, site: int, text: str, out: int) -> Value:
    if site >= 0 and not inquiries.is_inquiry(m, out):
        # Where a summary leads through `.data`, it was read in the function.
        otherwise = obj.kind is not Kind.PARAMETER and inquiries.shows_no_tensor(m, text)
        otherwise = otherwise or (obj.sure is not Sure.PROVEN and inquiries.has_foreign_field(m, text))
        m.fact(
            DataAccess(
                site,
                text,
                "read",
                "",
                text.endswith(".grad"),
                obj.scalar,
                obj.kind,
                Sure.NOT if otherwise else data_evidence(m, obj, text),
                m.world.context(m),
                kinds.named_loss(text),
                is_buffer(obj, text),
                unheld.is_unheld(m, base, obj),
            )
        )
        m.shown.data_reads[out] = site
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
    if obj.kind is not Kind.UNKNOWN or not m.world.imports_torch:
        # In a file without torch, a model may be anything, and return results of its own class (`result.masks.data`).
        return Sure.NOT
    if OUTPUT in obj.flags:
        # What a network returns and has a `.data` is a tensor, or a packed sequence, which nobody asks for `.data` so.
        return Sure.LIKELY
    return Sure.HINT if kinds.named_loss(text) else Sure.NOT


def is_buffer(obj: Object, text: str) -> bool:
    """Whether a tensor, written as `text`, is a buffer: registered as one, or called like one and trained by nobody."""
    untrained = obj.kind is not Kind.PARAMETER and obj.leaf is Fact.YES and obj.requires_grad is Fact.NO
    return REGISTERED in obj.flags or (untrained and text.rpartition(".")[2] in kinds.BUFFER_NAMES)


def _grad(m: Machine, base: Value, obj: Object, site: int, text: str, out: int) -> Value:
    ref = base.refs[0]
    lacking = _keeps_no_gradient(m, obj) or _has_no_gradient(m, obj, out)
    lacking = site >= 0 and lacking and not _may_retain(m, base)
    if lacking and not exclude(m, obj.site, site) and not inquiries.none_is_expected(m, out):
        sure = obj.sure if obj.requires_grad is Fact.YES else Sure.LIKELY
        told = next((int(str(at)) for key, at in obj.config if key == COMPUTED_AT), -1)
        m.fact(GradientRead(site, text, obj.site, obj.text, sure, uses.is_shown(m, out), told))
    rebinding.note_gradient_read(m, ref, obj, site, text)
    slot = (ref, ".grad")
    m.backward.gradients.add(ref)
    if obj.leaf is obj.requires_grad is Fact.UNKNOWN:
        m.backward.unexplained.add(ref)
    if m.state.cell(slot) is None:
        found = slots.slot_value(m, slot, Object(Kind.TENSOR, Sure.LIKELY, leaf=Fact.YES, requires_grad=Fact.NO))
        m.note_evidence(found, frozenset({"grad"}))
        return found
    return slots.slot_value(m, slot)


def _keeps_no_gradient(m: Machine, obj: Object) -> bool:
    computed = obj.leaf is Fact.NO and (obj.requires_grad > 0 or HANDED in obj.flags) and obj.kind in TENSORS
    return computed and not obj.flags & {RETAINS, GRADED} and not _may_be_a_leaf(m, obj)


def _has_no_gradient(m: Machine, obj: Object, out: int) -> bool:
    """Whether a gradient is worked with that is `None`, whatever the tensor was computed from.

    It either has a graph and is no leaf, or has none and requires no grad. That somebody asks for it shows that
    backward was to reach it.
    """
    used = m.consumer_of(out) if out >= 0 else None
    if not m.backward.trains or not isinstance(used, t.Attribute | t.Invoke) or used.base != out:
        return False
    unknown = obj.kind in TENSORS and obj.leaf is obj.requires_grad is Fact.UNKNOWN and RETAINS not in obj.flags
    own = obj.owner in ("", LOCAL) and all(share.how is How.OWN for share in obj.shares)
    return unknown and own and any(event.site == obj.site for event in m.index.of(t.Operate))


def _may_retain(m: Machine, base: Value) -> bool:
    """Whether something is in a field that this unit has not set, and whoever set it may have called `retain_grad`, or
    is handed to a function of the file that does."""
    # What a list or dictionary holds may be handed over with it.
    if _is_handed_to_retainer(m, naming.key_text(m, base.root).partition("[")[0]):
        return True
    cell = m.state.cell(base.root) if isinstance(base.root, tuple) else None
    if cell is None or cell.site != -1 or not isinstance(base.root, tuple):
        return False
    local = m.world.local_class(m.state.object(base.root[0]).type)
    if local is not None and not m.world.is_own_class(local):
        return True
    units = [unit for unit in m.world.program.units if local is None or unit.owner == local]
    return any(isinstance(e, t.Invoke) and e.name == "retain_grad" for unit in units for e in unit.definitions)


def _is_handed_to_retainer(m: Machine, name: str) -> bool:
    retaining = {
        unit.name
        for unit in m.world.program.units
        if unit.number != m.unit.number and any(e.name == "retain_grad" for e in m.world.index(unit).of(t.Invoke))
    }
    calls: list[t.Call | t.Invoke] = [*m.index.of(t.Call), *m.index.of(t.Invoke)] if retaining else []
    for call in calls:
        made = m.unit.definitions[call.function] if isinstance(call, t.Call) else call
        if isinstance(made, t.Load | t.Attribute | t.Invoke) and made.name in retaining:
            given = [m.unit.definitions[one.register] for one in call.arguments if one.register >= 0]
            if any(isinstance(event, t.Load) and event.name == name for event in given):
                return True
    return False


def _may_be_a_leaf(m: Machine, obj: Object) -> bool:
    """Whether a tensor is a leaf if it already was what it was converted to, and may well have been.

    What is kept in a field or a global is on the device where it is used, and what is not known to be of another dtype
    is mostly of this one.
    """
    if any(s.when == "when the dtype already matches" and m.state.object(s.of).leaf > 0 for s in obj.shares):
        return True
    parts = [m.state.object(s.storage) for s in obj.shares if s.how in (How.INDEX, How.ROW)]
    if any(part.owner == ARGUMENT and part.kind is not Kind.MODULE for part in parts):
        # Who asks a part of what is handed in for its gradient takes it for an element of a list, annotation or not.
        # A row of a parameter of a model is no element of a list.
        return True
    moved = [s for s in obj.shares if "device" in s.when and m.state.object(s.of).leaf > 0]
    if moved and _comes_home(m, obj) and all(not devices.place_of(m.state.object(s.of)) for s in moved):
        # What nobody has sent anywhere is on the CPU.
        return True
    handed = any(devices.place_of(m.state.object(s.of)) == devices.HANDED for s in moved)
    return handed or any(m.state.object(s.storage).owner in (FIELD, GLOBAL) for s in moved)


def _comes_home(m: Machine, obj: Object) -> bool:
    """Whether a tensor is what `cpu()` has returned."""
    made = m.unit.definitions[m.index.calls[obj.site]] if obj.site in m.index.calls else None
    return isinstance(made, t.Invoke) and made.name == "cpu"


def _of_array(m: Machine, base: Value, ref: int, name: str, site: int) -> Value:
    op = table.array_method(name)
    obj = m.state.object(ref)
    if op is not None and op.shares in ("view", "same", "maybe"):
        made = Object(Kind.ARRAY, obj.sure, dtype=obj.dtype, text=f"{obj.text}.{name}")
        single = Value((ref,), obj.kind, None, base.marks, base.root)
        if name in picking.COMPONENTS:
            return picking.component(m, single, name, How.VIEW, made, site, tag=name)
        return memory.alias(m, single, site, How.VIEW, made, tag=name)
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


def is_property(m: Machine, obj: Object, name: str) -> bool:
    """Whether the class of an object has a method or property of that name."""
    local = m.world.local_class(obj.type)
    return local is not None and (m.world.method(local, name) is not None or m.world.reads_field(local, name))
