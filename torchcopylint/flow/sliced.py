"""What a subscript says of something unknown: in a file that deals in tensors and in no arrays, it is one of these."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import indexing, memory
from torchcopylint.flow import tape as t
from torchcopylint.flow.model import COMPARISONS, Kind, Sure, Value
from torchcopylint.flow.state import kind_of

if TYPE_CHECKING:
    from torchcopylint.flow.machine import Machine


def note(m: Machine, base: Value, event: t.Item | t.StoreItem) -> Value:
    """The value of the base of a subscript, where unknown things in it may have turned out to be tensors."""
    unknown = [ref for ref in base.refs if m.state.object(ref).kind is Kind.UNKNOWN]
    if not unknown:
        return base
    # What is read at the places that a tensor names may be a dataset.
    stored = isinstance(event, t.StoreItem) and any(
        not isinstance(part, t.Slice) and kind_of(m.value(part), m.state) is Kind.TENSOR for part in event.subscript
    )
    if not (stored or _has_dimensions(m, event.subscript) or _is_mask(m, base, event.subscript)):
        return base
    if m.world.star_imports or not m.world.deals_in_tensors_only:
        return base
    memory.refine(m, base, Kind.TENSOR, Sure.LIKELY)
    return base._replace(kind=m.state.object(base.refs[0]).kind) if len(base.refs) == 1 else base


def _has_dimensions(m: Machine, index: t.Index) -> bool:
    """Whether an index has several parts, one of them a slice or `...`, and none a text, as frames have them."""
    texts = [part for part in index if not isinstance(part, t.Slice) and isinstance(m.value(part).const, str)]
    return indexing.looks_like_array(m, index) and not texts


def _is_mask(m: Machine, base: Value, index: t.Index) -> bool:
    """`x[x > 3]`: what is compared and indexed by the result of that has elements."""
    if len(index) != 1 or isinstance(index[0], t.Slice):
        return False
    made = m.unit.definitions[index[0]] if index[0] >= 0 else None
    return (
        isinstance(made, t.Operate)
        and made.symbol in COMPARISONS
        and any(m.value(operand).refs == base.refs for operand in made.operands)
    )
