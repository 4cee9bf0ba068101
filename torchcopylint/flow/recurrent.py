"""Networks that are given a state and return the next one, by the names that code has for it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t

if TYPE_CHECKING:
    from torchcopylint.flow.machine import Machine

_STATE_NAME = re.compile(r"hidden|^(?:h|hc|hx|cx|hs|h_[0nt]|c_[0nt])$|(?:rnn|lstm|gru)_(?:state|h)", re.I)


def goes_round(m: Machine, site: int) -> bool:
    """Whether a call in a loop is given a hidden state and returns the next one, under one name: `y, h = net(x, h)`.

    Hardly anybody who writes a recurrent network cuts the state inside of it, and who does, in this file, is believed.
    """
    register = m.index.calls.get(site, t.NO_REGISTER)
    call = m.unit.definitions[register] if register >= 0 and m.in_loop else None
    if not isinstance(call, t.Call | t.Invoke):
        return False
    loads = [m.unit.definitions[argument.register] for argument in call.arguments if argument.register >= 0]
    given = {load.name for load in loads if isinstance(load, t.Load) and _STATE_NAME.search(load.name)}
    if not given or _cuts_inside(m):
        return False
    parts = {event.out for event in m.index.of(t.Unpack) if event.value == register}
    return any(bind.value in parts for name in given for bind in m.index.binds.get(name, ()))


def _cuts_inside(m: Machine) -> bool:
    """Whether the `forward` of some class of the file detaches something."""
    forwards = [unit for unit in m.world.program.units if unit.owner >= 0 and unit.name == "forward"]
    return any(
        isinstance(event, t.Invoke | t.Attribute) and event.name in ("detach", "detach_", "data")
        for unit in forwards
        for event in unit.definitions
    )
