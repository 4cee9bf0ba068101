"""Square brackets on tensors and arrays: views of a part, copies by advanced indexing, writes into a part."""

from __future__ import annotations

import re

from torchcopylint.flow import tape as t
from torchcopylint.flow.autograd import grads, refusals, saving
from torchcopylint.flow.facts import DataAccess
from torchcopylint.flow.graphs import runs
from torchcopylint.flow.library import subscripts
from torchcopylint.flow.library.bounds import bound
from torchcopylint.flow.model import (
    ADVANCED,
    BUFFERS,
    CROSSWISE,
    DIMENSIONS,
    EITHER,
    INDEX_COPY,
    INDEX_COPY_LIKELY,
    INFERENCE,
    TENSORS,
    Bound,
    Fact,
    How,
    Kind,
    Object,
    Part,
    Region,
    Sure,
    Value,
)
from torchcopylint.flow.running.machine import Machine
from torchcopylint.flow.storages import conversions, overlaps, reading, swaps, writing
from torchcopylint.flow.tapes import numbers, other_versions, uses
from torchcopylint.flow.tapes.layout import UNIT
from torchcopylint.flow.values import memory, naming
from torchcopylint.flow.values.sites import Site
from torchcopylint.flow.values.state import kind_of

_IDENTIFIER = re.compile(r"[^\W\d]\w*")


def region_of(m: Machine, index: t.Index) -> Region:
    """The part of a storage that a basic index covers."""
    parts: list[Part] = []
    for number, part in enumerate(index):
        if isinstance(part, t.Slice):
            bounds = [None if r == t.NO_REGISTER else bound(m, r) for r in (part.lower, part.upper)]
            if bounds == [None, None] and part.step == t.NO_REGISTER:
                parts.append(Part("all"))
            elif part.step != t.NO_REGISTER:
                step = bound(m, part.step)
                told = Bound.UNTOLD not in (*bounds, step)
                parts.append(Part("stride", tuple(bounds), step) if told else Part("?"))
            else:
                parts.append(Part("slice", bounds[0], bounds[1]))
            continue
        value = m.value(part)
        if isinstance(value.const, int):
            parts.append(Part("int", int(value.const)))
        elif value.kind is Kind.NONE or value.const is ...:
            # These shift the dimensions: what follows can be compared with what follows the same thing only.
            behind = region_of(m, index[number + 1 :]) if value.const is ... else None
            parts.append(Part("?", behind))
            break
        else:
            parts.append(named(m, part))
    return tuple(parts)


def named(m: Machine, register: int) -> Part:
    """The part that an index takes which is not a number known here, by its name if it has one."""
    text = naming.text_of(m, register)
    if "..." in text or "(" in text:
        return Part("?")
    for name in _names_in(m, register):
        m.shown.region_names.setdefault(name, set())
    return Part("name", text)


def _names_in(m: Machine, register: int) -> list[str]:
    event = m.unit.definitions[register] if register >= 0 else None
    if isinstance(event, t.Load):
        return [event.name]
    if isinstance(event, t.Attribute):
        return _names_in(m, event.base)
    if isinstance(event, t.Item):
        parts = [part for part in event.subscript if isinstance(part, int)]
        return [name for part in (event.base, *parts) for name in _names_in(m, part)]
    return []


def forget_name(m: Machine, name: str) -> None:
    """A name is bound anew: parts that were named by its old value are no longer comparable."""
    plain = name.partition("#")[0]
    named = m.shown.region_names.get(plain)
    for ref in sorted(named) if named else ():
        obj = m.state.object(ref)
        shares = tuple(
            share._replace(region=tuple(Part("?") if plain in names_of(p) else p for p in share.region))
            for share in obj.shares
        )
        if shares != obj.shares:
            m.state.set_object(ref, obj._replace(shares=shares))


