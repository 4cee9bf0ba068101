"""Items in square brackets and unpacking, by what the base is."""

from __future__ import annotations

from torchcopylint.flow import tape as t
from torchcopylint.flow.events import default_entries
from torchcopylint.flow.graphs import runs, sums
from torchcopylint.flow.interprocedural import attributes, lending, records
from torchcopylint.flow.library import containers, datasets, indexing, sliced, subscripts
from torchcopylint.flow.library.containers import SHALLOW
from torchcopylint.flow.model import (
    ANY_ELEMENT,
    BUFFERS,
    CONTAINERS,
    DIMENSIONS,
    FIELD,
    NAMELESS,
    OPTIMIZER_STATE,
    OUTPUT,
    PART,
    PLACEHOLDER,
    TENSORS,
    UNKNOWN,
    How,
    Kind,
    Object,
    Part,
    Sure,
    Value,
)
from torchcopylint.flow.networks import chains, modules
from torchcopylint.flow.program import chain_layers, ownership, training_fields
from torchcopylint.flow.references import OneOf
from torchcopylint.flow.running.machine import Machine, handles
from torchcopylint.flow.storages import collecting, conversions, lost, rebinding, repeating, sharing, slots
from torchcopylint.flow.tape import Dotted
from torchcopylint.flow.tapes import by_kind, dimensions, item_stores, numbers, uses
from torchcopylint.flow.values import kinds, memory, naming
from torchcopylint.flow.values.sites import Arguments
from torchcopylint.flow.values.state import kind_of

_OPTIONS = "param_groups"
"""Under this key of an optimizer's state stand numbers alone: its options, and which parameters they are for."""


_ROWS_OF_ARRAYS = frozenset({"numpy.r_", "numpy.c_", "numpy.mgrid"})
"""What makes an array of slices and numbers in square brackets."""


@handles(t.Item)
def _item(m: Machine, event: t.Item) -> None:
    base = m.value(event.base)
    text = naming.text_of(m, event.out)
    if m.shown.data_reads:
        indexing.note_data_index(m, event)
    if len(event.subscript) == 1 and isinstance(event.subscript[0], int) and dimensions.are_in(m, event.base):
        m.set(event.out, Value(kind=Kind.NUMBER))
        return
    indexing.read_places(m, base, event.subscript, event.site)
    if kinds.are_optimizers(base.const):
        m.set(event.out, kinds.ANY_OPTIMIZER)
        return
    if isinstance(base.const, Dotted) and base.const in _ROWS_OF_ARRAYS:
        described = Object(Kind.ARRAY, Sure.PROVEN, text=text, flags=frozenset({DIMENSIONS}))
        m.set(event.out, memory.fresh(m, event.site, described, "rows"))
        return
    if isinstance(base.const, Dotted) or not base.refs:
        m.set(event.out, UNKNOWN if isinstance(base.const, Dotted) else memory.unknown(m, event.site, text))
        return
    slots.field_read(m, base.root, event.site, "item")
    base = sliced.note(m, slots.filled(m, base), event)
    each = memory.by_kind(m, base)
    found = slots.join_values([_item_of(m, one, obj, event, text) for one, obj in m.each(each)])
    if len(each) > 1 and isinstance(found.root, str) and all(_is_display(obj) for _, obj in each):
        # What one of several turns has put in is not what the name of it holds now: `history[0]["w"]`.
        found = found._replace(root=None)
    m.set(event.out, found)


def _is_display(obj: Object) -> bool:
    """Whether something is a tuple, list or dictionary that was written where it is needed, and has no name."""
    return obj.kind in (Kind.TUPLE, Kind.LIST, Kind.DICT) and obj.text == NAMELESS


