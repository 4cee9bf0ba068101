"""Whether a unit can come to an event without having run certain others before, in the same call."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.tapes import exclusion

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine


def passes_by(m: Machine, sites: Collection[int], site: int) -> bool:
    """Whether some way to the event at `site` goes by those at all of `sites`, as far as conditions say.

    Where one of them is run under conditions that all hold at `site` as well, whoever comes there has run it.
    """
    return not any(one < site and exclusion.goes_with(m, one, site) for one in sites) and _way(m.unit.tape, sites, site)


def _way(tape: t.Tape, sites: Collection[int], site: int) -> bool:
    """Whether the events of a tape up to `site`, or all of them, can be run without one at `sites`."""
    for event in tape:
        if event.site == site:
            return True
        if event.site in sites or isinstance(event, t.Return | t.Raise | t.Break | t.Continue):
            return False
        parts = _parts(event)
        inside = [part for part in parts if any(inner.site == site for inner in t.events(part))]
        if inside:
            return _way(inside[0], sites, site)
        if isinstance(event, t.Branch) and not any(_way(part, sites, site) for part in parts):
            return False
        if isinstance(event, t.Try) and not _way(event.body, sites, site):
            return False
    return True


def _parts(event: t.Event) -> tuple[t.Tape, ...]:
    if isinstance(event, t.Branch):
        return event.arms
    if isinstance(event, t.Loop):
        return (event.test, event.body, event.orelse)
    return (event.body, *event.handlers, event.orelse, event.final) if isinstance(event, t.Try) else ()


def leaves(tape: t.Tape, one: int, other: int) -> bool:
    """Whether one event stands on an arm that ends in a return, or on another arm than the other event."""
    for event in tape:
        if not isinstance(event, t.Branch):
            continue
        for arm in event.arms:
            inside = [inner.site for inner in t.events(arm)]
            if one in inside:
                if other in inside:
                    return leaves(arm, one, other)
                beside = any(inner.site == other for each in event.arms for inner in t.events(each))
                return beside or (bool(arm) and isinstance(arm[-1], t.Return | t.Raise)) or leaves(arm, one, other)
    return False