def names_of(part: Part) -> list[str]:
    """The names that say which part it is: `i` of `x[i]`, `pair` of `x[pair[0]]`, `start` and `n` of
    `x[start : start + n]`."""
    if part.kind == "name":
        text = str(part.value)
        return _IDENTIFIER.findall(text) if "[" in text else [text]
    if part.kind == "?" and isinstance(part.value, tuple):
        return [name for behind in part.value for name in names_of(behind)]
    ends = part.value if part.kind == "stride" and isinstance(part.value, tuple) else (part.value,)
    bounds = (*ends, part.upper) if part.kind in ("slice", "stride") else ()
    return [name for bound in bounds if isinstance(bound, str) for name in _IDENTIFIER.findall(bound)]


def _part_of(obj: Object, kind: Kind, text: str) -> Object:
    """What is known of a part of a tensor or an array."""
    made = Object(kind, obj.sure, dtype=obj.dtype, text=text, requires_grad=obj.requires_grad, graph=obj.graph)
    made = made._replace(flags=obj.flags & {EITHER})
    return made._replace(leaf=Fact.NO if obj.requires_grad > 0 else obj.leaf) if kind in TENSORS else made


def _masks_by_tensor(m: Machine, index: t.Index) -> bool:
    """Whether a mask picks elements that is surely a tensor: of another tensor, in a file that has nothing else."""
    values = [m.value(part) for part in index if isinstance(part, int)]
    objects = [[m.state.object(ref) for ref in value.refs] for value in values]
    masks = [held for held in objects if held and all(o.kind is Kind.TENSOR and o.dtype == "bool" for o in held)]
    return m.world.deals_in_tensors_only and bool(masks)


def item_of_buffer(m: Machine, base: Value, obj: Object, event: t.Item, text: str) -> Value:
    """`base[...]` of a tensor or an array: a view of a part, a copy, or one of them."""
    advanced = subscripts.is_advanced(m, event.subscript)
    kind = obj.kind if obj.kind is not Kind.PARAMETER else Kind.TENSOR
    if kind is Kind.UNKNOWN and _masks_by_tensor(m, event.subscript):
        kind, obj = Kind.TENSOR, obj._replace(kind=Kind.TENSOR, sure=Sure.LIKELY)
    made = _part_of(obj, kind, text)
    if advanced is Fact.YES:
        reading.read(m, base, event.site, "operand")
        sure = subscripts.sure_copy(m, event.subscript)
        sure = min(sure, obj.sure) if kind is not Kind.UNKNOWN else sure
        flags = {Sure.PROVEN: {INDEX_COPY}, Sure.LIKELY: {INDEX_COPY_LIKELY}}.get(sure, set())
        if m.state.mode.inference > 0 and kind in TENSORS:
            flags = flags | {INFERENCE}
        picked = memory.fresh(m, event.site, made._replace(flags=made.flags | flags | {ADVANCED}), "item")
        saving.note_indices(m, _picking(m, event.subscript), picked.refs, Site(event.site, text, "[...]", "item"))
        return picked
    if kind is Kind.BYTES and obj.type != memory.WINDOW:
        reading.read(m, base, event.site, "operand")
        return memory.fresh(m, event.site, made, "item")
    if kind is Kind.BYTES:
        made = made._replace(type=obj.type)
    region = region_of(m, event.subscript)
    # One number of a one-dimensional array is a copy, a row of another is a view: only a slice is surely one, and what
    # `...` stands beside, which is an array without dimensions then.
    number = kind is Kind.ARRAY and not any(part.kind in ("all", "slice") for part in region)
    number = number and not any(isinstance(part, int) and m.value(part).const is ... for part in event.subscript)
    if number and advanced is Fact.NO and _is_of_loss(m, obj):
        reading.read(m, base, event.site, "operand")
        return Value(kind=Kind.NUMBER)
    certain = advanced is Fact.NO and not number
    if any(isinstance(part, int) and m.value(part).kind is Kind.NONE for part in event.subscript):
        made = made._replace(config=(*made.config, (UNIT, True)))
    if all(isinstance(part, t.Slice) for part in event.subscript):
        made = made._replace(flags=made.flags | obj.flags & {DIMENSIONS})
    value = memory.alias(m, base, event.site, How.INDEX, made, region=region, sure=certain, tag="item")
    if kind not in TENSORS:
        conversions.reverse(m, value, event.subscript)
    for part in region:
        for name in names_of(part):
            m.shown.region_names.setdefault(name, set()).add(value.refs[0])
    return value