def _item_of(m: Machine, single: Value, obj: Object, event: t.Item, text: str) -> Value:
    if obj.kind is Kind.UNKNOWN and (
        subscripts.looks_like_array(m, event.subscript)
        or subscripts.is_part_by_mask(m, event)
        or subscripts.picks_by_tensor(m, event.subscript)
    ):
        return indexing.item_of_buffer(m, single, obj, event, text)
    if obj.kind in BUFFERS:
        return indexing.item_of_buffer(m, single, obj, event, text)
    if obj.kind is Kind.MODULE:
        if any(isinstance(part, t.Slice) for part in event.subscript):
            # `layers[1:]` is a list of some of them.
            some = Object(Kind.MODULE, obj.sure, type=obj.type, requires_grad=obj.requires_grad, text=text)
            return memory.alias(m, single, event.site, How.FIELD, some, region=(Part("?"),), tag="some")
        alone = chains.picked(m, event.out) if len(single.refs) == 1 and _is_handed_on(m, event.out) else None
        if alone is not None and not _is_replaced(m, single.refs[0]):
            return Value(alone, Kind.MODULE)
        return slots.child_module(m, single.refs[0], event.site, text, key=subscripts.constant(m, event.subscript))
    if obj.kind is Kind.INSTANCE and m.world.method_of(obj, "__getitem__") is not None:
        asked = Arguments([single, *_index(m, event.subscript)], {})
        return modules.call_instance(m, single, asked, event.site, naming.text_of(m, event.base), "__getitem__")
    if obj.kind is Kind.INSTANCE and (field := records.position(m, obj, subscripts.constant(m, event.subscript))):
        return attributes.attribute(m, single, field[1:], event.site, text)
    if obj.type == datasets.OF_TENSORS and obj.kind is Kind.OTHER and not _is_slice(event):
        return datasets.sample(m, single, event.site, "sample")
    if obj.kind is Kind.UNKNOWN and subscripts.names_columns(m, event.subscript):
        return memory.fresh(m, event.site, Object(text=text), "columns")
    key = subscripts.constant(m, event.subscript)
    if OPTIMIZER_STATE in obj.flags and key == _OPTIONS:
        return UNKNOWN
    if obj.kind in (Kind.LIST, Kind.TUPLE):
        if len(event.subscript) == 1 and isinstance(event.subscript[0], t.Slice):
            return containers.part_of(m, single, event.subscript[0], event.site, text)
        if (last := containers.from_end(m, single.refs[0], key)) is not None:
            return last
        key = containers.position(m, single.refs[0], key)
    if obj.kind is Kind.UNKNOWN and OUTPUT in obj.flags and (type(key) in (int, str) or not _is_slice(event)):
        return _of_output(m, single.refs[0], obj, key, event.site, text)
    if obj.kind is Kind.DICT and (anew := default_entries.entry(m, single, key, event.site, text)) is not None:
        return anew
    if obj.kind is Kind.UNKNOWN and key is None and _is_plain_slice(m, single, event):
        # If that turns out to be a tensor, so is what it is a part of, and it shares the memory of that.
        part = Object(owner=obj.owner, text=text)
        region = indexing.region_of(m, event.subscript)
        value = memory.alias(m, single, event.site, How.INDEX, part, region=region, when=memory.IF_TENSOR, tag="slice")
        conversions.reverse(m, value, event.subscript)
        return value
    found = slots.element(m, single, key, event.site, text)
    root = single.root if single.root.__class__ is tuple and single.root[1].startswith(".") else None
    if root is not None and isinstance(key, int | str) and len(found.refs) == 1:
        ref = found.refs[0]
        m.state.set_object(ref, training_fields.of_entry(m, root[0], root[1][1:], key, m.state.object(ref)))
    return _by_default(m, single.refs[0], event) or found if isinstance(found.const, OneOf) else found


def _index(m: Machine, subscript: t.Index) -> list[Value]:
    """What `__getitem__` and the like are passed for what stands in the brackets."""
    index = [UNKNOWN if isinstance(part, t.Slice) else m.value(part) for part in subscript]
    return [index[0] if len(index) == 1 else UNKNOWN]


def _is_handed_on(m: Machine, register: int) -> bool:
    """Whether a layer is called, or passed on. What is asked of it, `net[0].parameters()`, is a part of the chain's."""
    event = m.consumer_of(register)
    return isinstance(event, t.Call) or (isinstance(event, t.Invoke) and event.base != register)


def _is_replaced(m: Machine, ref: int) -> bool:
    """Whether a chain has been given another layer in the place of one: `net[0] = nn.Linear(2, 2)`."""
    places = (slot[1] for slot in m.state.slot_names(ref))
    return any(place.startswith("[") and place != ANY_ELEMENT for place in places)


def _of_output(m: Machine, ref: int, obj: Object, key: object, site: int, text: str) -> Value:
    """One of the outputs of a network, taken by its place, or by its name: `feature = features[-1]`, `out["mask"]`, or
    `out[name]`. It hangs on the same graph."""
    slot = (ref, f"[{key!r}]") if isinstance(key, int | str) else (ref, ANY_ELEMENT)
    position = key if isinstance(key, int) else None
    if m.state.cell(slot) is None:
        # What backward has run over from another of the outputs, it need not have run over from this one.
        graph = frozenset(number for number in runs.of_part(m, obj, position) if number >= 0)
        made = Object(text=text, flags=frozenset({OUTPUT, PART}), graph=graph)
        part = memory.fresh(m, site, made, "part")
        m.runs.parts.update(one | 1 for one in part.refs)
        slots.bind_slot(m, slot, part, site)
    return slots.slot_value(m, slot)


