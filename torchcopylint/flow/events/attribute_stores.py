"""Attributes that are set or deleted: `.data`, `requires_grad`, and fields."""

from __future__ import annotations

import difflib

from torchcopylint.flow import tape as t
from torchcopylint.flow.autograd import frozen, gradients, grads
from torchcopylint.flow.facts import AttributeSet, DataAccess, VolatileUsed
from torchcopylint.flow.graphs import callbacks, sums
from torchcopylint.flow.interprocedural import attributes, class_bodies
from torchcopylint.flow.model import (
    GRADLESS,
    HANDED,
    LOCAL,
    TENSORS,
    UNKNOWN,
    Fact,
    How,
    Kind,
    Object,
    Part,
    Sure,
    Value,
    bounded,
)
from torchcopylint.flow.program import ownership
from torchcopylint.flow.references import ClassReference
from torchcopylint.flow.running.machine import Machine, handles
from torchcopylint.flow.storages import (
    conversions,
    keeping,
    left_memory,
    lost,
    memory_given,
    put_back,
    reading,
    rebinding,
    sharing,
    slots,
    writing,
)
from torchcopylint.flow.tapes import by_default, elements_apart, uses
from torchcopylint.flow.values import idioms, kinds, layer_names, memory, naming

_FLAG = "requires_grad"
_ALIKE = 0.9
"""So much of a word has to be that flag (as `difflib` measures it) for it to be a slip: one letter more, one less, two
exchanged."""


@handles(t.StoreAttribute)
def store(m: Machine, event: t.StoreAttribute) -> None:
    """An attribute is set, by an assignment or by its name."""
    base, value = m.value(event.base), by_default.layer_of(m, m.value(event.value))
    text = naming.text_of(m, event.base)
    if event.name == "writeable":
        conversions.set_writeable(m, _flagged(m, event.base), value)
    if isinstance(base.const, ClassReference) and not base.refs and not event.augmented:
        class_bodies.store(m, base.const.number, event.name, value, event.site)
    if not event.augmented and base.refs:
        # While it is known what the field has held.
        sums.note(m, event, value)
    for ref in base.refs:
        obj = m.state.object(ref)
        if obj.kind in TENSORS | {Kind.UNKNOWN} and event.name == "data" and not event.augmented:
            _assign_data(m, event, base, ref, value, text)
        elif event.name == "requires_grad" and not attributes.is_property(m, obj, event.name):
            _set_requires_grad(m, event, ref, obj, value, text)
        elif event.name == "volatile" and obj.kind in TENSORS:
            m.fact(VolatileUsed(event.site, f"{text}.{event.name}", obj.sure))
        elif _is_misspelt(m, event, obj):
            m.fact(AttributeSet(event.site, text, event.name, _constant_text(value), obj.kind, obj.sure))
        _store_field(m, event, ref, obj, value)
        callbacks.note_context(m, obj, event)
        if ref == base.refs[0]:
            keeping.note_stored(m, event, ref, value)
    if event.name == "grad" and value.kind is Kind.NONE and m.in_loop:
        gradients.dropped_in_loop(m)


def _is_misspelt(m: Machine, event: t.StoreAttribute, obj: Object) -> bool:
    """Whether `requires_grad` is meant by what is set on a tensor or module, and nothing there goes by that name."""
    name = event.name
    if name == _FLAG or not name.startswith("re") or obj.kind not in (*TENSORS, Kind.MODULE):
        return False
    alike = difflib.SequenceMatcher(None, _FLAG, name).ratio() >= _ALIKE
    return alike and not attributes.is_property(m, obj, name) and not _keeps_option(m, event, obj)


def _flagged(m: Machine, register: int) -> Value:
    """The array that `array.flags` belongs to."""
    made = m.unit.definitions[register]
    return m.value(made.base) if isinstance(made, t.Attribute) and made.name == "flags" else UNKNOWN


