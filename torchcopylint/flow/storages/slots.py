"""Fields and elements of objects, and what stands in them."""

from __future__ import annotations

from collections.abc import Sequence

from torchcopylint.flow.facts import FieldRead
from torchcopylint.flow.model import (
    ANY_ELEMENT,
    ARCHIVE,
    CONTAINERS,
    EARLIER,
    EMPTY,
    FETCHING,
    FIELD,
    LISTED,
    LISTS,
    LOCAL,
    NO_MARKS,
    OF_STATISTICS,
    PARTED,
    PARTS,
    PLACEHOLDER,
    SWITCHED,
    TENSORS,
    UNKNOWN,
    WRITES_INPUT,
    Cell,
    Fact,
    How,
    Key,
    Kind,
    Object,
    Part,
    Region,
    Share,
    Slot,
    Sure,
    Value,
    whole_cell,
    whole_value,
)
from torchcopylint.flow.program import chain_layers, children, tables
from torchcopylint.flow.references import OneOf
from torchcopylint.flow.regions import overlap
from torchcopylint.flow.running.machine import Machine
from torchcopylint.flow.storages import own_entries, reading
from torchcopylint.flow.tapes import item_stores
from torchcopylint.flow.values import kinds, memory, naming
from torchcopylint.flow.values.joining import MAX_OPTIONS, join_cells
from torchcopylint.knowledge import table

_STATISTICS = frozenset({"running_mean", "running_var", "num_batches_tracked"})


def slot_value(m: Machine, slot: Slot, lazily: Object | None = None) -> Value:
    """What a slot holds. A slot that nobody has touched holds something of its own, the same at every look."""
    cell = m.state.cell(slot)
    if cell is None:
        owner = m.state.object(slot[0])
        obj = lazily or Object()
        ref = m.number("slot", slot)
        shares = obj.shares or (Share(ref, How.OWN, -1, ref),)
        outside = FIELD if owner.owner not in ("", LOCAL) else owner.owner
        m.state.make(ref, obj._replace(shares=shares, text=f"{owner.text}{slot[1]}", owner=outside))
        memory.bind(m, slot, Value((ref,), obj.kind), -1)
        cell = m.state.cell(slot)
        assert cell is not None
    return whole_value((cell.refs, cell.kind, cell.const, cell.marks, naming.place_of(m, slot, cell), cell.plain))


def join_values(values: list[Value]) -> Value:
    """One value for what may be any of several."""
    if not values:
        return UNKNOWN
    if len(values) == 1:
        return values[0]
    cell = Cell(values[0].refs, values[0].kind, values[0].const, values[0].marks, plain=values[0].plain)
    for value in values[1:]:
        cell = join_cells(cell, Cell(value.refs, value.kind, value.const, value.marks, plain=value.plain))
    roots = {value.root for value in values}
    return Value(cell.refs, cell.kind, cell.const, cell.marks, roots.pop() if len(roots) == 1 else None, cell.plain)


def filled(m: Machine, value: Value) -> Value:
    """What a container is that an element is taken of: `best = {}`, into which nobody has put anything, has none, if it
    may be another one."""
    if len(value.refs) < 2:
        return value
    objects = {ref: m.state.object(ref) for ref in value.refs}
    left = tuple(ref for ref, obj in objects.items() if EMPTY not in obj.flags or m.state.slot_names(ref))
    return value._replace(refs=left) if left else value


def bind_slot(m: Machine, slot: Slot, value: Value, site: int, *, weak: bool = False) -> None:
    """A slot now holds a value, or, where it stands for several elements, may hold it as well."""
    # A field is a place of its own, whatever its value came from; an element may be short for a name.
    origin = None if slot[1].startswith(".") else value.root
    cell = whole_cell((value.refs, value.kind, value.const, value.marks, site, origin, value.plain))
    before = m.state.cell(slot)
    if weak and before is not None:
        cell = join_cells(before, cell)._replace(site=site)
    m.state.put_cell(slot, cell)


def clear(m: Machine, ref: int) -> None:
    """A container gives up its elements."""
    for slot in m.state.slot_names(ref):
        if slot[1].startswith("["):
            m.state.put(slot, None)


