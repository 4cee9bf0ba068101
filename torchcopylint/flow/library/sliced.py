"""What a subscript says of something unknown: in a file that deals in tensors alone it is one, else one or an array."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.library import subscripts
from torchcopylint.flow.model import ARGUMENT, COMPARISONS, EITHER, Kind, Object, Sure, Value
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import memory
from torchcopylint.flow.values.state import kind_of
from torchcopylint.knowledge import table

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

SEVERAL_PARTS = "[...]"
"""Stands for square brackets with several parts among the names that have shown what something is."""
_FRAMES = frozenset({"loc", "iloc", "at", "iat", "values", "data"})
"""What a frame, or a file, has under its own names: a copy at times."""
_OF_ARRAYS = frozenset({"astype", "flatten", "ravel", "reshape", "swapaxes"})
"""Methods that arrays have and neither lists nor dictionaries; a frame is not written by the number of a place."""


def note(m: Machine, base: Value, event: t.Item | t.StoreItem) -> Value:
    """The value of the base of a subscript, where unknown things in it may have turned out to be tensors."""
    unknown = [ref for ref in base.refs if m.state.object(ref).kind is Kind.UNKNOWN]
    if not unknown:
        return base
    # What is read at the places that a tensor names may be a dataset.
    by_tensor = isinstance(event, t.StoreItem) and any(
        not isinstance(part, t.Slice) and kind_of(m.value(part), m.state) is Kind.TENSOR for part in event.subscript
    )
    shown = by_tensor or _takes_number(m, event) or _has_dimensions(m, event.subscript) or _is_mask(m, base, event)
    if not shown and not _is_reshaped(m, event):
        return base
    if m.world.star_imports:
        return base
    if m.world.deals_in_tensors_only:
        memory.refine(m, base, Kind.TENSOR, Sure.LIKELY)
        m.note_evidence(base, frozenset({SEVERAL_PARTS}))
    elif (
        m.world.deals_in_memory
        and unknown == list(base.refs)
        and all(_is_torchs(m, ref) or (by_tensor and _is_handed_in(m, ref)) for ref in unknown)
    ):
        memory.refine(m, base, Kind.TENSOR, Sure.LIKELY)
    elif m.world.deals_in_memory and not _is_of_frame(m, event.base):
        kept = tuple(ref for ref in base.refs if _is_same_again(m.state.object(ref)))
        memory.refine(m, base._replace(refs=kept), Kind.ARRAY, Sure.LIKELY, flag=EITHER)
    return base._replace(kind=m.state.object(base.refs[0]).kind) if len(base.refs) == 1 else base


def _is_torchs(m: Machine, ref: int) -> bool:
    """Whether a method has made something that tensors have, and no array: `x.clone()`."""
    site = m.state.object(ref).site
    made = m.unit.definitions[m.index.calls[site]] if site in m.index.calls else None
    if not isinstance(made, t.Invoke):
        return False
    op = table.tensor_method(made.name)
    return op is not None and op.result == "tensor" and table.array_method(made.name) is None


def _is_handed_in(m: Machine, ref: int) -> bool:
    """Whether something is a parameter, or stands in a container. If it is set at places that a tensor names,
    it is a tensor: of those places somebody makes an array first, if it is one."""
    obj = m.state.object(ref)
    return obj.owner == ARGUMENT or (obj.text.endswith("]") and not memory.may_be_made_anew(obj))


def _is_same_again(obj: Object) -> bool:
    """Whether each look finds the same object: not what a field may make anew, but the entry of a dictionary."""
    return not memory.may_be_made_anew(obj) or (obj.text.endswith("']") and "." not in obj.text.replace("...", ""))


def _is_of_frame(m: Machine, register: int) -> bool:
    """Whether a value is what a frame is indexed by: `df.loc[:, "a"]`."""
    made = m.unit.definitions[register]
    return isinstance(made, t.Attribute) and made.name in _FRAMES


def _has_dimensions(m: Machine, index: t.Index) -> bool:
    """Whether an index has several parts, one of them a slice or `...`, and none a text, as frames have them."""
    texts = [part for part in index if not isinstance(part, t.Slice) and isinstance(m.value(part).const, str)]
    return subscripts.looks_like_array(m, index) and not texts


def _takes_number(m: Machine, event: t.Item | t.StoreItem) -> bool:
    """`x[a:b] = 0`, `x[a:b] -= 2`: what takes one number for several places has elements; a list refuses it, unless it
    is to be repeated, `rows[1:] *= 2`."""
    if len(event.subscript) != 1 or not isinstance(event.subscript[0], t.Slice):
        return False
    if isinstance(event, t.StoreItem):
        register, repeats = event.value if not event.augmented else -1, False
    else:
        used = m.consumer_of(event.out)
        augmented = isinstance(used, t.Augment) and used.target == event.out
        register, repeats = (
            (used.value, used.symbol == "*=") if isinstance(used, t.Augment) and augmented else (-1, False)
        )
    made = m.unit.definitions[register] if register >= 0 else None
    # What is stored is known by now; what is added, by its literal alone.
    stored = m.value(register).const if isinstance(event, t.StoreItem) and register >= 0 else None
    number = made.value if isinstance(made, t.Const) else stored
    return isinstance(number, float) or (isinstance(number, int) and not repeats)


def _is_reshaped(m: Machine, event: t.Item | t.StoreItem) -> bool:
    """`x[4] += 0.5`, `x[:3] = centre`: what is written so, and has a method of arrays alone under the same name before
    or behind that, on one path at least, is one."""
    load = m.unit.definitions[event.base] if event.base >= 0 else None
    used = m.consumer_of(event.out) if isinstance(event, t.Item) else event
    written = used is event or (isinstance(used, t.Augment) and isinstance(event, t.Item) and used.target == event.out)
    if not isinstance(load, t.Load) or not written or not all(_is_place(m, part) for part in event.subscript):
        return False
    bound = set(uses.bindings_before(m, load))
    asked = (m.unit.definitions[e.base] for e in m.index.of(t.Invoke) if e.name in _OF_ARRAYS and e.base >= 0)
    return any(
        isinstance(one, t.Load) and one.name == load.name and bound <= {*uses.bindings_before(m, one)} for one in asked
    )


def _is_place(m: Machine, part: int | t.Slice) -> bool:
    return isinstance(part, t.Slice) or type(m.value(part).const) is int


def _is_mask(m: Machine, base: Value, event: t.Item | t.StoreItem) -> bool:
    """`x[x > 3]`: what is compared and indexed by the result of that has elements; so has what is set where something
    else compares so, `labels[mask == 0] = -100`."""
    index = event.subscript
    if len(index) != 1 or isinstance(index[0], t.Slice):
        return False
    made = m.unit.definitions[index[0]] if index[0] >= 0 else None
    return (
        isinstance(made, t.Operate)
        and made.symbol in COMPARISONS
        and (isinstance(event, t.StoreItem) or any(m.value(operand).refs == base.refs for operand in made.operands))
    )