def _store_field(m: Machine, event: t.StoreAttribute, ref: int, obj: Object, value: Value) -> None:
    text = f"{naming.text_of(m, event.base)}.{event.name}"
    if obj.kind is Kind.MODULE:
        lost.note_parameter(m, event, ref, obj, value)
        sharing.note_statistics(m, event, ref, value, text)
        ownership.note_field(m, event, value, text)
    if obj.kind is Kind.MODULE or obj.owner == "self" or ownership.is_inside_module(m, obj):
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
        put_back.note(m, (ref, f".{event.name}"), value, event.site, text)
        if obj.kind is Kind.MODULE:
            slots.let_go_of_field(m, ref, event.name, value)
    slots.bind_slot(m, (ref, f".{event.name}"), value, event.site, weak=ref & 1 == 1)
    if not _is_set_again(m, event):
        m.world.stored(m, obj, event.name, value)


def _is_set_again(m: Machine, event: t.StoreAttribute) -> bool:
    """Whether a constructor surely sets the same field once more, so that no other method finds what is set here:
    `self.layers = []`, and in the end `self.layers = nn.Sequential(*self.layers)`."""
    later = [one for one in m.index.stores.get(event.name, ()) if one.site > event.site and not one.augmented]
    always = [one for one in later if one in m.unit.tape and uses.is_self(m, one.base)]
    return m.unit.name == "__init__" and bool(always) and uses.is_self(m, event.base) and not m.index.of(t.Return)


def _assign_data(m: Machine, event: t.StoreAttribute, base: Value, ref: int, value: Value, text: str) -> None:
    obj = m.state.object(ref)
    sure = attributes.data_evidence(m, obj, text)
    gradient = text.endswith(".grad")
    context, buffer = m.world.context(m), attributes.is_buffer(obj, text)
    if _is_own_conversion(m, ref, event.value):
        context = context or idioms.CONVERSION
    fact = DataAccess(event.site, text, "assign", "=", gradient, obj.scalar, obj.kind, sure, context, False, buffer)
    m.fact(fact._replace(given=naming.text_of(m, event.value)))
    shared = slots.lives_on(m, value, ref) or elements_apart.source_of(m, event) or None
    if shared is not None and obj.kind in TENSORS:
        if not left_memory.is_left(m, event.value):
            sharing.note(m, event.site, ref, value, text, shared, "assign", obj.sure)
    elif obj.kind is Kind.PARAMETER:
        memory_given.note(m, event.site, value, text)
    if not _is_exchanged(m, value, event.site):
        # Whoever puts memory under a tensor has not looked at what a copy is still to fill it with.
        filled = value._replace(marks=frozenset(mark for mark in value.marks if mark.write not in m.holding.flights))
        reading.read(m, filled, event.site, "operand", text)
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
    moving = memory.VIEWS | {How.DATA, How.ASSIGNED} | ({How.OWN} if obj.owner in ("", LOCAL) else set())
    apart = all(share.how in moving for share in obj.shares)
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
    as_part = attributes.is_part(obj) and kinds.named_layer(obj.text)
    unsure = obj.kind in (Kind.UNKNOWN, Kind.MODULE) and obj.sure < Sure.LIKELY
    if unsure and ((as_part and obj.kind is Kind.UNKNOWN) or _has_parameters(m, event) or _is_layer(m, event, obj)):
        obj = obj._replace(kind=Kind.MODULE, sure=Sure.LIKELY)
    if obj.kind is Kind.MODULE:
        if _keeps_option(m, event, obj):
            return
        m.fact(AttributeSet(event.site, text, "requires_grad", _constant_text(value), obj.kind, obj.sure))
        return
    # Of several elements that it may be, nobody knows which it is.
    apart = len({m.state.object(each).dtype for each in m.value(event.base).refs}) > 1
    apart = apart and (obj.leaf is not Fact.NO or wanted is not True)
    if apart or not grads.note_switched(m, ref, wanted, event.site, text, stored=True):
        set_requires_grad(m, ref, wanted)
        frozen.note_loop(m, wanted, event.site)


_OF_NO_TENSOR = frozenset(
    {"parameters", "named_parameters", "state_dict", "load_state_dict", "modules", "named_modules", "eval", "train"}
)


