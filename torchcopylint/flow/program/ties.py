"""Parameters that the constructor of a class ties to one another: `self.head.weight = self.embedding.weight`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from torchcopylint.flow import tape as t

if TYPE_CHECKING:
    from torchcopylint.flow.interprocedural.classes import Classes


class Tie(NamedTuple):
    """The parameter `name` of what the field `field` holds is the parameter `other_name` of what `other` holds."""

    field: str
    name: str
    other: str
    other_name: str


def of(world: Classes, number: int) -> list[Tie]:
    """The ties that the constructor of a class of this file makes, whichever way it goes."""
    initial = world.method(number, "__init__")
    if initial is None or not world.is_own(initial):
        return []
    unit = world.unit(initial)
    index = world.index(unit)
    found = []
    for store in index.of(t.StoreAttribute):
        one = _field(unit, store.base)
        value = unit.definitions[store.value] if store.value >= 0 else None
        other = _field(unit, value.base) if isinstance(value, t.Attribute) else ""
        if one and other and isinstance(value, t.Attribute) and store.site not in index.on_arms:
            found.append(Tie(one, store.name, other, value.name))
    return found


def _field(unit: t.Unit, register: int) -> str:
    """The field of `self` that a register was loaded from."""
    made = unit.definitions[register] if register >= 0 else None
    base = unit.definitions[made.base] if isinstance(made, t.Attribute) and made.base >= 0 else None
    own = isinstance(base, t.Load) and bool(unit.parameters) and base.name == unit.first
    return made.name if isinstance(made, t.Attribute) and own else ""
