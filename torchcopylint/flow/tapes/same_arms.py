"""Names that a loop alone binds, under conditions that are the same on all its turns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.tapes import uses

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine


def bind_before(m: Machine, load: t.Load, loop: int) -> bool:
    """Whether what a name holds where it is loaded was bound on this turn, by whichever arm: else nothing would have
    been bound on the first turn either, and the load had raised there.

    `if self.mode == "a": loss = ...`, `else: print("no such mode")`, and then `loss.backward()`.
    """
    bound = m.index.binds.get(load.name, ())
    around = uses.loops_around(m, load.site)
    if not bound or not _is_of_its_own(m, load.name):
        return False
    # What is bound behind the load the next turn finds there, but the first one does not, if it comes to the load.
    behind = [load.site] if any(bind.site > load.site for bind in bound) else []
    for site in (*behind, *[bind.site for bind in bound]):
        inside = uses.loops_around(m, site)
        if loop not in inside or (inside[-1] != loop and site in behind) or around[: len(inside)] != inside:
            return False
    deciding = [*behind, *[bind.site for bind in bound if bind.site < load.site]]
    parts = [part for event in m.index.of(t.Try) for part in t.inner_tapes(event)]
    tries = {event.site for part in parts for event in t.events(part)}
    return tries.isdisjoint(deciding) and all(
        uses.loops_around(m, site)[-1] == loop and _are_same(m, site, loop) for site in deciding
    )


def _is_of_its_own(m: Machine, name: str) -> bool:
    """Whether a name is one of a function, or of one that stands in the place of its call, and no parameter."""
    if m.unit.kind != "function" and "#in" not in name:
        return False
    return all(parameter.name != name for parameter in m.unit.parameters)


def _are_same(m: Machine, site: int, loop: int) -> bool:
    """Whether the conditions of which a site stands on an arm in a loop are the same on all turns. What an `assert`
    says is none: whoever fails it does not come to the load."""
    begun = {arm[0].site for event in m.index.of(t.Branch) for arm in event.arms if arm}
    conditions = [one for one in m.index.assumed.get(site, ()) if loop in uses.loops_around(m, one.site)]
    return all(_is_same(m, one.register, loop) for one in conditions if one.site in begun)


_SAME = frozenset({"any", "all", "len", "isinstance", "hasattr", "bool"})
"""Functions that say the same of the same."""


_SAME_OF_TEXT = frozenset(
    {"find", "rfind", "index", "count", "startswith", "endswith", "lower", "upper", "strip", "split"}
)
"""The same of methods of texts: `self.kind.find("WGAN") >= 0`."""


def _is_same(m: Machine, register: int, loop: int) -> bool:
    """Whether a condition is made of nothing that the loop binds, sets or takes out of something."""
    pending, seen = [register], set[int]()
    while pending:
        one = pending.pop()
        event = m.unit.definitions[one] if one >= 0 else None
        if one in seen:
            continue
        seen.add(one)
        if isinstance(event, t.Load):
            held = [bind for bind in m.index.binds.get(event.name, ()) if loop in uses.loops_around(m, bind.site)]
            if any(uses.loops_around(m, bind.site)[-1] == loop for bind in held):
                return False
            pending += [bind.value for bind in held]
        elif isinstance(event, t.Attribute):
            if any(loop in uses.loops_around(m, store.site) for store in m.index.stores.get(event.name, ())):
                return False
            pending.append(event.base)
        elif isinstance(event, t.Call):
            called = m.unit.definitions[event.function]
            if not isinstance(called, t.Load) or called.name not in _SAME:
                return False
            pending += [argument.register for argument in event.arguments]
        elif isinstance(event, t.Invoke) and event.name in _SAME_OF_TEXT:
            pending += [event.base, *(argument.register for argument in event.arguments)]
        elif isinstance(event, t.Make):
            put = [part for made in m.index.of(t.Collect) if made.container == one for part in (made.key, made.item)]
            pending += [*t.operands(event), *(part for part in put if part >= 0)]
        elif isinstance(event, t.Const | t.Operate | t.Logic | t.Iterate | t.Unpack):
            pending += t.operands(event)
        else:
            return False
    return True
