"""Layers that get a hook in a loop over the parts of a network: `for layer in net.modules(): layer.register_...`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import HOOKED
from torchcopylint.knowledge import table

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

_ANY = "torch.nn.Module"


def has_hook(m: Machine, ref: int, site: int) -> bool:
    """Whether a layer has a hook at a site: surely, on the way that leads here, or since a loop has met its class.

    A loop over the parts of a chain that is written out has a turn for each, whatever is known of other loops.
    """
    if ref not in m.holding.hooks or m.holding.hooks[ref] >= site:
        return False
    if HOOKED in m.state.object(ref).flags:
        return True
    hooked = m.holding.hooks[ref]
    register, loops = m.index.calls.get(hooked, -1), m.index.loops.get(hooked, ())
    event = m.unit.definitions[register] if register >= 0 else None
    layer = m.unit.definitions[event.base] if isinstance(event, t.Invoke) else None
    alone = len(loops) == 1 and loops[0] not in m.index.on_arms and loops != m.index.loops.get(site, ())
    if not isinstance(layer, t.Load) or not alone:
        return False
    loop = next((one for one in m.index.of(t.Loop) if one.site == loops[0]), None)
    return loop is not None and _meets(m, loop.body, hooked, layer.name, m.state.object(ref).type)


def _meets(m: Machine, tape: t.Tape, site: int, name: str, kind: str) -> bool:
    """Whether who goes through a tape with a layer of a class under a name comes by a site."""
    for event in tape:
        if isinstance(event, t.Continue | t.Break | t.Return):
            return False
        if isinstance(event, t.Assume) and not _passes(m, event, name, kind):
            return False
        inner = [part for part in t.inner_tapes(event) if any(one.site == site for one in t.events(part))]
        if inner:
            return isinstance(event, t.Branch) and len(inner) == 1 and _meets(m, inner[0], site, name, kind)
        if event.site == site:
            return True
        if any(isinstance(one, t.Continue | t.Break) for part in t.inner_tapes(event) for one in t.events(part)):
            return False
    return False


def _passes(m: Machine, event: t.Assume, name: str, kind: str) -> bool:
    """Whether a class passes a test of what a name holds: `isinstance(layer, (nn.Linear, nn.Conv2d))`."""
    call = m.unit.definitions[event.register] if event.register >= 0 else None
    if not isinstance(call, t.Call) or m.dotted_of(call) != "builtins.isinstance" or len(call.arguments) < 2:
        return False
    asked, against = (one.register for one in call.arguments[:2])
    layer = m.unit.definitions[asked] if asked >= 0 else None
    classes = m.unit.definitions[against] if against >= 0 else None
    registers = classes.items if isinstance(classes, t.Make) else (against,)
    named = {table.canonical(str(m.value(one).const)) for one in registers}
    return event.truth and isinstance(layer, t.Load) and layer.name == name and bool(named & {kind, _ANY})
