"""Methods that only a constructor calls, to put back what it has loaded: they run before any other keeps something."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import FieldMet, FieldRead

if TYPE_CHECKING:
    from torchcopylint.flow.facts import Relation
    from torchcopylint.flow.running.machine import Machine

_PUTTING_BACK = frozenset({"load_state_dict", "loaded"})


def before_all(m: Machine, fact: Relation) -> bool:
    """Whether a fact says that a method puts back what a field holds, which only a constructor calls, in the file,
    and of which another method sets the field to what it gets from elsewhere: `self.states = torch.load(path)`."""
    if isinstance(fact, FieldRead):
        what = fact.consumer
    elif isinstance(fact, FieldMet):
        what = fact.form
    else:
        return False
    return what in _PUTTING_BACK and _is_for_constructors(m) and _is_loaded(m, fact.field)


def _is_for_constructors(m: Machine) -> bool:
    callers = {
        unit.name
        for unit in m.world.program.units
        if any(event.name == m.unit.name for event in m.world.index(unit).of(t.Invoke))
    }
    return callers == {"__init__"}


def _is_loaded(m: Machine, field: str) -> bool:
    for unit in m.world.program.units:
        for event in m.world.index(unit).stores.get(field, ()) if unit.name != m.unit.name else ():
            made = unit.definitions[event.value] if event.value >= 0 else None
            if isinstance(made, t.Invoke) and made.name == "load":
                return True
    return False