def copied_from(m: Machine, ref: int) -> int | None:
    """The dictionary or object that another one is a shallow copy of; `None` also where a loop copies its own copy."""
    seen, source = {ref}, m.holding.shallow_of.get(ref)
    first = source
    while source is not None:
        if source in seen:
            return None
        seen.add(source)
        source = m.holding.shallow_of.get(source)
    return first


def element(m: Machine, base: Value, key: object, site: int, text: str, first: int = 0) -> Value:
    """An element of one container; `key` is a constant, or `None` for any of them, from the place `first` on."""
    ref = base.refs[0]
    obj = m.state.object(ref)
    if obj.kind is Kind.STATE_DICT:
        one = Object(Kind.TENSOR, Sure.PROVEN, leaf=Fact.YES, requires_grad=Fact.NO, text=text, flags=obj.flags)
        one = one._replace(config=obj.config)
        if isinstance(key, str) and key.rpartition(".")[2] in _STATISTICS:
            one = one._replace(flags=one.flags | {OF_STATISTICS})
        named = (ref, f"[{key!r}]")
        if key is not None and m.state.cell(named) is not None:
            return slot_value(m, named)
        return memory.alias(m, base, site, How.STATE, one, region=(Part("each"),), tag="state")
    if key is not None:
        slot = (ref, f"[{key!r}]")
        if m.state.cell(slot) is not None:
            return slot_value(m, slot)
        if isinstance(key, str) and (source := copied_from(m, ref)) is not None:
            same = element(m, Value((source,)), key, site, f"{m.state.object(source).text}[{key!r}]")
            bind_slot(m, slot, same._replace(root=None), site)
            if obj.kind is Kind.UNKNOWN:
                m.state.set_object(ref, obj._replace(kind=Kind.DICT, sure=Sure.LIKELY))
            return slot_value(m, slot)
        if _is_fetched(m, ref, obj, key):
            return memory.fresh(m, site, Object(flags=frozenset({FETCHING}), text=text), "fetched")
        by_name = obj.kind is Kind.DICT and isinstance(key, str) and LISTS not in obj.flags
        if m.state.cell((ref, ANY_ELEMENT)) is None and (obj.kind not in CONTAINERS or by_name):
            return slot_value(m, slot)
        entry = _entry(m, ref, obj, key)
        if entry is not None:
            return slot_value(m, slot, entry)
        if (own := own_entry(m, slot)) is not None:
            return own
    elif _is_fetched(m, ref, obj, key):
        return memory.fresh(m, site, Object(flags=frozenset({FETCHING}), text=text), "fetched")
    if key is None and obj.kind is Kind.LIST and m.in_loop:
        # `states[i] = cell(x, states[i]); x = states[i]`
        store = item_stores.of_this_turn(m, site, text)
        stored = m.value(store.value) if store is not None else UNKNOWN
        if stored.refs:
            return stored._replace(root=None)
    # Of a container that comes from elsewhere, the keys that somebody has named here are not all that it has.
    any_of_all = key is None and obj.kind is not Kind.UNKNOWN
    elements = [slot for slot in m.state.slot_names(ref) if slot[1].startswith("[")]
    if first:
        elements = [slot for slot in elements if not slot[1][1:-1].isdecimal() or int(slot[1][1:-1]) >= first]
    held = [slot_value(m, slot) for slot in elements if any_of_all or slot[1] == ANY_ELEMENT]
    if held:
        if (several := _one_of(held)) is not None:
            return several
        found = [_any_of(m, value, site, text) for value in held]
        if obj.kind is Kind.UNKNOWN and item_stores.before(m, site, text) is None:
            # What was stored at one key need not be what stands at another.
            found.append(_another(m, Object(owner=obj.owner), site, text, "element from elsewhere"))
        return join_values(found)
    if PARTS in obj.flags:
        return _part(m, base, obj, key, site, text)
    if LISTS in obj.flags:
        slot = (ref, f"[{key!r}]" if key is not None else ANY_ELEMENT)
        return slot_value(m, slot, Object(Kind.LIST, Sure.PROVEN))
    flags = frozenset({LISTED} if obj.kind is Kind.LIST and obj.sure is Sure.PROVEN else ())
    return _another(m, Object(owner=obj.owner, flags=flags), site, text)


def _one_of(held: Sequence[Value]) -> Value | None:
    """What stands under some key of a table of functions or classes."""
    options = tuple(dict.fromkeys(value.const for value in held))
    if (
        not all(map(tables.is_called, options))
        or not 1 < len(options) <= MAX_OPTIONS
        or any(value.refs for value in held)
    ):
        return None
    return Value(kind=Kind.FUNCTION, const=OneOf(options))