def _is_plain_slice(m: Machine, single: Value, event: t.Item) -> bool:
    """Whether one slice is taken, without a step or backwards, of something into which nobody has put anything here."""
    part = event.subscript[0] if len(event.subscript) == 1 else None
    if not isinstance(part, t.Slice) or any(m.state.slot_names(ref) for ref in single.refs):
        return False
    # Whichever of several things it is that goes backwards is one that does.
    return conversions.is_backwards(m, event.subscript) or (part.step == t.NO_REGISTER and len(single.refs) == 1)


def _is_slice(event: t.Item) -> bool:
    return any(isinstance(part, t.Slice) for part in event.subscript)


def _by_default(m: Machine, ref: int, event: t.Item) -> Value | None:
    """What a table of functions has under a key that is a parameter, if nobody passes that: `ACTIVATIONS[kind]`."""
    part = event.subscript[0] if len(event.subscript) == 1 else None
    made = m.unit.definitions[part] if isinstance(part, int) and part >= 0 else None
    key = uses.default_of(m, made.name) if isinstance(made, t.Load) and not uses.bindings_before(m, made) else None
    slot = (ref, f"[{key!r}]")
    return slots.slot_value(m, slot) if key is not None and m.state.cell(slot) is not None else None


@handles(t.StoreItem)
def _store_item(m: Machine, event: t.StoreItem) -> None:
    base, value = sliced.note(m, m.value(event.base), event), m.value(event.value)
    text = naming.text_of(m, event.base)
    key = subscripts.constant(m, event.subscript)
    if not event.augmented:
        indexing.read_places(m, base, event.subscript, event.site)
    if not event.augmented and kind_of(base, m.state) in CONTAINERS:
        sums.note(m, event, value)
    _note_replaced(m, event, key, value)
    for single, obj in m.each(memory.by_kind(m, by_kind.main_last(m, _without_lists(m, base)))):
        if obj.kind in TENSORS and (isinstance(key, str) or kind_of(value, m.state) is Kind.DICT):
            # What takes a text for a key is a dictionary here, whatever it is elsewhere: `x = {"image": x}`. So is what
            # a dictionary is put into: `level[part] = {}`.
            continue
        if obj.kind in BUFFERS or (obj.kind is Kind.UNKNOWN and subscripts.looks_like_array(m, event.subscript)):
            if not event.augmented:
                numbers.note_written_out(m, event)
                indexing.store_into_buffer(m, single, event, value, text)
            continue
        ref = single.refs[0]
        if obj.kind is Kind.INSTANCE and m.world.method_of(obj, "__setitem__") is not None:
            given = Arguments([single, *_index(m, event.subscript), value], {})
            modules.call_instance(m, single, given, event.site, text, "__setitem__")
            continue
        if obj.kind is Kind.LIST:
            key = containers.position(m, ref, key)
            slots.moved_from_end(m, ref)
        if obj.kind is Kind.STATE_DICT and not event.augmented and SHALLOW not in obj.flags:
            lost.note_state_item(m, event, obj)
        if obj.kind is Kind.MODULE:
            place = f"{text}[{naming.index_text(m, event.subscript)}]"
            ownership.note_replaced(m, ref, Part("item", key), value, place, event.site)
            chain_layers.forget(m, ref)
        if key is None and isinstance(event.subscript[0], int) and _is_module(m, event.base, obj):
            sharing.set_anew(m, event.subscript[0])
        slot = (ref, f"[{key!r}]" if key is not None else ANY_ELEMENT)
        if not event.augmented:
            place = f"{text}[{naming.index_text(m, event.subscript)}]"
            rebinding.note_store(m, slot, place, event.value, value, event.site)
        if key is not None:
            slots.bind_slot(m, (ref, f"[{key!r}]"), value, event.site, weak=ref & 1 == 1)
        else:
            if obj.kind in CONTAINERS and _is_put_back(m, event, ref, value):
                continue
            if obj.kind in CONTAINERS:
                collecting.put(m, (ref, ANY_ELEMENT), value, event.site, "item")
            else:
                if obj.kind is Kind.MODULE:
                    repeating.note_put_again(m, m.state.cell((ref, ANY_ELEMENT)), value, event.site, text)
                # It may be an array or a tensor, which copies what is stored into it.
                slots.bind_slot(m, (ref, ANY_ELEMENT), value, event.site, weak=True)


