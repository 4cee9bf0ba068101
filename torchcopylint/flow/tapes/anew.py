"""Values that a loop computes anew on each turn on which they are used, whatever else may be under their names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.tapes import exclusion, uses

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

_MAKING = (t.Call, t.Operate, t.Item, t.Unpack, t.Iterate, t.Const, t.Make)


def each_turn(m: Machine, site: int) -> bool:
    """Whether the value whose method is called at a site comes from nothing that an earlier turn of the loop around it
    has left: each name that it is computed from is bound before, in that loop, where the conditions are those of the
    site, or else not in the loop at all.

    `if net.both: out, extra = net(x)`, and behind that `if net.both: (loss + extra).backward()`.
    """
    call = m.unit.definitions[m.index.calls[site]] if site in m.index.calls else None
    loops = uses.loops_around(m, site)
    if not isinstance(call, t.Invoke) or not loops:
        return False
    pending, seen = [call.base], set[int]()
    while pending:
        register = pending.pop()
        event = m.unit.definitions[register] if register >= 0 and register not in seen else None
        seen.add(register)
        if event is None:
            continue
        if isinstance(event, t.Load):
            bound = [bind for bind in m.index.binds.get(event.name, ()) if loops[-1] in uses.loops_around(m, bind.site)]
            before = [bind for bind in bound if bind.site < event.site and uses.loops_around(m, bind.site) == loops]
            if bound and not exclusion.some_follow(m, [bind.site for bind in before], site):
                return False
            if not bound and _is_filled(m, event.name, loops[-1]):
                return False
            pending += [bind.value for bind in bound]
        elif isinstance(event, t.Attribute | t.Invoke):
            if isinstance(event, t.Attribute) and event.name in m.index.stores:
                return False
            pending += t.operands(event)
        elif isinstance(event, _MAKING):
            pending += t.operands(event)
        else:
            return False
    return True


def _is_filled(m: Machine, name: str, loop: int) -> bool:
    """Whether something is put into what a name from in front of a loop holds, there: `losses.append(loss)`."""
    for use in uses.of_name(m, name):
        event = m.consumer_of(use.register) if use.loads and loop in use.loops else None
        if isinstance(event, t.StoreItem | t.Augment | t.StoreAttribute):
            return True
        if isinstance(event, t.Invoke) and event.base == use.register and m.value(use.register).refs:
            return True
    return False
