"""Who goes through what a generator of the file hands out, and whether anybody keeps it beyond the turn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.tapes import uses

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

_PASSING_ON = frozenset({"enumerate", "tqdm", "islice"})
"""Functions that hand on what they go through, one by one."""


def let_go(m: Machine) -> bool:
    """Whether each use of a generator in its file is a `for` loop that does not keep what it gets, and there is one.

    To keep it is to put it somewhere as it is: what a copy or arithmetic has made of it is another thing.
    """
    if m.unit.owner >= 0 or m.unit.parent != 0:
        return False
    found = False
    for number, machine in m.world.machines.items():
        if number == m.unit.number:
            continue
        mine = uses.of_name(machine, m.unit.name)
        if sum(not use.loads for use in mine) != (number == m.unit.parent):
            # Beside its definition, something else has the name.
            return False
        for use in mine:
            found = found or use.loads
            if use.loads and not _is_gone_through(machine, use.register):
                return False
    return found


def _is_gone_through(m: Machine, register: int) -> bool:
    call = m.consumer_of(register)
    if not isinstance(call, t.Call) or call.function != register:
        # Whoever is handed the generator may do anything.
        return False
    event = m.consumer_of(call.out)
    while isinstance(event, t.Call) and _named(m, event) in _PASSING_ON:
        event = m.consumer_of(event.out)
    if not isinstance(event, t.Iterate):
        return False
    return _is_only_looked_at(m, event.out)


def _named(m: Machine, call: t.Call) -> str:
    made = m.unit.definitions[call.function] if call.function >= 0 else None
    return made.name if isinstance(made, t.Load | t.Attribute) else ""


def _is_only_looked_at(m: Machine, register: int) -> bool:
    event = m.consumer_of(register)
    if isinstance(event, t.Unpack):
        parts = [one for one in m.index.of(t.Unpack) if one.value == register]
        return all(_is_only_looked_at(m, one.out) for one in parts)
    if not isinstance(event, t.Bind):
        return event is None
    loads = [use.register for use in uses.of_name(m, event.name) if use.loads]
    return all(_is_look(m, load) for load in loads)


def _is_look(m: Machine, register: int) -> bool:
    """Whether a use of a value looks at it: an operand, an item, a method of its own, or an argument of torch or NumPy
    that copies."""
    event = m.consumer_of(register)
    if isinstance(event, t.Operate | t.Test | t.Text):
        return True
    if isinstance(event, t.Invoke) and event.base == register:
        return event.name in ("copy", "clone", "sum", "mean", "item", "tolist", "max", "min", "any", "all", "astype")
    if isinstance(event, t.Call | t.Invoke):
        return m.dotted_of(event) in ("torch.tensor", "numpy.array", "builtins.print", "builtins.len", "builtins.float")
    return False
