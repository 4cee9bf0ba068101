"""Models that the turns of a loop hand on by a second name: `old = new` at the end of a turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t

if TYPE_CHECKING:
    from torchcopylint.flow.model import Value
    from torchcopylint.flow.running.machine import Machine


def handed_on(m: Machine, one: Value, other: Value, site: int) -> tuple[str, str, int] | None:
    """Of two names that meet at a site: the one that is the other from the second turn of a loop on, the other, and
    where it is bound to it. On the first turn it may be something else."""
    for old, new in ((one, other), (other, one)):
        if not isinstance(old.root, str) or not isinstance(new.root, str) or len(new.refs) != 1:
            continue
        bound = _bound_at_last(m, old.root, new.root, site) if set(new.refs) < set(old.refs) else -1
        if bound >= 0:
            return old.root, new.root, bound
    return None


def _bound_at_last(m: Machine, old: str, new: str, site: int) -> int:
    """Where each turn of a loop around a site binds the one name to the other behind it, or -1."""
    around = m.index.loops.get(site, ())
    for bind in m.index.binds.get(old, ()):
        loaded = m.unit.definitions[bind.value] if bind.value >= 0 else None
        inside = m.index.loops.get(bind.site, ())
        behind = bool(inside) and around[: len(inside)] == inside and bind.site > site
        if behind and bind.site not in m.index.on_arms and isinstance(loaded, t.Load) and loaded.name == new:
            return bind.site
    return -1
