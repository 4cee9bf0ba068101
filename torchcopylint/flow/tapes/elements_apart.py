"""Two elements of one list that are surely not the same, by the places that they are taken from.

`layers[1].weight.data = layers[0].weight.data`, or `for layer in layers[1:]`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

_OF_VALUES = frozenset({"data", "detach"})


def source_of(m: Machine, store: t.StoreAttribute) -> str:
    """How the tensor is written whose memory an assignment to `.data` takes, if it is a part of one element of a list,
    and what is assigned to the same part of another one; empty for anything else."""
    taken = m.unit.definitions[store.value] if store.value >= 0 else None
    if not isinstance(taken, t.Attribute | t.Invoke) or taken.name not in _OF_VALUES:
        return ""
    target, source = _place(m, store.base), _place(m, taken.base)
    if target is None or source is None or target[:2] != source[:2]:
        return ""
    (_, _, first, onwards), (_, _, other, more) = target, source
    apart = first != other if not (onwards or more) else (other < first if onwards and not more else False)
    return naming.text_of(m, taken.base) if apart and min(first, other) >= 0 else ""


def _place(m: Machine, register: int) -> tuple[str, tuple[str, ...], int, bool] | None:
    """The list that a value is a part of an element of, by its text, which part that is, and the element's place: that
    one alone, or from there onwards."""
    path: list[str] = []
    event = m.unit.definitions[register] if register >= 0 else None
    while isinstance(event, t.Attribute):
        path.append(event.name)
        event = m.unit.definitions[event.base] if event.base >= 0 else None
    if isinstance(event, t.Load):
        bound = uses.bindings_before(m, event)
        event = m.unit.definitions[bound[0]] if len(bound) == 1 and bound[0] >= 0 else None
        if not isinstance(event, t.Iterate):
            return None
        rest = m.unit.definitions[event.iterable] if event.iterable >= 0 else None
        cut = rest.subscript[0] if isinstance(rest, t.Item) and len(rest.subscript) == 1 else None
        if not isinstance(rest, t.Item) or not isinstance(cut, t.Slice) or cut.step >= 0:
            return None
        start = m.value(cut.lower).const if cut.lower >= 0 else 0
        return (naming.text_of(m, rest.base), tuple(path), start, True) if isinstance(start, int) else None
    place = event.subscript[0] if isinstance(event, t.Item) and len(event.subscript) == 1 else None
    number = m.value(place).const if isinstance(place, int) else None
    if not path or not isinstance(event, t.Item) or not isinstance(number, int) or isinstance(number, bool):
        return None
    return naming.text_of(m, event.base), tuple(path), number, False