def _is_of_loss(m: Machine, obj: Object) -> bool:
    """Whether an array is that of a tensor from which backward starts with nothing given: it has one element."""
    held = {key for share in obj.shares for key, _ in m.state.holders_of(share.storage)}
    starts = (m.unit.definitions[e.base] for e in m.index.of(t.Invoke) if e.name == "backward" and not e.arguments)
    return any(isinstance(start, t.Load) and start.name in held for start in starts)


def row(m: Machine, base: Value, obj: Object, site: int, text: str, tag: str, position: int | None = None) -> Value:
    """One element of iterating over, or unpacking, a tensor or an array."""
    kind = obj.kind if obj.kind is not Kind.PARAMETER else Kind.TENSOR
    made = _part_of(obj, kind, text)
    region = (Part("int", position) if position is not None else Part("?"),)
    return memory.alias(m, base, site, How.ROW, made, region=region, sure=kind is not Kind.ARRAY, tag=tag)


def store_into_buffer(m: Machine, base: Value, event: t.StoreItem, value: Value, text: str) -> None:
    """`base[...] = value` on a tensor or an array: what is stored is read, and the part is written."""
    mine = {share.storage for ref in base.refs for share in m.state.object(ref).shares}
    theirs = {share.storage for ref in value.refs for share in m.state.object(ref).shares}
    crosswise = _is_crosswise(m, event)
    consumer = "swap" if mine & theirs or crosswise else "store"
    reading.read(m, value, event.site, consumer, CROSSWISE if crosswise else text)
    if consumer != "swap" and kind_of(base, m.state) in BUFFERS:
        swaps.note(m, base, value, event.site)
    numbers.note_stored(m, base, value, "[...] =", event.site, text)
    region = region_of(m, event.subscript) if subscripts.is_advanced(m, event.subscript) is Fact.NO else (Part("?"),)
    whole = all(part.kind == "all" for part in region) or _is_ellipsis(m, event.subscript)
    sums = not runs.is_field_from_before(m, base.root) and runs.accumulate(
        m, event.site, base, value, text, naming.spelling(m, event.value), "item"
    )
    if kind_of(base, m.state) in TENSORS and subscripts.is_advanced(m, event.subscript) is Fact.NO:
        written = Site(event.site, f"{text}[{naming.index_text(m, event.subscript)}]", "[...] =", "item")
        overlaps.note(m, base, () if whole else region, [value], written)
    # What an index tensor picks is written from all of the tensor, `x[order] = x`: torch refuses that as well.
    picked = [value] if subscripts.is_advanced(m, event.subscript) is Fact.YES else []
    overlaps.note_index(m, base, [*_parts(m, event.subscript), *picked], Site(event.site, text, "[...] =", "item"))
    if _is_that_part(m, base, value, region):
        at = Site(event.site, text, "[...] =", "item")
        refusals.check(m, base, [value], at)
        grads.check_leaf(m, base, at, view=True)
        return
    writing.write(
        m,
        base,
        event.site,
        op="[...] =",
        form="item",
        name=text,
        reads_old=_is_made_of_itself(m, event, text),
        region=() if whole else region,
    )
    refusals.check(m, base, [value], Site(event.site, text, "[...] =", "item"))
    grads.after_write(m, base, [value], Site(event.site, text, "[...] =", "item"), view=True)
    saving.note_indices(m, _picking(m, event.subscript), base.refs, Site(event.site, text, "[...] =", "item"))
    if sums:
        runs.mark_sum(m, event.site, base)


