"""Where a layer that works in place was told to: `self.act = nn.ReLU(inplace=True)`, far from where it is called."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.networks import written_down
from torchcopylint.flow.networks.chains import SEQUENTIAL
from torchcopylint.flow.tapes import callees, uses
from torchcopylint.knowledge import table

if TYPE_CHECKING:
    from torchcopylint.flow.model import Value
    from torchcopylint.flow.running.machine import Machine

MAX_STEPS = 6
"""By so many names and functions, a layer is followed back to where it is made."""


def site_of(m: Machine, layer: Value, site: int) -> int:
    """Where the layer is made that is called at a site, or the one that a chain starts with: in this file, in one place
    that is surely the one; else -1."""
    made = m.state.object(layer.refs[0]).site if len(layer.refs) == 1 else -1
    if made in m.index.calls and (here := _made(m, m.index.calls[made], MAX_STEPS)) >= 0:
        return here
    call = m.unit.definitions[m.index.calls[site]] if site in m.index.calls else None
    if isinstance(call, t.Invoke):
        return _in_field(m, call)
    return _made(m, call.function, MAX_STEPS) if isinstance(call, t.Call) else -1


def _in_field(m: Machine, call: t.Invoke) -> int:
    """The same for a layer in a field of `self`, which only a constructor sets."""
    if m.unit.owner < 0 or not uses.is_self(m, call.base):
        return -1
    found = written_down.in_field(m, call.name, MAX_STEPS)
    return _told(*found, MAX_STEPS) if found is not None else -1


def _made(m: Machine, register: int, steps: int) -> int:
    found = written_down.made(m, register, steps)
    return _told(*found, steps) if found is not None else -1


def _told(m: Machine, event: t.Event, steps: int) -> int:
    """Where what an event makes is told to work in place."""
    if not isinstance(event, t.Call | t.Invoke):
        return -1
    row = table.module_class(m.dotted_of(event))
    if row is not None and row.inplace_keyword and event.arguments:
        return event.site
    if m.dotted_of(event) == SEQUENTIAL:
        layers = (_made(m, one.register, steps - 1) for one in event.arguments)
        return next((made for made in layers if made >= 0), -1)
    called = callees.called(m, event)
    helper = m.world.machines.get(called.number) if called is not None and m.world.is_of_file(called.number) else None
    returned = helper.index.of(t.Return) if helper is not None else []
    return _made(helper, returned[0].value, steps - 1) if helper is not None and len(returned) == 1 else -1
