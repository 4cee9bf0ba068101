"""What the entries of a dictionary are taken from, one by one and as they are: `{key: saved[key] for key in saved}`.

Whoever loads such a dictionary loads what it was made from: a new container holds the same tensors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine


def sources(m: Machine, register: int) -> list[int]:
    """The loads of the dictionaries that all entries of a dictionary are taken from, if it was made by a loop."""
    load = m.unit.definitions[register] if register >= 0 else None
    name = load.name if isinstance(load, t.Load) else ""
    bound = uses.bindings_before(m, load) if isinstance(load, t.Load) else [register]
    if len(bound) != 1 or bound[0] < 0:
        return []
    collected = [one.item for one in m.index.of(t.Collect) if one.container == bound[0]]
    if name and not collected:
        site = m.unit.definitions[register]
        stores = [one for one in m.index.of(t.StoreItem) if naming.text_of(m, one.base) == name and not one.augmented]
        collected = [one.value for one in stores if isinstance(site, t.Load) and one.site < site.site]
    taken = [_taken_from(m, item) for item in collected]
    return taken if taken and min(taken) >= 0 else []


def _taken_from(m: Machine, register: int) -> int:
    """What an entry stands in that is taken out as it is: `saved[key]`, or `value` of `saved.items()`."""
    event = m.unit.definitions[register] if register >= 0 else None
    if isinstance(event, t.Load):
        bound = uses.bindings_before(m, event)
        event = m.unit.definitions[bound[0]] if len(bound) == 1 and bound[0] >= 0 else None
    base = event.base if isinstance(event, t.Item) else -1
    if isinstance(event, t.Unpack) and event.position == 1:
        turn = m.unit.definitions[event.value]
        over = m.unit.definitions[turn.iterable] if isinstance(turn, t.Iterate) else None
        base = over.base if isinstance(over, t.Invoke) and over.name == "items" else -1
    return base if base >= 0 and isinstance(m.unit.definitions[base], t.Load | t.Attribute) else -1