def _is_made_of_itself(m: Machine, event: t.StoreItem, text: str) -> bool:
    """Whether a part is set to what is computed from that part, as an operator would: `mask[i] = ~mask[i]`."""
    made = m.unit.definitions[event.value] if event.value >= 0 else None
    if not isinstance(made, t.Operate):
        return False
    index = naming.index_text(m, event.subscript)
    parts = [m.unit.definitions[operand] for operand in made.operands if operand >= 0]
    return any(
        isinstance(part, t.Item)
        and naming.text_of(m, part.base) == text
        and naming.index_text(m, part.subscript) == index
        for part in parts
    )


def _is_that_part(m: Machine, base: Value, value: Value, region: Region) -> bool:
    """Whether what is stored into a part is a view of that very part, so that nothing changes: `mine = x[a:b]`,
    `mine[0] += 1`, `x[a:b] = mine`."""
    refs = (*base.refs, *value.refs)
    # Two names of the target and none of the value, which is a number, are two refs as well.
    if len(base.refs) != 1 or len(value.refs) != 1 or any(ref & 1 for ref in refs):
        return False
    if any(part.kind not in overlaps.BOUNDED for part in region):
        return False
    above, part = (m.state.object(ref).shares for ref in refs)
    told = not any(Bound.UNTOLD in (one.value, one.upper) for one in region)
    if not told or len(above) != 1 or len(part) != 1 or above[0].storage != part[0].storage:
        return False
    # Nothing on the way has put the elements in another order.
    chain = [link.how for _, link in reading.chain_of(m, value.refs[0], part[0]) if link.how is not None]
    surely = part[0].sure and not part[0].when and not set(chain) - overlaps.PARTS
    return surely and part[0].region == (*above[0].region, *region)


def _is_crosswise(m: Machine, event: t.StoreItem) -> bool:
    """Whether what is stored was taken by its name before the same statement has stored something into that:
    `a[:], b[:] = b, a`."""
    part = m.unit.definitions[event.value] if event.value >= 0 else None
    both = m.unit.definitions[part.value] if isinstance(part, t.Unpack) and part.value >= 0 else None
    if not isinstance(part, t.Unpack) or not isinstance(both, t.Make) or not 0 < part.position < len(both.items):
        return False
    loaded = m.unit.definitions[both.items[part.position]]
    if not isinstance(loaded, t.Load):
        return False
    earlier = [store for store in m.index.of(t.StoreItem) if loaded.site < store.site < event.site]
    taken = _item_under(m, loaded)
    return any(
        naming.text_of(m, store.base) == loaded.name
        or (taken is not None and _same_part(m, (store.base, store.subscript), (taken.base, taken.subscript)))
        for store in earlier
    )


def _item_under(m: Machine, loaded: t.Load) -> t.Item | None:
    """The part of something that a name stands for: `left`, of `left, right = x[..., :k], x[..., k:]`."""
    bound = uses.bindings_before(m, loaded)
    made = m.unit.definitions[bound[0]] if len(bound) == 1 and bound[0] >= 0 else None
    both = m.unit.definitions[made.value] if isinstance(made, t.Unpack) else None
    if isinstance(made, t.Unpack) and isinstance(both, t.Make) and 0 <= made.position < len(both.items):
        made = m.unit.definitions[both.items[made.position]]
    return made if isinstance(made, t.Item) else None


def _same_part(m: Machine, one: tuple[int, t.Index], other: tuple[int, t.Index]) -> bool:
    """Whether two parts are spelt alike, and are views that only a tensor or an array has."""
    texts = [f"{naming.text_of(m, base)}[{naming.index_text(m, index)}]" for base, index in (one, other)]
    return (
        texts[0] == texts[1]
        and subscripts.looks_like_array(m, one[1])
        and subscripts.is_advanced(m, one[1]) is not Fact.YES
    )