def _is_fetched(m: Machine, ref: int, obj: Object, key: object) -> bool:
    """Whether what stands at a key is made when it is asked for, and nobody here has put anything in."""
    asked = FETCHING in obj.flags or (ARCHIVE in obj.flags and isinstance(key, str)) or kinds.named_source(obj.text)
    return obj.kind is Kind.UNKNOWN and asked and m.state.cell((ref, ANY_ELEMENT)) is None


def _entry(m: Machine, ref: int, obj: Object, key: object) -> Object | None:
    """What an entry of a dictionary or list that was handed in, or stands in a field, is like, as those are that the
    caller or the constructor knows: by its key, it is one."""
    by_key = (
        isinstance(key, str) if obj.kind is Kind.DICT else obj.kind is Kind.LIST and own_entries.is_place(f"[{key}]")
    )
    cell = m.state.cell((ref, ANY_ELEMENT)) if by_key else None
    if cell is None or cell.site >= 0 or len(cell.refs) != 1:
        return None
    like = m.state.object(cell.refs[0])
    known = PLACEHOLDER in like.flags and (obj.kind is Kind.DICT or like.kind is not Kind.UNKNOWN)
    return like._replace(shares=(), flags=like.flags - {PLACEHOLDER}) if known else None


def are_two_keys(one: str, other: str) -> bool:
    """Whether two slots of a container are at keys that are texts, and not the same one."""
    return one != other and all(key.startswith(("['", '["')) for key in (one, other))


def own_entry(m: Machine, slot: Slot) -> Value | None:
    """What a container that a loop has filled has at a key, if that is an object of its own."""
    like = own_entries.like(m, slot)
    if like is None:
        return None
    marks = m.state.cell((slot[0], ANY_ELEMENT))
    return slot_value(m, slot, like)._replace(marks=marks.marks if marks is not None else NO_MARKS)


def _part(m: Machine, base: Value, obj: Object, key: object, site: int, text: str) -> Value:
    """One of the parts that a tensor or an array was split into: two of them do not overlap."""
    whole = {m.state.object(share.of).kind for share in obj.shares}
    made = Object(
        Kind.ARRAY if whole == {Kind.ARRAY} else Kind.TENSOR,
        Sure.PROVEN,
        dtype=obj.dtype,
        requires_grad=obj.requires_grad,
        graph=obj.graph,
        text=text,
    )
    made = made._replace(leaf=Fact.NO if obj.requires_grad > 0 else obj.leaf)
    region = (Part("field", key),) if isinstance(key, int) and key >= 0 else (Part("?"),)
    how = How.INDEX if obj.shares and all(share.how is How.INDEX for share in obj.shares) else How.ROW
    return memory.alias(m, base, site, how, made, region=region, tag="part of several")


def _any_of(m: Machine, value: Value, site: int, text: str) -> Value:
    """Where a slot stands for elements that nobody has told apart, every look finds another one."""
    placeholders = [ref for ref in value.refs if PLACEHOLDER in m.state.object(ref).flags]
    if not placeholders:
        return value
    found = [value._replace(refs=tuple(ref for ref in value.refs if ref not in placeholders))]
    late = frozenset({mark._replace(late=True) for mark in value.marks})
    for ref in placeholders:
        one = _another(m, m.state.object(ref), site, text, f"element {ref}")._replace(marks=late)
        found.append(one)
        for part in m.state.slot_names(ref) if m.state.object(ref).kind in PARTED else ():
            # The tuples of a list, or its dictionaries, are alike: so are their parts.
            for held in m.state.refs_of(part):
                inner = _another(m, m.state.object(held), site, text + part[1], f"element {ref}{part[1]}")
                bind_slot(m, (one.refs[0], part[1]), inner, site)
    return join_values([one for one in found if one.refs])


def _another(m: Machine, like: Object, site: int, text: str, tag: str = "element") -> Value:
    """An element that looks like one that stands for all. What belongs to a module goes on belonging to it."""
    owner = FIELD if like.owner not in ("", LOCAL) else like.owner
    made = like._replace(text=text, owner=owner, flags=like.flags - {PLACEHOLDER})
    if any(share.how is not How.OWN for share in like.shares):
        ref = m.made_at(site, tag)
        m.state.retire(ref)
        shares = tuple(share._replace(region=_visited(share.region, ref)) for share in made.shares)
        return Value((m.state.make(ref, made._replace(site=site, shares=shares)),), made.kind)
    return memory.fresh(m, site, made, tag)


