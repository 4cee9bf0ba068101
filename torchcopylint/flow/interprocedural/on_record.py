"""State dicts that a method leaves in a field where something is the best so far, for a reader in another file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.storages import aliasing
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.tapes.loops import Loops

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine
    from torchcopylint.flow.tapes.index import UnitIndex

_ORDERS = frozenset({"<", ">", "<=", ">="})


def is_left(m: Machine, field: str, site: int) -> bool:
    """Whether a field is set where something is the best so far, and nobody in the file reads it but to save it."""
    return aliasing.is_on_record(m, site) and not _is_read(m, field)


def counts_otherwise(m: Machine, field: str, site: int) -> bool:
    """Whether a field that nobody in the file reads is set on one arm of a condition, and a number in another field is
    raised on another: how often in a row something was no better."""
    raised = [store.site for store in m.index.of(t.StoreAttribute) if store.augmented and uses.is_self(m, store.base)]
    loops = Loops(m.unit.tape)
    return any(loops.are_alternatives(site, other) for other in raised) and not _is_read(m, field)


def _is_read(m: Machine, field: str) -> bool:
    """Whether somebody in the file looks at a field of that name, unless it is another method that saves it, or for
    what stands beside a state there."""
    own = {m.unit.name, *uses.own_calls(m)}
    for unit in m.world.program.units:
        index = m.world.index(unit)
        apart = unit.owner == m.unit.owner and unit.name not in own
        for event in index.of(t.Attribute):
            if event.name != field or _is_beside(index, event):
                continue
            by = index.consumers.get(event.out)
            if not (apart and isinstance(by, t.Invoke) and by.name == "save" and by.base != event.out):
                return True
    return False


def _is_beside(index: UnitIndex, event: t.Attribute) -> bool:
    """Whether a part of what a field holds is set, or is a number, as it is compared: `self.best[0] < loss`; or the
    field is compared with nothing: `self.best is None`."""
    by = index.consumers.get(event.out)
    if isinstance(by, t.StoreItem):
        return by.base == event.out
    part = isinstance(by, t.Item) or (isinstance(by, t.Invoke) and by.name == "get" and by.base == event.out)
    beyond = index.consumers.get(by.out) if part and isinstance(by, t.Item | t.Invoke) else None
    if beyond is not None:
        return isinstance(beyond, t.Operate) and beyond.symbol in _ORDERS
    return isinstance(by, t.Logic) and by.symbol in ("is", "is not")
