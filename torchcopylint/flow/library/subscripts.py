"""What stands in square brackets: one position, a part that is a view, or what picks several, which is a copy."""

from __future__ import annotations

import re

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import (
    ARGUMENT,
    BUFFERS,
    COMPARISONS,
    DIMENSIONS,
    INDEX_COPY,
    TENSORS,
    Fact,
    How,
    Kind,
    Sure,
    Value,
)
from torchcopylint.flow.running.machine import Machine
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import naming
from torchcopylint.flow.values.state import kind_of

_MAX_STEPS = 4
_OF_PLACES = frozenset({"squeeze", "flatten", "view", "reshape", "ravel", "t", "to", "cpu", "cuda", "long"})
"""What is done to the places that a search has found, to pick by them."""


def constant(m: Machine, index: t.Index) -> object:
    """The constant key of an index, or `None`."""
    if len(index) != 1 or isinstance(index[0], t.Slice):
        return None
    value = m.value(index[0])
    return value.const if isinstance(value.const, int | str) and not isinstance(value.const, t.Dotted) else None


def looks_like_array(m: Machine, index: t.Index) -> bool:
    """Whether only a tensor or an array (or a data frame) takes such an index: several dimensions, one a slice."""
    return len(index) > 1 and any(isinstance(part, t.Slice) or m.value(part).const is ... for part in index)


_COUNTERS = frozenset({"i", "j", "k"})


def is_advanced(m: Machine, index: t.Index) -> Fact:
    """Whether an index copies (a mask, a list, a tensor) or views (numbers, slices, `None`, `...`)."""
    answer = Fact.NO
    for part in index:
        if isinstance(part, t.Slice):
            continue
        value = m.value(part)
        kind = kind_of(value, m.state)
        if kind in BUFFERS or kind in (Kind.LIST, Kind.ITERATOR):
            scalar = all(m.state.object(ref).scalar > 0 for ref in value.refs) if kind in BUFFERS else False
            if kind in BUFFERS and scalar:
                continue
            if kind is Kind.LIST and _holds_slices(m, value):
                continue
            return Fact.YES
        if kind in (Kind.NUMBER, Kind.NONE) or value.const is ...:
            continue
        if kind is Kind.OTHER and not value.refs:
            # `rows = slice(a, b)`: nothing else of that kind is an index.
            continue
        if kind is Kind.UNKNOWN and _always_picks_several(m, value):
            return Fact.YES
        if kind is Kind.TUPLE and (
            len(index) > 1 or any(element.kind in (*BUFFERS, Kind.LIST) for element in _elements(m, value))
        ):
            # `x[..., (0, 1)]` picks two of them, where `x[(0, 1)]` is `x[0, 1]`.
            return Fact.YES
        several = _is_called_several(m, part) or _is_sized(m, part)
        if several or is_mask(m, part) or _is_compared_element_by_element(m, part):
            return Fact.YES
        answer = answer if _is_counter(m, part) else Fact.UNKNOWN
    return answer


_SEVERAL = re.compile(
    r"(?:^|_)(?:idxs|inds|indices|indexes|masks?)$"
    r"|(?:^|_)(?:train|tr|trn|training|val|valid|validation|test|te|tst)_?(?:idx|ind|index|ids)$"
    r"|^(?:idx|ind|index|ids)_?(?:train|tr|trn|val|valid|test|te|tst)$"
)
"""Names of what picks several: the indices of a split, and what says so by its ending."""


def _is_called_several(m: Machine, register: int) -> bool:
    """Whether an index of which nothing is known is called as one is that picks several: `data[train_idx]`."""
    made = m.unit.definitions[register] if register >= 0 else None
    return isinstance(made, t.Load | t.Attribute) and bool(_SEVERAL.search(made.name))


def _always_picks_several(m: Machine, value: Value) -> bool:
    """Whether an index is a list on some paths and a tensor or an array on others: both pick several."""
    held = [m.state.object(ref) for ref in value.refs]
    return len(held) > 1 and all(obj.kind is Kind.LIST or (obj.kind in BUFFERS and not obj.scalar > 0) for obj in held)


def _is_compared_element_by_element(m: Machine, register: int) -> bool:
    """Whether an index of which nothing is known is several: what a comparison of it gives is a mask, or asked for
    `all()` or `any()`. `x = table[ids]; x[ids == -1] = 0`."""
    made = m.unit.definitions[register] if register >= 0 else None
    if not isinstance(made, t.Load):
        return False
    several = _compared(m)
    return bool(several) and any(use.loads and use.register in several for use in uses.of_name(m, made.name))


_COUNTING = frozenset({"len", "max", "min", "sorted"})


def _is_sized(m: Machine, register: int) -> bool:
    """Whether an index of which nothing is known is several, as it is counted or gone through: `len(rows)`."""
    made = m.unit.definitions[register] if register >= 0 else None
    if not isinstance(made, t.Load) or kind_of(m.value(register), m.state) is not Kind.UNKNOWN:
        return False
    consumers = [m.consumer_of(use.register) for use in uses.of_name(m, made.name) if use.loads]
    return any(
        isinstance(event, t.Iterate)
        or (isinstance(event, t.Call) and len(event.arguments) == 1 and _name_of(m, event) in _COUNTING)
        for event in consumers
    )


