"""The best model so far, which somebody keeps who counts how often it has not become better: `self.best_model = model`.

Who counts is asked again after more training of that model: what he keeps is to be what it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import FieldAliased
from torchcopylint.flow.model import Kind, Sure
from torchcopylint.flow.program import named_apart, unwrapping
from torchcopylint.flow.values import kinds, naming

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchcopylint.flow.running.machine import Machine

_BEST = "best"
_ORDERS = frozenset({"<", ">", "<=", ">=", "=="})


def found(m: Machine) -> Iterator[FieldAliased]:
    """The fields that a method sets to a model that it is handed, where it is the best so far."""
    if m.unit.owner < 0 or m.unit.name == "__init__" or not m.unit.parameters:
        return
    for field, stores in m.index.stores.items():
        for store in stores if _BEST in field.lower().split("_") else ():
            value = m.value(store.value)
            given = unwrapping.parameter_of(m, value.refs)
            known = value.kind is Kind.MODULE or kinds.named_model(given)
            own = naming.text_of(m, store.base) == m.unit.first
            model = own and given not in ("", m.unit.first) and known and named_apart.may_be_model(m, store.value)
            if model and (_is_counted(m, m.unit, store.site) or _is_called_counted(m)):
                yield FieldAliased(field, given, store.site, Sure.LIKELY, m.unit.name, record=True, handed=True)


def _is_called_counted(m: Machine) -> bool:
    """Whether another method of the class calls this one where it else counts."""
    for unit in m.world.program.units:
        calls = m.world.index(unit).of(t.Invoke) if unit.owner == m.unit.owner and unit is not m.unit else ()
        for call in calls:
            base = unit.definitions[call.base] if call.name == m.unit.name and call.base >= 0 else None
            if isinstance(base, t.Load) and base.name == unit.first and _is_counted(m, unit, call.site):
                return True
    return False


def _is_counted(m: Machine, unit: t.Unit, site: int) -> bool:
    """Whether the other arm of a test, around a site, adds to a field that the class compares with something."""
    for branch in m.world.index(unit).of(t.Branch):
        sites = [{event.site for event in t.events(arm)} for arm in branch.arms]
        if not any(site in arm for arm in sites):
            continue
        for arm, inside in zip(branch.arms, sites, strict=True):
            stores = (event for event in t.events(arm) if isinstance(event, t.StoreAttribute) and event.augmented)
            if site not in inside and any(_is_compared(m, unit.owner, store.name) for store in stores):
                return True
    return False


def _is_compared(m: Machine, owner: int, field: str) -> bool:
    units = (unit for unit in m.world.program.units if unit.owner == owner)
    for unit in units:
        for event in m.world.index(unit).of(t.Operate):
            operands = [unit.definitions[one] for one in event.operands if one >= 0] if event.symbol in _ORDERS else []
            if any(isinstance(one, t.Attribute) and one.name == field for one in operands):
                return True
    return False
