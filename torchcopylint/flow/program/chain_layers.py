"""The layers of a chain (`nn.Sequential`) that stand written out where it is made: they go wherever the chain does.

`self.body = block(3, 8)` calls a function that returns `nn.Sequential(nn.Conv2d(...), nn.ReLU())`: who calls the field
knows what the first of its layers and the last of them keep for backward.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow.model import ANY_ELEMENT, CONTAINERS, Kind, Object, Value
from torchcopylint.knowledge import table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from torchcopylint.flow.running.machine import Machine

SEQUENTIAL = "torch.nn.Sequential"
LAYERS = "layers"
"""The key, among what a module is configured with, of the classes of its layers in order; an empty text is unknown."""


def of(obj: Object) -> tuple[str, ...]:
    """The classes of the layers of a chain, in order; nothing for what is no chain, or not written out."""
    known = dict(obj.config).get(LAYERS) if obj.config and obj.type == SEQUENTIAL else None
    return known if isinstance(known, tuple) else ()


def with_layers(obj: Object, layers: tuple[str, ...]) -> Object:
    """A chain, with the classes of its layers; without any, nothing is known of them."""
    others = tuple(one for one in obj.config if one[0] != LAYERS)
    return obj._replace(config=(*others, (LAYERS, layers)) if layers else others)


def given(m: Machine, positional: Sequence[Value]) -> tuple[str, ...]:
    """The classes of the layers that a chain is made of, if each of them is told: also those in a list or a dictionary
    that is filled before (`nn.Sequential(*layers)`)."""
    found: list[str] = []
    for value in positional:
        obj = m.state.object(value.refs[0]) if len(value.refs) == 1 else Object()
        if obj.kind in CONTAINERS:
            inner = [slot for slot in m.state.slot_names(value.refs[0]) if slot[1].startswith("[")]
            held = [cell for cell in map(m.state.cell, inner) if cell is not None]
            named = [f"[{number}]" for number in range(len(inner))]
            ordered = obj.kind is Kind.DICT or [slot[1] for slot in inner] == named
            if not held or not ordered or any(slot[1] == ANY_ELEMENT for slot in inner):
                return ()
            found += (name for cell in held for name in _names(m, cell.refs))
        elif obj.kind is Kind.MODULE:
            found += _names(m, value.refs)
        else:
            return ()
    return tuple(found) if any(found) else ()


def joined(chains: Iterable[Object]) -> tuple[str, ...]:
    """What several chains have in common: their layers, or where these differ, the first and the last of them."""
    each = {of(obj) for obj in chains}
    if len(each) < 2:
        return each.pop() if each else ()
    if () in each:
        return ()
    first, last = {one[0] for one in each}, {one[-1] for one in each}
    ends = (first.pop() if len(first) == 1 else "", last.pop() if len(last) == 1 else "")
    return (ends[0], "", ends[1]) if any(ends) else ()


def grown(m: Machine, ref: int, value: Value) -> None:
    """A chain gets another layer at its end."""
    obj = m.state.object(ref)
    if obj.type == SEQUENTIAL and of(obj):
        m.state.set_object(ref, with_layers(obj, (*of(obj), *_names(m, value.refs))))


def forget(m: Machine, ref: int) -> None:
    """A chain gets other layers, or other places for them."""
    obj = m.state.object(ref)
    if of(obj):
        m.state.set_object(ref, with_layers(obj, ("",)))


def _names(m: Machine, refs: Sequence[int]) -> tuple[str, ...]:
    """The class of a layer; of a chain within the chain, those of its layers."""
    if len(refs) != 1:
        return ("",)
    obj = m.state.object(refs[0])
    if obj.type == SEQUENTIAL:
        return of(obj) or ("",)
    row = table.module_class(obj.type) if obj.type else None
    return (obj.type if row is not None and not row.container else "",)