def _name_of(m: Machine, call: t.Call) -> str:
    called = m.unit.definitions[call.function] if call.function >= 0 else None
    return called.name if isinstance(called, t.Load) else ""


def _compared(m: Machine) -> frozenset[int]:
    """The operands of comparisons in a unit whose result is a mask: it picks elements, or is asked for all of them."""
    if m.index.compared is None:
        subscripts = [*(e.subscript for e in m.index.of(t.Item)), *(e.subscript for e in m.index.of(t.StoreItem))]
        masks = {part for subscript in subscripts for part in subscript if isinstance(part, int)}
        masks |= {event.base for event in m.index.of(t.Invoke) if event.name in ("all", "any")}
        comparisons = (e for e in m.index.of(t.Operate) if e.symbol in COMPARISONS and e.out in masks)
        m.index.compared = frozenset(operand for event in comparisons for operand in event.operands)
    return m.index.compared


def _is_counter(m: Machine, register: int) -> bool:
    """Whether an index of which nothing is known is called as only a number is, or is so far from one: `x[j + 1]`."""
    made = m.unit.definitions[register] if register >= 0 else None
    if isinstance(made, t.Operate) and made.symbol in ("+", "-") and len(made.operands) == 2:
        others = [m.value(operand) for operand in made.operands[1:]]
        return _is_counter(m, made.operands[0]) and all(isinstance(other.const, int) for other in others)
    if isinstance(made, t.Load) and (made.name in _COUNTERS or uses.is_number(m, made)):
        return True
    return _is_of_swapped_pair(m, made)


def _is_of_swapped_pair(m: Machine, made: t.Event | None) -> bool:
    """Whether an index is one of the two of a loop's element by which something is written at both places, as who swaps
    them does: `for pair in pairs: x[pair[0]], x[pair[1]] = ...`. What picks several is rarely handed out in pairs."""
    texts = _pair(m, made)
    if not texts:
        return False
    stores = m.index.of(t.StoreItem)
    written = [
        (naming.text_of(m, store.base), naming.text_of(m, part))
        for store in stores
        for part in store.subscript
        if isinstance(part, int)
    ]
    return any(all((base, text) in written for text in texts) for base, _ in written)


def _pair(m: Machine, made: t.Event | None) -> tuple[str, str] | None:
    """The two parts of a loop's element, one of which something is: `pair[0]` and `pair[1]`, or `left` and `right`."""
    if isinstance(made, t.Item):
        element = m.unit.definitions[made.base] if made.base >= 0 else None
        name = element.name.partition("#")[0] if isinstance(element, t.Load) and _of_loop(m, element) else ""
        texts = (f"{name}[0]", f"{name}[1]")
        return texts if name and naming.text_of(m, made.out) in texts else None
    bound = uses.bindings_before(m, made) if isinstance(made, t.Load) else []
    part = m.unit.definitions[bound[0]] if len(bound) == 1 and bound[0] >= 0 else None
    if not isinstance(part, t.Unpack) or not isinstance(m.unit.definitions[part.value], t.Iterate):
        return None
    names = [use.name for use in m.index.of(t.Bind) if _is_beside(m, use.value, part)]
    return (names[0].partition("#")[0], names[1].partition("#")[0]) if len(names) == 2 else None


def _is_beside(m: Machine, register: int, part: t.Unpack) -> bool:
    other = m.unit.definitions[register] if register >= 0 else None
    return isinstance(other, t.Unpack) and other.value == part.value


def _of_loop(m: Machine, load: t.Load) -> bool:
    bound = uses.bindings_before(m, load)
    return len(bound) == 1 and bound[0] >= 0 and isinstance(m.unit.definitions[bound[0]], t.Iterate)


_MASK = re.compile(r"(?:^|_)mask$")


def is_mask(m: Machine, register: int) -> bool:
    """Whether an index of unknown kind is what a comparison gave, or where that holds, or is called a mask: nobody
    takes an element by `True`, and a search may find several."""
    made = m.unit.definitions[register] if register >= 0 else None
    if isinstance(made, t.Load | t.Attribute) and _MASK.search(made.name):
        return kind_of(m.value(register), m.state) is Kind.UNKNOWN
    if isinstance(made, t.Load):
        bound = uses.bindings_before(m, made)
        made = m.unit.definitions[bound[0]] if len(bound) == 1 and bound[0] >= 0 else None
    if _is_search(m, made):
        return True
    if not isinstance(made, t.Operate) or kind_of(m.value(made.out), m.state) is not Kind.UNKNOWN:
        return False
    if made.symbol in ("&", "|") and len(made.operands) == 2:
        return any(is_mask(m, operand) for operand in made.operands)
    if made.symbol == "~":
        # `x[~done]`: a place from the end is written with a minus, but by who counts (`x[~i]`).
        return not _is_counter(m, made.operands[0])
    return made.symbol in COMPARISONS


