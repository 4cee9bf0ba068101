"""Items as the user wrote them, `states[i]`: where one was stored, and what was done to its container since."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from torchcopylint.flow import tape as t
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

_NAMES = re.compile(r"[^\W\d]\w*")


class Stores(NamedTuple):
    """The stores of a unit by the text of the item (`states[i]`), and, by that of the container, the sites of all that
    may change it; in source order."""

    of_items: dict[str, list[t.StoreItem]]
    changing: dict[str, list[int]]


def before(m: Machine, site: int, place: str) -> t.StoreItem | None:
    """The event that has stored what an item is, as the user wrote it, before on the same way, with the same key."""
    loops = uses.loops_around(m, site)
    for store in _stores(m).of_items.get(place, ()):
        if store.site >= site:
            break
        around = uses.loops_around(m, store.site)
        if around == loops[: len(around)] and not uses.on_some_paths(m, store.site):
            bound = (bind for name in _NAMES.findall(place) for bind in m.index.binds.get(name, ()))
            if not any(store.site < bind.site < site for bind in bound):
                return store
    return None


def of_this_turn(m: Machine, site: int, place: str) -> t.StoreItem | None:
    """The same, on the same turn of the same loop, if nothing else was done to the container in between."""
    store = before(m, site, place)
    if store is None or uses.loops_around(m, store.site) != uses.loops_around(m, site):
        return None
    changes = _stores(m).changing.get(naming.text_of(m, store.base), ())
    return None if any(store.site < change < site for change in changes) else store


def goes_back(m: Machine, store: t.StoreItem) -> bool:
    """Whether a loop goes through a container by keys and values, and puts something back under the key at hand:
    `for key, value in found.items(): found[key] = worked(value)`."""
    made = m.unit.definitions
    key = made[store.subscript[0]] if len(store.subscript) == 1 and isinstance(store.subscript[0], int) else None
    bound = uses.bindings_before(m, key) if isinstance(key, t.Load) else []
    return any(_is_key_of(m, made[one], store) for one in bound if one >= 0)


def is_made_of_it(m: Machine, store: t.StoreItem) -> bool:
    """Whether what is stored is what stood there in another form: `rows[i] = rows[i].reshape(1, -1)`.

    What is only computed with it, such as what is put into other memory by `out=`, may sit on anything.
    """
    place = f"{naming.text_of(m, store.base)}[{naming.index_text(m, store.subscript)}]"
    register = store.value if "..." not in place else t.NO_REGISTER
    for _ in range(_MAX_FORMS):
        made = m.unit.definitions[register] if register >= 0 else None
        if isinstance(made, t.Item) and naming.text_of(m, made.out) == place:
            return True
        if isinstance(made, t.Invoke) and isinstance(m.value(made.base).const, t.Dotted):
            # `np.transpose(rows[i])`
            register = made.arguments[0].register if len(made.arguments) == 1 else t.NO_REGISTER
        elif isinstance(made, t.Invoke | t.Item | t.Attribute):
            register = made.base
        else:
            return False
    return False


_MAX_FORMS = 4
"""So many methods and views, one on the result of the other, are gone back over."""


def keys_in_turn(m: Machine, store: t.StoreItem) -> list[object]:
    """The keys at which a loop stores one after the other: those that are written down in its head, as in
    `for key in ("ema", "optimizer"): found[key] = None`, if each turn stores."""
    made = m.unit.definitions
    key = made[store.subscript[0]] if len(store.subscript) == 1 and isinstance(store.subscript[0], int) else None
    bound = uses.bindings_before(m, key) if isinstance(key, t.Load) else []
    turn = made[bound[0]] if len(bound) == 1 and bound[0] >= 0 else None
    listed = made[turn.iterable] if isinstance(turn, t.Iterate) and turn.iterable >= 0 else None
    if not isinstance(turn, t.Iterate) or not isinstance(listed, t.Make) or listed.kind == "dict" or any(listed.stars):
        return []
    if uses.loops_around(m, turn.site) != uses.loops_around(m, store.site) or uses.on_some_paths(m, store.site):
        return []
    items = [made[item] for item in listed.items if item >= 0]
    return [item.value for item in items if isinstance(item, t.Const) and isinstance(item.value, str)]


def _is_key_of(m: Machine, part: t.Event | None, store: t.StoreItem) -> bool:
    """Whether something is the key that the loop around a store has just taken out of what is stored into."""
    made = m.unit.definitions
    if not isinstance(part, t.Unpack) or part.position != 0:
        return False
    around = uses.loops_around(m, part.site)
    turn = made[part.value]
    asked = made[turn.iterable] if isinstance(turn, t.Iterate) else None
    if isinstance(asked, t.Call) and len(asked.arguments) == 1:
        # `list(found.items())`
        asked = made[asked.arguments[0].register]
    if not isinstance(asked, t.Invoke) or asked.name != "items" or asked.base < 0:
        return False
    inside = uses.loops_around(m, store.site)[: len(around)] == around
    return inside and naming.text_of(m, asked.base) == naming.text_of(m, store.base)


def _stores(m: Machine) -> Stores:
    known = m.index.item_stores
    if known is None:
        known = m.index.item_stores = Stores({}, {})
        for store in m.index.of(t.StoreItem):
            key = naming.index_text(m, store.subscript)
            if "..." not in key:
                known.of_items.setdefault(f"{naming.text_of(m, store.base)}[{key}]", []).append(store)
        changes: list[t.StoreItem | t.Invoke | t.DeleteItem] = [
            *m.index.of(t.StoreItem),
            *m.index.of(t.Invoke),
            *m.index.of(t.DeleteItem),
        ]
        for change in changes:
            if change.base >= 0:
                known.changing.setdefault(naming.text_of(m, change.base), []).append(change.site)
    return known
