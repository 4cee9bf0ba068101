"""How long a tensor is: a number, wherever it is asked for. `x.shape[0]`, `x.size(1)`, `n, d = x.shape`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import BUFFERS
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values.state import kind_of

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine


def are_in(m: Machine, register: int) -> bool:
    """Whether a register holds the sizes of a tensor or an array."""
    event = m.unit.definitions[register] if register >= 0 else None
    if event.__class__ is t.Load:
        bound = uses.bindings_before(m, event)
        return len(bound) == 1 and not isinstance(m.unit.definitions[bound[0]], t.Load) and are_in(m, bound[0])
    if event.__class__ is t.Attribute:
        return event.name == "shape" and _is_buffer(m, event.base)
    return event.__class__ is t.Invoke and event.name == "size" and not event.arguments and _is_buffer(m, event.base)


def _is_buffer(m: Machine, register: int) -> bool:
    return kind_of(m.value(register), m.state) in BUFFERS
