"""Two tensors are to change places by way of a second name for one of them: `kept = a; a.copy_(b); b.copy_(kept)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow.storages import reading

if TYPE_CHECKING:
    from torchcopylint.flow.model import Value
    from torchcopylint.flow.running.machine import Machine


def note(m: Machine, base: Value, value: Value, site: int) -> None:
    """A tensor, `base`, gets the content of another at a site. Notes where that comes from.

    If it comes from a second name for what the content of `base` has just been put into, it is that very content which
    comes back.
    """
    back = any(
        not mark.own and m.shown.copied_from.get(mark.write, frozenset()) & set(base.refs) for mark in value.marks
    )
    if back:
        reading.read(m, value, site, "swap")
    m.shown.copied_from[site] = frozenset(value.refs)
