"""What goes into `relu` alone, and what the constructor alone puts into a field that is called."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.tapes import uses

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

MAX_CALLS = 8
"""So many calls are followed, each of what the one before returns."""
KEEPING_SIGNS = frozenset({"relu", "leakyrelu", "rrelu", "elu", "celu"})
"""Activations that return what is not negative as it is, and make no positive number of another one."""
_JOINING = frozenset({"cat", "concat", "concatenate", "stack"})


def is_rectified(m: Machine, op: str, site: int) -> bool:
    """Whether what is read at a site goes into `relu` alone, which is the same of what an activation has left in place
    as of what was there: `F.relu(torch.cat([x, skip], 1))` behind `F.leaky_relu_(skip)`."""
    if plain(op) not in KEEPING_SIGNS:
        return False
    for _ in range(MAX_CALLS):
        register = m.index.calls.get(site, -1)
        event = m.unit.definitions[register] if register >= 0 else None
        if not isinstance(event, t.Call | t.Invoke):
            return False
        name = _operation(m, event)
        user = m.consumer_of(register)
        if plain(name) == "relu":
            return True
        if plain(name) not in _JOINING or user is None:
            return False
        site = user.site
    return False


def _operation(m: Machine, event: t.Call | t.Invoke) -> str:
    """What a call does: the name of a function or method, or the class of a layer, of a field if the constructor alone
    says what it is."""
    if isinstance(event, t.Call):
        refs = m.value(event.function).refs
        return m.state.object(refs[0]).type if len(refs) == 1 else m.dotted_of(event) if not refs else ""
    made, built = made_by_constructor(m, event)
    if made is not None:
        return made.dotted_of(built) if isinstance(built, t.Call | t.Invoke) else ""
    return event.name


def plain(name: str) -> str:
    """The name of an activation without its package and the form of the call, the underscores and capitals."""
    return name.partition("(")[0].rpartition(".")[2].replace("_", "").lower()


def made_by_constructor(m: Machine, event: t.Invoke) -> tuple[Machine | None, t.Event | None]:
    """What the constructor alone puts into the field of `self` that is called, in the end, and its machine."""
    initial = m.world.method(m.unit.owner, "__init__") if m.unit.owner >= 0 else None
    made = m.world.machines.get(initial) if initial is not None else None
    if made is None or not uses.is_self(m, event.base) or m.world.setters(event.name):
        return None, None
    stores = made.index.stores.get(event.name, ())
    if not stores or any(store.site in made.index.on_arms for store in stores):
        return None, None
    last = stores[-1].value
    return made, made.unit.definitions[last] if last >= 0 else None
