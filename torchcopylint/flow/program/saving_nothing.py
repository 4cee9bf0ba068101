"""Networks whose `forward` only adds, takes views and sums up: backward needs nothing of what they get and hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.knowledge import table

if TYPE_CHECKING:
    from torchcopylint.flow.model import Object
    from torchcopylint.flow.running.machine import Machine

_SYMBOLS = frozenset({"+", "-", "-x"})


def is_one(m: Machine, network: Object) -> bool:
    """Whether a network's class is of this file, and its `forward` consists of nothing but what saves nothing for
    backward: `return x + self.position[:, : x.shape[1]]`."""
    forward = m.world.method_of(network, "forward")
    if forward is None or not m.world.is_own(forward):
        return False
    if network.owner == "self" and m.world.overriding(forward):
        return False
    return all(_saves_nothing(m, network, forward, event) for event in t.events(m.world.unit(forward).tape))


def _saves_nothing(m: Machine, network: Object, forward: int, event: t.Event) -> bool:
    match event:
        case t.Load() | t.Const() | t.Bind() | t.Return() | t.Discard():
            return True
        case t.Attribute():
            op = table.tensor_property(event.name)
            # A property of the class may compute anything.
            return m.world.method_of(network, event.name) is None and (op is None or not op.saves)
        case t.Operate():
            return event.symbol in _SYMBOLS
        case t.Item():
            # By numbers and slices: of a tensor in their place, backward would need that.
            made = m.world.unit(forward).definitions
            return all(isinstance(part, t.Slice) or _is_number(made[part]) for part in event.subscript)
        case t.Invoke():
            op = table.tensor_method(event.name)
            return op is not None and op.result in ("tensor", "size") and not op.saves and not op.writes
        case _:
            return False


def _is_number(made: t.Event | None) -> bool:
    sizes = isinstance(made, t.Invoke) and made.name == "size"
    return sizes or isinstance(made, t.Const | t.Item)