def _note_replaced(m: Machine, event: t.StoreItem, key: object, value: Value) -> None:
    """`model._modules[name] = nn.Linear(4, 4)` sets a part of a module, as `setattr` does."""
    table = m.unit.definitions[event.base]
    if not isinstance(table, t.Attribute) or table.name not in ("_modules", "_parameters"):
        return
    part = Part("field", key) if isinstance(key, str) else Part("item")
    text = f"{naming.text_of(m, event.base)}[{naming.index_text(m, event.subscript)}]"
    for single, obj in m.each(memory.by_kind(m, m.value(table.base))):
        if obj.kind is Kind.MODULE:
            ownership.note_replaced(m, single.refs[0], part, value, text, event.site)


def _without_lists(m: Machine, base: Value) -> Value:
    """A value, without what is one of the elements of another thing that it may be.

    `if not isinstance(x, list): x = [x]` leaves a list alone, whatever its elements turn out to be.
    """
    if len(base.refs) < 2:
        return base
    lists = [ref for ref in base.refs if m.state.object(ref).kind in (Kind.LIST, Kind.TUPLE)]
    held = {inner for ref in lists for slot in m.state.slot_names(ref) for inner in m.state.refs_of(slot)}
    return base._replace(refs=tuple(ref for ref in base.refs if ref not in held or ref in lists))


def _is_module(m: Machine, base: int, obj: Object) -> bool:
    """Whether the items of an object are the layers of a module: of a sequence of them, or of `module._modules`."""
    made = m.unit.definitions[base]
    return obj.kind is Kind.MODULE or (isinstance(made, t.Attribute) and made.name == "_modules")


def _is_put_back(m: Machine, event: t.StoreItem, ref: int, value: Value) -> bool:
    """Whether `kept[key] += x` stores what it has taken from there and changed in place, or a loop over `kept.items()`
    what it has taken from there under that key: nothing new is held. So does `rows[i] = rows[i].reshape(1, -1)`, but
    for what that may have copied."""
    made = m.unit.definitions[event.value] if event.augmented and event.value >= 0 else None
    if isinstance(made, t.Augment):
        return bool(value.refs) and m.value(made.target).refs == value.refs
    held = _memory_of(m, m.state.refs_of((ref, ANY_ELEMENT)))
    mine = _memory_of(m, value.refs)
    if item_stores.is_made_of_it(m, event):
        return not mine.isdisjoint(held)
    return bool(value.refs) and mine <= held and item_stores.goes_back(m, event)


def _memory_of(m: Machine, refs: tuple[int, ...]) -> set[int]:
    return {share.storage | 1 for ref in refs for share in m.state.object(ref).shares}


@handles(t.Unpack)
def _unpack(m: Machine, event: t.Unpack) -> None:
    value = m.value(event.value)
    position = event.position if event.position >= 0 else None
    text = naming.text_of(m, event.out)
    if position is not None and dimensions.are_in(m, event.value):
        m.set(event.out, Value(kind=Kind.NUMBER))
        return
    if not value.refs or _are_pairs(m, event.value):
        m.set(event.out, memory.unknown(m, event.site, text))
        return
    handed = _handed_back(m, event, value)
    if handed is not None:
        m.set(event.out, handed)
        return
    spelt = _spelt_out(m, event)
    if spelt is not None:
        m.set(event.out, m.value(spelt) if spelt >= 0 else memory.unknown(m, event.site, text))
        return
    each = list(m.each(memory.by_kind(m, value)))
    if any(obj.kind in BUFFERS for _, obj in each) and _has_keys(m, event.value):
        each = [(one, obj._replace(kind=Kind.UNKNOWN) if obj.kind in BUFFERS else obj) for one, obj in each]
    first = _in_front(m, event) if position is None else 0
    part = slots.join_values([_part_of(m, one, obj, position, event.site, text, first) for one, obj in each])
    for ref in part.refs if position is None else ():
        obj = m.state.object(ref)
        if obj.site == event.site:
            # What a starred target gets stands for all the elements from there on.
            m.state.set_object(ref, obj._replace(flags=obj.flags | {PLACEHOLDER}))
    m.set(event.out, part)


def _in_front(m: Machine, event: t.Unpack) -> int:
    """How many targets stand in front of the starred one: `first, *rest = pair`."""
    return len({one.position for one in m.index.of(t.Unpack) if one.value == event.value and one.position >= 0})


