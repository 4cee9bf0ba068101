"""Where in a function of this file that happens which a call of it is told of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow.facts import Inside

if TYPE_CHECKING:
    from torchcopylint.base.finding import Role
    from torchcopylint.flow.model import Value
    from torchcopylint.flow.running.machine import Machine


def note(m: Machine, call: int, role: Role, place: Inside | None, value: Value | None = None, text: str = "") -> None:
    """What the call at a site does, of a `role`, to a value that is called so there, happens at a place."""
    if place is not None:
        held = m.called.inside.setdefault((call, role), {})
        refs = value.refs if value is not None else ()
        storages = {share.storage | 1 for ref in refs for share in m.state.object(ref).shares}
        keys: list[int | str] = [*sorted(storages), text] if value is not None else [""]
        held.update(dict.fromkeys((key, place) for key in keys))


def innermost(
    m: Machine, site: int, role: Role, op: str = "", storage: int = -1, *, given: bool = True
) -> Inside | None:
    """Where what happens at a site of a unit happens in truth: there, or in what is called there; `None` if that is in
    another file. For `given`, see `Inside`."""
    held = m.called.inside.get((site, role))
    if held:
        known = [place for key, place in held if key]
        place = next((place for key, place in held if key == storage | 1), known[0] if known else next(iter(held))[1])
        return place._replace(given=given)
    return Inside(site, m.unit.name, op, given) if site >= 0 and m.world.place(site) is None else None