def _visited(region: Region, ref: int) -> Region:
    """The part that is any one of several becomes this turn's one."""
    return tuple(part._replace(value=ref) if part.kind == "each" else part for part in region)


DICTIONARIES = frozenset({"torch.nn.ModuleDict", "torch.nn.ParameterDict"})
"""Modules that hold others by name."""


_LAYERS = "#layers"
"""A slot that nobody reads by name."""


def child_module(m: Machine, ref: int, site: int, text: str, tag: str = "child", key: object = None) -> Value:
    """An element of a `Sequential` or a `ModuleList`: some module that is a part of it, or that at a place, `key`."""
    held = [slot_value(m, slot) for slot in m.state.slot_names(ref) if slot[1].startswith("[")]
    if held:
        return _numbered_layer(m, ref, key, text) or join_values(held)
    if m.state.object(ref).type in ("torch.nn.ParameterList", "torch.nn.ParameterDict"):
        # Many a list of parameters holds statistics that nobody trains: it has to be seen what it was given.
        trained = m.state.object(ref).requires_grad
        one = Object(Kind.PARAMETER, Sure.PROVEN, leaf=Fact.YES, requires_grad=trained, text=text)
        return memory.alias(m, Value((ref,)), site, How.FIELD, one, region=(Part("each"),), tag=tag)
    number = isinstance(key, int) and not isinstance(key, bool)
    part = Part("int", key) if number else Part("field", key) if isinstance(key, str) else Part("each")
    switched = ref | 1 in m.switches.parameters or SWITCHED in m.state.object(ref).flags
    child = children.of(m.state.object(ref))
    flags = {SWITCHED} if switched else set()
    trained = m.state.object(ref).requires_grad
    one = Object(
        Kind.MODULE,
        Sure.LIKELY,
        # What is switched off as a whole is so in each of its parts.
        requires_grad=trained if trained is Fact.NO else Fact.UNKNOWN,
        text=text,
        type=child.type,
        config=(("inplace", True),) if child.inplace else (),
        flags=frozenset(flags | {WRITES_INPUT} if child.writes_input else flags),
    )
    one = chain_layers.with_layers(one, child.layers)
    return memory.alias(m, Value((ref,)), site, How.FIELD, one, region=(part,), tag=tag)


def keep_layers(m: Machine, ref: int, layers: list[int], site: int) -> None:
    """Which layers a chain was made with, in order, beside what stands for any of them; none if nobody knows."""
    m.state.put((ref, _LAYERS), Cell(tuple(layers), Kind.MODULE, site=site) if layers else None)


def _numbered_layer(m: Machine, ref: int, key: object, text: str) -> Value | None:
    """The layer at a place of a chain that is written out and has been given no other one since: `net[0]`."""
    cell = m.state.cell((ref, _LAYERS))
    if cell is None or not isinstance(key, int) or isinstance(key, bool) or not -len(cell.refs) <= key < len(cell.refs):
        return None
    held = m.state.cell((ref, ANY_ELEMENT))
    given = any(slot[1].startswith("[") and slot[1] != ANY_ELEMENT for slot in m.state.slot_names(ref))
    if given or held is None or set(held.refs) != set(cell.refs):
        return None
    layer = m.state.object(cell.refs[key])
    if layer.text.endswith("(...)"):
        # It has no other name.
        m.state.set_object(cell.refs[key], layer._replace(text=text))
    return Value((cell.refs[key],), Kind.MODULE)


def register_module(m: Machine, ref: int, module: Object, name: str | int, value: Value, site: int) -> None:
    """A module or parameter assigned to a module becomes a part of what that module trains: under `name`, or, if that
    is empty, one among several that are not told apart."""
    part = Part("field" if isinstance(name, str) else "int", name) if name != "" else Part("?")
    for held in value.refs:
        inner = m.state.object(held)
        if held == ref or inner.kind not in (Kind.MODULE, Kind.PARAMETER):
            continue
        present = {share.storage for share in inner.shares}
        added = [
            Share(s.storage, How.FIELD, site, ref, (*s.region, part)) for s in module.shares if s.storage not in present
        ]
        if added:
            m.state.set_object(held, inner._replace(shares=(*inner.shares, *added)))
            _forget_saved(m, [share for share in added if name and isinstance(name, str)])


