"""What a function leaves behind by reference for others, in a field or in a container that it was given, and then
overwrites by an activation in place:

    self.features.append(z)
    return F.relu(z, inplace=True)

Who looks there finds what the activation has computed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import KeptSpoilt
from torchcopylint.flow.model import ARGUMENT, FIELD, GLOBAL, Sure, Value
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

_OF_OTHERS = frozenset({ARGUMENT, FIELD, GLOBAL, "self"})
_PUTTING = frozenset({"append", "add", "insert", "appendleft", "setdefault"})


def note(m: Machine, value: Value, site: int) -> None:
    """An activation has written, at `site`, what `value` is: who else holds it, and outlives the function."""
    write = m.writes.get(site)
    if write is None or len(value.refs) != 1 or len(write.storages) != 1 or m.state.mode.inference > 0:
        return
    for key, cell in m.state.holders_of(write.storages[0]):
        if not isinstance(key, tuple) or key == value.root or cell.site < 0 or value.refs[0] not in cell.refs:
            continue
        if m.state.object(key[0]).owner not in _OF_OTHERS:
            continue
        put = _put_at(m, cell.site)
        holder = _holder(m, put) if put is not None else ""
        # What the activation returns may be meant to stand there, now or later.
        if holder and write.result != holder and not _is_set_again(m, holder, site):
            m.fact(KeptSpoilt(site, holder, write.op, cell.site, write.told, min(write.sure, Sure.LIKELY)))
            return


def _put_at(m: Machine, site: int) -> t.StoreAttribute | t.StoreItem | t.Invoke | None:
    """The event of this very unit that has put something away."""
    for store in _stores(m):
        if store.site == site:
            return store
    return next((event for event in m.index.of(t.Invoke) if event.site == site and event.name in _PUTTING), None)


def _holder(m: Machine, put: t.StoreAttribute | t.StoreItem | t.Invoke) -> str:
    text = naming.text_of(m, put.base)
    if isinstance(put, t.StoreAttribute):
        return f"{text}.{put.name}"
    return f"{text}[{naming.index_text(m, put.subscript)}]" if isinstance(put, t.StoreItem) else text


def _is_set_again(m: Machine, holder: str, site: int) -> bool:
    return any(store.site > site and _holder(m, store) == holder for store in _stores(m))


def _stores(m: Machine) -> list[t.StoreAttribute | t.StoreItem]:
    return [*m.index.of(t.StoreAttribute), *m.index.of(t.StoreItem)]
