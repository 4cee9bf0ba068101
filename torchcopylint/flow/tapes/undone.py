"""Elements that are set for a time and put back: `old = x[i].item()`, `x[i] = old + h`, `y = f(x)`, `x[i] = old`.

Numerical gradients do it so: who has called them finds in the array what was there before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import Kind
from torchcopylint.flow.tapes import exclusion, uses
from torchcopylint.flow.values import naming
from torchcopylint.flow.values.state import kind_of

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

_COPYING = frozenset({"item", "copy", "clone", "tolist"})
_ELEMENTS = frozenset({"numpy.ndindex", "numpy.ndenumerate"})


def sites(m: Machine) -> frozenset[int]:
    """Where a unit writes an element that it puts back behind that, on all paths from there, and where it does that."""
    places: dict[tuple[str, str], list[tuple[int, t.StoreItem | None]]] = {}
    for augment in m.index.of(t.Augment):
        item = m.unit.definitions[augment.target] if augment.target >= 0 else None
        if isinstance(item, t.Item):
            places.setdefault(_place(m, item), []).append((augment.site, None))
    for store in m.index.of(t.StoreItem):
        places.setdefault(_place(m, store), []).append((store.site, store))
    found: set[int] = set()
    for written in places.values():
        last, put_back = max(written, key=lambda one: one[0])
        taken = _taken(m, put_back) if put_back is not None and len(written) > 1 else -1
        since = [site for site, _ in written if site > taken]
        if taken >= 0 and all(_comes_behind(m, last, site) for site in since):
            found.update(since)
    return frozenset(found)


def _place(m: Machine, event: t.Item | t.StoreItem) -> tuple[str, str]:
    return naming.text_of(m, event.base), naming.index_text(m, event.subscript)


def _comes_behind(m: Machine, last: int, site: int) -> bool:
    """Whether who passes a site passes the last one behind it, on the same turn of the same loops."""
    return uses.loops_around(m, last) == uses.loops_around(m, site) and exclusion.goes_along(m, last, site)


def _taken(m: Machine, store: t.StoreItem) -> int:
    """Where what is stored was taken out of the very place that it is put back into, as a number of its own; -1 if it
    was not."""
    load = m.unit.definitions[store.value] if store.value >= 0 else None
    bound = uses.bindings_before(m, load) if isinstance(load, t.Load) else []
    event = m.unit.definitions[bound[0]] if len(bound) == 1 and bound[0] >= 0 else None
    copied = False
    while isinstance(event, t.Invoke) and event.name in _COPYING and event.base >= 0:
        event, copied = m.unit.definitions[event.base], True
    if isinstance(event, t.Call) and m.dotted_of(event) == "builtins.float" and len(event.arguments) == 1:
        event, copied = m.unit.definitions[event.arguments[0].register], True
    if not isinstance(event, t.Item) or _place(m, event) != _place(m, store):
        return -1
    names = [m.unit.definitions[part] for part in event.subscript if isinstance(part, int) and part >= 0]
    loaded = [one.name for one in (*names, m.unit.definitions[event.base]) if isinstance(one, t.Load)]
    binds = [bind for name in loaded for bind in m.index.binds.get(name, ())]
    if any(event.site < bind.site < store.site for bind in binds):
        return -1
    return event.site if copied or _is_number(m, event) else -1


def _is_number(m: Machine, item: t.Item) -> bool:
    """Whether square brackets take one number out of an array, which is none of its memory: under an index that goes
    through all elements."""
    if kind_of(m.value(item.base), m.state) is not Kind.ARRAY or len(item.subscript) != 1:
        return False
    load = m.unit.definitions[item.subscript[0]] if isinstance(item.subscript[0], int) else None
    bound = uses.bindings_before(m, load) if isinstance(load, t.Load) else []
    event = m.unit.definitions[bound[0]] if len(bound) == 1 and bound[0] >= 0 else None
    while isinstance(event, t.Unpack):
        event = m.unit.definitions[event.value]
    if isinstance(event, t.Iterate):
        over = m.unit.definitions[event.iterable] if event.iterable >= 0 else None
        return isinstance(over, t.Call) and m.dotted_of(over) in _ELEMENTS
    return isinstance(event, t.Attribute) and event.name == "multi_index"
