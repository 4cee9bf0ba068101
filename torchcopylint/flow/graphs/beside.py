"""Lists that grow beside a loss: they hold what earlier turns of a loop have made, and nothing is made of that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.tapes.way_back import WayBack
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

MAX_STEPS = 300
"""So many values are gone back over from a loss to what it is made of; what is larger may be made of anything."""


def grows_beside(m: Machine, before: t.Bind, site: int) -> bool:
    """Whether a name is bound to a new list, and what backward runs over at a site is not made of what it holds.

    What the list holds of earlier turns is no reason, then, for backward to run over that again.
    """
    register = m.index.calls.get(site, t.NO_REGISTER)
    call = m.unit.definitions[register] if register >= 0 else None
    made = m.unit.definitions[before.value] if before.value >= 0 else None
    if isinstance(made, t.Unpack):
        pair = m.unit.definitions[made.value]
        plain = isinstance(pair, t.Make) and not any(pair.stars) and 0 <= made.position < len(pair.items)
        made = m.unit.definitions[pair.items[made.position]] if isinstance(pair, t.Make) and plain else None
    fresh = isinstance(made, t.Make) and not made.items
    return fresh and isinstance(call, t.Invoke) and not _is_made_of(m, call.base, before.name)


def _is_made_of(m: Machine, register: int, name: str) -> bool:
    """Whether a name may be looked at on the way to a value: by another name, by a list, or by a function."""
    fillings: dict[str, list[int]] = {}
    filling: list[t.Invoke | t.StoreItem] = [*m.index.of(t.Invoke), *m.index.of(t.StoreItem)]
    for one in filling:
        fillings.setdefault(naming.text_of(m, one.base), []).extend(t.operands(one))
    way = WayBack(m, register, MAX_STEPS)
    for event in way:
        way.go_on(t.operands(event))
        if isinstance(event, t.Function) and _loads(m.world.program.units[event.unit], name):
            return True
        if isinstance(event, t.Load):
            if event.name == name:
                return True
            way.go_on(bind.value for bind in m.index.binds.get(event.name, ()))
            way.go_on(fillings.get(event.name, ()))
    return way.cut_short


def _loads(unit: t.Unit, name: str) -> bool:
    return any(isinstance(event, t.Load) and event.name == name for event in unit.definitions)
