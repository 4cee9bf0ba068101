"""What an inner function that is called looks at of the names around it: the caller has them read there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import Value
from torchcopylint.flow.storages import reading

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchcopylint.flow.running.machine import Machine

_FORM = frozenset({"shape", "dtype", "device", "ndim", "requires_grad", "grad", "grad_fn", "is_cuda"})
"""Attributes that say nothing of what stands in a tensor."""
_ASKING = frozenset({"size", "dim", "numel", "stride", "element_size", "is_contiguous", "data_ptr"})


def by_call(m: Machine, number: int, site: int, name: str) -> None:
    """A function of the unit is called, by its own number: what has been written of the names that it takes from around
    it, and looks at, is read."""
    unit = m.world.unit(number)
    if not m.world.is_own(number) or unit.parent != m.unit.number:
        return
    for outer in dict.fromkeys(_looked_at(m, unit)):
        cell = m.state.cell(outer)
        if cell is not None and cell.marks:
            reading.read(m, Value(cell.refs, cell.kind, cell.const, cell.marks, outer), site, "argument", name)


def _looked_at(m: Machine, unit: t.Unit) -> Iterator[str]:
    """The names from around a unit whose content it uses, as its tape says."""
    index = m.world.index(unit)
    for load in index.of(t.Load):
        if load.name in unit.bound:
            continue
        use = index.consumers.get(load.out)
        match use:
            case t.Attribute():
                looks = use.name not in _FORM
            case t.Invoke() if use.base == load.out:
                looks = use.name not in _ASKING and not use.name.endswith("_")
            case t.StoreItem() | t.StoreAttribute() | t.Augment():
                looks = use.value == load.out
            case _:
                looks = use is not None
        if looks:
            yield load.name