def _are_pairs(m: Machine, register: int) -> bool:
    """Whether each of what somebody calls his parameters is taken apart: they come with their names, as those of torch
    do not. `for name, p in net.parameters()`"""
    element = m.unit.definitions[register] if register >= 0 else None
    through = m.unit.definitions[element.iterable] if element.__class__ is t.Iterate and element.iterable >= 0 else None
    return through.__class__ is t.Invoke and through.name == "parameters"


def _has_keys(m: Machine, register: int) -> bool:
    """Whether a part of what is taken apart is asked for something by its name, `info["loss"]`: then it was no tensor
    that came apart, whatever an annotation says."""
    bound = [m.consumer_of(one.out) for one in m.index.of(t.Unpack) if one.value == register]
    loads = [use.register for one in bound if isinstance(one, t.Bind) for use in uses.of_name(m, one.name) if use.loads]
    return any(_by_name(m, register) for register in loads)


def _by_name(m: Machine, register: int) -> bool:
    used = m.consumer_of(register)
    key = used.subscript[0] if isinstance(used, t.Item) and used.base == register and len(used.subscript) == 1 else None
    made = m.unit.definitions[key] if isinstance(key, int) and key >= 0 else None
    return isinstance(made, t.Const) and isinstance(made.value, str)


def _spelt_out(m: Machine, event: t.Unpack) -> int | None:
    """The register that is taken out of what stands there with a star in it, `a, b, c = x, *pair, y`: in front of the
    star by its place, behind it by that from the end. -1 is a part of what the star spreads, `None` no star."""
    made = m.unit.definitions[event.value] if event.value >= 0 else None
    if made.__class__ is not t.Make or made.kind == "dict" or not any(made.stars) or event.position < 0:
        return None
    first, last = made.stars.index(True), len(made.stars) - 1 - made.stars[::-1].index(True)
    if event.position < first:
        return made.items[event.position]
    targets = [one.position for one in m.index.of(t.Unpack) if one.value == event.value]
    place = len(made.items) - (max(targets) + 1 - event.position)
    return made.items[place] if min(targets) >= 0 and place > last else -1


def _handed_back(m: Machine, event: t.Unpack, value: Value) -> Value | None:
    """The model or optimizer that somebody unknown has prepared and hands back under the name that it had.

    Thus `model, optimizer = accelerator.prepare(model, optimizer)`: what it is wrapped in has the same parameters.
    """
    made = m.unit.definitions[event.value] if event.value >= 0 else None
    if (made.__class__ is not t.Call and made.__class__ is not t.Invoke) or not 0 <= event.position < len(
        made.arguments
    ):
        return None
    given, bound = made.arguments[event.position], m.index.consumers.get(event.out)
    if given.keyword or given.stars or given.register < 0 or not isinstance(bound, t.Bind):
        return None
    loaded = m.unit.definitions[given.register]
    if not isinstance(loaded, t.Load) or loaded.name != bound.name:
        return None
    unknown = all(m.state.object(ref).kind is Kind.UNKNOWN for ref in value.refs)
    held = m.value(given.register)
    prepared = {Kind.MODULE, Kind.OPTIMIZER} | ({Kind.UNKNOWN} if kinds.named_model(bound.name) else set())
    known = held.refs and all(m.state.object(ref).kind in prepared for ref in held.refs)
    return Value(held.refs, held.kind) if unknown and known else None


def _part_of(
    m: Machine, single: Value, obj: Object, position: int | None, site: int, text: str, first: int = 0
) -> Value:
    if obj.kind is Kind.PARAMETER and obj.sure is Sure.HINT:
        # What is only called parameters, and has elements that are taken apart, is a table of something.
        return memory.unknown(m, site, text)
    if obj.kind in BUFFERS:
        return indexing.row(m, single, obj, site, text, "part", position)
    if obj.type == containers.ZIP and position is not None:
        column = containers.column(m, single.refs[0], position, site, text)
        if column is not None:
            return column
    if obj.kind in CONTAINERS:
        return slots.element(m, single, position, site, text, first)
    field = records.position(m, obj, position) if obj.kind is Kind.INSTANCE else None
    if field is not None:
        return attributes.attribute(m, single, field[1:], site, text)
    flags = obj.flags & {OUTPUT}
    graph = runs.of_part(m, obj, position) if flags else obj.graph
    made = Object(text=text, flags=flags | {PART} if flags else flags, requires_grad=obj.requires_grad, graph=graph)
    if position is not None and lending.is_lent(m, obj):
        made = made._replace(owner=FIELD, text=f"{obj.text}[{position}]")
    part = memory.fresh(m, site, made, "part")
    m.runs.parts.update(ref | 1 for ref in part.refs)
    return part