def is_stored_back(m: Machine, item: t.Item, part: Value) -> bool:
    """Whether `base[...] op= value` writes a tensor or an array by storing the result: the part may be a copy."""
    if kind_of(m.value(item.base), m.state) not in BUFFERS:
        return False
    shares = [share for ref in part.refs for share in m.state.object(ref).shares]
    return not all(share.sure and share.how in (How.INDEX, How.ROW) for share in shares)


def write_back(m: Machine, item: t.Item, value: Value, at: Site) -> None:
    """`base[index] += value` where the index may have copied: what was computed is stored back into `base`."""
    base = m.value(item.base)
    for single, obj in m.each(memory.by_kind(m, base)):
        if obj.kind not in BUFFERS:
            continue
        region = region_of(m, item.subscript) if subscripts.is_advanced(m, item.subscript) is Fact.NO else (Part("?"),)
        writing.write(m, single, at.site, op=at.op, form=at.form, name=at.name, reads_old=True, region=region)
        overlaps.note_index(m, single, _parts(m, item.subscript), at)
        refusals.check(m, single, [value], at)
        grads.after_write(m, single, [value], at, view=True)
        saving.note_indices(m, _picking(m, item.subscript), single.refs, at)


def _parts(m: Machine, index: t.Index) -> list[Value]:
    return [m.value(part) for part in index if not isinstance(part, t.Slice)]


def read_places(m: Machine, base: Value, index: t.Index, site: int) -> None:
    """Who picks by a tensor or an array looks at what it holds: `table[places]`, `x[mask] = 0`, `x[start:end]`.

    What takes it for a key does not: `self.state[p]`.
    """
    picked = any(m.state.object(ref).kind in BUFFERS for ref in base.refs)
    bounds = [[part.lower, part.upper, part.step] if isinstance(part, t.Slice) else [part] for part in index]
    for value in [m.value(register) for part in bounds for register in part if register != t.NO_REGISTER]:
        if value.marks and kind_of(value, m.state) in BUFFERS and (picked or _are_places(m, value)):
            reading.read(m, value, site, "operand", "[...]")


def _are_places(m: Machine, value: Value) -> bool:
    """Whether a tensor is one of places or a mask, as an array, which is no key, is taken for one."""
    held = [m.state.object(ref) for ref in value.refs]
    return all(obj.kind is Kind.ARRAY or obj.dtype in ("int64", "bool") for obj in held)


def _picking(m: Machine, index: t.Index) -> list[Value]:
    """The tensors in an index that surely pick several elements: what has no dimensions is taken for a number."""
    values = [value for value in _parts(m, index) if kind_of(value, m.state) in TENSORS]
    return [value for value in values if subscripts.is_many(m, value) is Sure.PROVEN]


def _is_ellipsis(m: Machine, index: t.Index) -> bool:
    return len(index) == 1 and not isinstance(index[0], t.Slice) and m.value(index[0]).const is ...


_OF_THE_SAME_SHAPE = frozenset({"cpu", "cuda", "numpy", "float", "double", "clone"})
"""What a tensor is on its way to a number, where it was to have one element."""


def note_data_index(m: Machine, event: t.Item) -> None:
    """`x.data[0]`, `x.data.cpu().numpy()[0]`: the old way to get a number out of a tensor without dimensions."""
    base = event.base
    made = m.unit.definitions[base]
    while base not in m.shown.data_reads and isinstance(made, t.Invoke) and made.name in _OF_THE_SAME_SHAPE:
        base = made.base
        made = m.unit.definitions[base]
    if base not in m.shown.data_reads or subscripts.constant(m, event.subscript) != 0:
        return
    doubted = other_versions.is_asked_for(m, event.site)
    for index, fact in enumerate(m.facts.get(m.shown.data_reads[base], ())):
        if isinstance(fact, DataAccess) and fact.form == "read":
            fact = fact._replace(op="[0]")
            m.facts[m.shown.data_reads[base]][index] = (
                fact._replace(sure=Sure.NOT, named_loss=False) if doubted else fact
            )
