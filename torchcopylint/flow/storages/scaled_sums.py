"""Sums in fields that a method scales by a second name, for what it returns, while another one goes on adding to them.

def result(self):
    out = self.sum
    out /= self.count
    return out
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import SumScaled
from torchcopylint.flow.model import FIELD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchcopylint.flow.facts import Write
    from torchcopylint.flow.running.machine import Machine

_SCALING = frozenset({"/=", "*=", "div_", "mul_"})
_ADDING = frozenset({"+=", "add_", "index_add_", "scatter_add_", "index_put_"})


def found(m: Machine) -> Iterator[SumScaled]:
    """The first such write of each field, if the method neither sets the field anew nor adds to it."""
    if m.unit.owner < 0 or m.unit.kind != "function" or m.unit.name == "__init__" or m.unit.name.endswith("_"):
        return
    told: set[str] = set()
    for site, write in sorted(m.writes.items()):
        field = _field(m, write)
        if not field or field in told or write.op not in _SCALING or write.name != write.root:
            continue
        told.add(field)
        others = [other for other in m.writes.values() if _field(m, other) == field and other.name != write.name]
        if others or m.index.stores.get(field) or not write.name.isidentifier() or not _is_handed_on(m, write):
            continue
        added = _added(m, field)
        if added >= 0:
            shared = write.bound if write.bound >= 0 else site
            yield SumScaled(site, write.name, write.owner_name, write.op, shared, added, write.sure)


def _field(m: Machine, write: Write) -> str:
    """The field of the object that all of is written."""
    receiver, dot, field = write.owner_name.partition(".")
    own = write.owner == FIELD and dot and bool(m.unit.parameters) and receiver == m.unit.first
    return field if own and field.isidentifier() and not write.partial and not write.derived else ""


def _is_handed_on(m: Machine, write: Write) -> bool:
    """Whether the name is returned, or computed with, behind the write."""
    loads = [load for load in m.index.of(t.Load) if load.name == write.name and load.site > write.site]
    uses_of = [m.consumer_of(load.out) for load in loads]
    return any(isinstance(use, t.Return | t.Operate) for use in uses_of) or any(
        isinstance(use, t.Invoke) and not use.name.endswith("_") and m.consumer_of(use.out) is not None
        for use in uses_of
    )


def _added(m: Machine, field: str) -> int:
    """Where another method of the object adds to the field, by its own name; -1 if none does."""
    for number in m.world.lineage(m.unit.owner):
        for unit in m.world.program.units:
            other = m.world.machines.get(unit.number) if unit.owner == number and unit is not m.unit else None
            if other is None or unit.name == "__init__" or not unit.parameters:
                continue
            for site, write in sorted(other.writes.items()):
                base = write.root.partition("[")[0]
                if base == f"{unit.first}.{field}" and write.reads_old and write.op in _ADDING:
                    return site
    return -1