def moved_from_end(m: Machine, ref: int) -> None:
    """Something is put into a list behind what stands there, or taken out: another one is its last entry now. The one
    that was is like all that the loop has put there."""
    for slot in m.state.slot_names(ref) if m.state.object(ref).kind is Kind.LIST else ():
        if own_entries.is_from_end(slot[1]):
            m.state.put(slot, None)


def let_go_of_field(m: Machine, ref: int, name: str, value: Value) -> None:
    """A field of a module is set: what it has held until now is a part of the module by that name no more, and who
    writes the field does not write that."""
    cell = m.state.cell((ref, f".{name}"))
    part = Part("field", name)
    for held in cell.refs if cell is not None and not ref & 1 else ():
        obj = m.state.object(held)
        if held not in value.refs and any(
            share.how is How.FIELD and share.region[-1:] == (part,) for share in obj.shares
        ):
            before = Part("field", f"{name} before")
            shares = tuple(
                share._replace(region=(*share.region[:-1], before)) if share.region[-1:] == (part,) else share
                for share in obj.shares
            )
            m.state.set_object(held, obj._replace(shares=shares))


def _forget_saved(m: Machine, shares: list[Share]) -> None:
    """Another parameter stands in a field: who writes it does not write the one that backward has saved there."""
    for share in shares:
        owner = m.state.object(share.storage)
        saved = {s for s in owner.saved if m.needed.fields.get((s & ~EARLIER, share.storage | 1)) == share.region}
        if saved:
            m.state.set_object(share.storage, owner._replace(saved=owner.saved - saved))


def has_state(obj: Object) -> bool:
    """Whether a module has parameters or buffers, by its class alone; what is not known counts as stateful."""
    row = table.module_class(obj.type) if obj.type else None
    return row is None or row.container or row.stateful


def forget_fields(m: Machine, base: Value) -> None:
    """A method of an object of unknown class was called: the containers in its fields may hold something else by now.

    Thus `graph.ndata["h"] = x`, `graph.update_all(send, gather)`, `h = graph.ndata["h"]`.
    """
    for ref in base.refs:
        if m.state.object(ref).kind is not Kind.UNKNOWN:
            continue
        for field in m.state.slot_names(ref):
            for held in m.state.refs_of(field) if field[1].startswith(".") else ():
                if m.state.object(held).kind is Kind.UNKNOWN:
                    for slot in m.state.slot_names(held):
                        m.state.put(slot, None)


def field_read(m: Machine, key: Key | None, site: int, consumer: str, target: str = "") -> None:
    """A field of `self` that this method has not set is read: another method's doing is read."""
    if key.__class__ is tuple and key[1].startswith(".") and m.state.object(key[0]).owner == "self":
        cell = m.state.cell(key)
        if cell is not None and cell.site == -1:
            m.fact(FieldRead(key[1][1:], site, consumer, m.unit.name, target))


def lives_on(m: Machine, value: Value, target: int) -> str | None:
    """The name of a live parameter or buffer whose storage a value surely sits on, unless it is `target`'s own.

    Live is what a module holds: a field, or one of its parameters. State dicts and plain tensors are not: a checkpoint
    is read once and dropped.
    """
    if len(value.refs) != 1:
        return None
    mine = m.state.object(target).shares
    ref = value.refs[0]
    for _ in range(reading.MAX_CHAIN):
        obj = m.state.object(ref)
        if obj.kind not in TENSORS or any(not share.sure or share.when for share in obj.shares):
            return None
        # Two fields of one module are parts of it, and have nothing in common.
        if any(s.storage == o.storage and overlap(s.region, o.region) is not Fact.NO for s in obj.shares for o in mine):
            return None
        if any(share.how in (How.FIELD, How.PARAMETERS) for share in obj.shares):
            named = naming.key_text(m, value.root)
            return obj.text if obj.text and not obj.text.startswith(("a parameter of", "...")) else named or obj.text
        above = [share.of for share in obj.shares if share.how is not How.OWN]
        if not above or any(share.how is How.STATE for share in obj.shares):
            return None
        ref = above[0]
    return None