def _is_search(m: Machine, made: t.Event | None) -> bool:
    """Whether something is the places where a comparison holds: `(x == y).nonzero().squeeze(1)`."""
    for _ in range(_MAX_STEPS):
        base = (
            m.unit.definitions[made.base]
            if (made.__class__ is t.Invoke or made.__class__ is t.Item) and made.base >= 0
            else None
        )
        if made.__class__ is t.Invoke and made.name == "nonzero":
            return isinstance(base, t.Operate) and base.symbol in (*COMPARISONS, "&", "|")
        if made.__class__ is t.Invoke and made.name not in _OF_PLACES:
            return False
        made = base
    return False


def is_part_by_mask(m: Machine, event: t.Item) -> bool:
    """Whether a part is taken by a mask, and then written as only a tensor or an array can be: `x[y > 0][:, 0] = 1`."""
    use = m.consumer_of(event.out)
    written = isinstance(use, t.StoreItem) and use.base == event.out and looks_like_array(m, use.subscript)
    return (
        written and len(event.subscript) == 1 and isinstance(event.subscript[0], int) and is_mask(m, event.subscript[0])
    )


def picks_by_tensor(m: Machine, index: t.Index) -> bool:
    """Whether only a tensor, an array or a data frame takes such an index: a tensor, an array or a list, that picks
    several. No dictionary has a list for a key."""
    parts = [part for part in index if not isinstance(part, t.Slice)]
    kinds = [kind_of(m.value(part), m.state) for part in parts]
    several = any(k in BUFFERS or k is Kind.LIST or is_mask(m, part) for k, part in zip(kinds, parts, strict=True))
    return several and sure_copy(m, index) > Sure.NOT


def _elements(m: Machine, value: Value) -> list[Value]:
    """What a tuple holds that stands for several indices: `x[torch.where(x > 0)]`."""
    slots_of = [slot for ref in value.refs for slot in m.state.slot_names(ref)]
    held = [m.state.cell(slot) for slot in slots_of]
    return [Value(cell.refs, cell.kind) for cell in held if cell is not None]


def _holds_slices(m: Machine, value: Value) -> bool:
    """Whether a list is made of what no tensor takes for a position: such a list is taken for a tuple."""
    held = _elements(m, value)
    return bool(held) and all(element.kind is Kind.OTHER for element in held)


def sure_copy(m: Machine, index: t.Index) -> Sure:
    """How sure it is that an advanced index copies: an integer tensor without dimensions is taken for a number."""
    best = Sure.NOT
    for part in index:
        if not isinstance(part, t.Slice):
            best = max(best, _sure_copy(m, part))
    return best


def _sure_copy(m: Machine, register: int) -> Sure:
    value = m.value(register)
    kind = kind_of(value, m.state)
    if kind is Kind.TUPLE:
        return max((is_many(m, element) for element in _elements(m, value)), default=Sure.NOT)
    if kind is Kind.LIST:
        return min((m.state.object(ref).sure for ref in value.refs), default=Sure.NOT)
    if kind is Kind.UNKNOWN and (is_mask(m, register) or _is_sized(m, register)):
        return Sure.LIKELY
    return is_many(m, value)


def is_many(m: Machine, value: Value) -> Sure:
    """How sure it is that an index has dimensions, so that it picks several."""
    kind = kind_of(value, m.state)
    if kind not in BUFFERS:
        return Sure.NOT
    found = Sure.PROVEN
    for ref in value.refs:
        obj = m.state.object(ref)
        part = any(share.how in (How.ROW, How.INDEX) for share in obj.shares)
        if obj.dtype == "bool" or {DIMENSIONS, INDEX_COPY} & obj.flags:
            found = min(found, obj.sure)
        elif obj.text.endswith("[...]") and not _SEVERAL.search(str(value.root)):
            # What a list holds that was handed in may be one number each: `for index in indices: x[index][0] = 1`.
            return Sure.NOT
        elif kind is Kind.ARRAY and obj.owner == ARGUMENT and not part:
            # Who says that he takes an array means no number.
            found = min(found, obj.sure, Sure.LIKELY)
        elif kind in TENSORS and not part and obj.scalar is Fact.UNKNOWN and "argm" not in obj.text:
            found = min(found, Sure.LIKELY)
        else:
            return Sure.NOT
    return found


def names_columns(m: Machine, index: t.Index) -> bool:
    """Whether a list of texts stands in the brackets: the columns that `frame[["x", "y"]]` picks are a copy."""
    made = m.unit.definitions[index[0]] if len(index) == 1 and isinstance(index[0], int) and index[0] >= 0 else None
    items = (
        [m.unit.definitions[item] for item in made.items] if isinstance(made, t.Make) and made.kind == "list" else []
    )
    return bool(items) and all(isinstance(one, t.Const) and isinstance(one.value, str) for one in items)