def _has_parameters(m: Machine, event: t.StoreAttribute) -> bool:
    """Whether a unit asks what it switches `requires_grad` of for its parameters or state, or switches its mode.

    Or calls it, as another method of the class may do. That is no tensor.
    """
    text = naming.text_of(m, event.base)
    asking = (one for one in m.index.of(t.Invoke) if one.name in _OF_NO_TENSOR)
    field = text.removeprefix(f"{m.unit.first}.")
    return any(naming.text_of(m, one.base) == text for one in asking) or (
        m.unit.owner >= 0 and field != text and field.isidentifier() and _is_called(m, field)
    )


_OF_NO_MODULE = frozenset({"data", "grad", "shape", "is_leaf", "dtype", "ndim"})


def _is_layer(m: Machine, event: t.StoreAttribute, obj: Object) -> bool:
    """Whether what nobody knows is called like a layer of a network, and nothing that tensors have is asked of it."""
    text = naming.text_of(m, event.base)
    if obj.kind is not Kind.UNKNOWN or not layer_names.is_layer(text, obj.text):
        return False
    asked: list[t.Attribute | t.StoreAttribute] = [*m.index.of(t.Attribute), *m.index.of(t.StoreAttribute)]
    return not any(one.name in _OF_NO_MODULE and naming.text_of(m, one.base) == text for one in asked)


def _is_called(m: Machine, field: str) -> bool:
    """Whether a method of the class calls what a field of `self` holds."""
    mine = [unit for unit in m.world.program.units if unit.owner == m.unit.owner]
    calls = [(unit, call) for unit in mine for call in m.world.index(unit).of(t.Invoke) if call.name == field]
    bases = [(unit, unit.definitions[call.base]) for unit, call in calls]
    return any(isinstance(base, t.Load) and base.name == unit.first for unit, base in bases)


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
        m.switches.parameters.update(s.of | 1 for s in m.state.object(ref).shares if s.how is How.PARAMETERS)
    elif m.owners.left_leaves:
        ownership.note_switched_on(m, ref)
    obj = m.state.object(ref)
    if wanted is not None and obj.kind is not Kind.MODULE:
        (m.switches.on if wanted else m.switches.tensors).add(ref | 1)
    if obj.kind is Kind.UNKNOWN:
        obj = obj._replace(kind=Kind.TENSOR, sure=Sure.LIKELY)
    fact = Fact.UNKNOWN if wanted is None else Fact.YES if wanted else Fact.NO
    leaf = Fact.YES if obj.leaf is Fact.UNKNOWN and not obj.graph else obj.leaf
    if wanted and leaf is Fact.NO and (obj.requires_grad is Fact.LIKELY or HANDED in obj.flags):
        # Who asks for the gradient of what a network has returned may know that nothing in there requires one.
        leaf = Fact.UNKNOWN
    m.state.set_object(ref, obj._replace(requires_grad=fact, leaf=leaf, flags=obj.flags - {GRADLESS}))


def _leaves_some(index: t.Index) -> bool:
    """Whether what stands at one end of a list is deleted, which leaves the other: `del best[3:]`."""
    part = index[0] if len(index) == 1 else None
    return isinstance(part, t.Slice) and (part.lower == t.NO_REGISTER) is not (part.upper == t.NO_REGISTER)


@handles(t.DeleteItem)
def _delete_item(m: Machine, event: t.DeleteItem) -> None:
    if event.name:
        for ref in m.value(event.base).refs:
            sharing.let_go(m, (ref, f".{event.name}"), UNKNOWN)
            m.state.put((ref, f".{event.name}"), None)
        return
    for ref in m.value(event.base).refs:
        slots.moved_from_end(m, ref)
    if not _leaves_some(event.subscript):
        # `del kept[:]`; of `del kept[0]` nobody knows what is left.
        for ref in m.value(event.base).refs:
            if m.state.object(ref).kind is Kind.LIST:
                slots.clear(m, ref)
