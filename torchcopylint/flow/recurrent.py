"""Networks that are given a state and return the next one, by the names that code has for it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow import uses

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
    return any(_is_only_bound_to(m, name, parts, uses.loops_around(m, site)) for name in given)


def _is_only_bound_to(m: Machine, name: str, parts: set[int], loops: tuple[int, ...]) -> bool:
    """Whether all that a name is bound to in a loop is of some registers: nothing else there cuts what it holds."""
    values = [bind.value for bind in m.index.binds.get(name, ()) if uses.loops_around(m, bind.site) == loops]
    return bool(values) and set(values) <= parts


def may_cut(m: Machine, register: int) -> bool:
    """Whether a value comes from a function of the file that has to do with detaching, by its name or by what it names:
    `tree_map(torch.Tensor.detach, hidden)`."""
    call = m.unit.definitions[register] if register >= 0 else None
    load = m.unit.definitions[call.function] if isinstance(call, t.Call) and call.function >= 0 else None
    if not isinstance(load, t.Load):
        return False
    units = [unit for unit in m.world.program.units if unit.kind == "function" and unit.name == load.name]
    return "detach" in load.name or any(_detaches(unit) for unit in units)


def _detaches(unit: t.Unit) -> bool:
    return any(
        isinstance(e, t.Invoke | t.Attribute) and e.name in ("detach", "detach_", "data") for e in unit.definitions
    )


def _cuts_inside(m: Machine) -> bool:
    """Whether the `forward` of some class of the file detaches something."""
    units = m.world.program.units
    return any(_detaches(unit) for unit in units if unit.owner >= 0 and unit.name == "forward")
