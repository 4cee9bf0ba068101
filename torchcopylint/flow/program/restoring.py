"""Methods that only a constructor calls, to put back what it has loaded: they run before any other keeps something."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import FieldMet, FieldRead
from torchcopylint.flow.tapes import uses

if TYPE_CHECKING:
    from torchcopylint.flow.facts import Relation
    from torchcopylint.flow.running.machine import Machine

_PUTTING_BACK = frozenset({"load_state_dict", "loaded"})


def before_all(m: Machine, fact: Relation) -> bool:
    """Whether a fact says that a method puts back what a field holds, which only a constructor calls, in the file,
    and of which another method sets the field to what it gets from elsewhere, `self.states = torch.load(path)`, or
    whatever the object has just been handed to: `load(self, path)`."""
    if isinstance(fact, FieldRead):
        what = fact.consumer
    elif isinstance(fact, FieldMet):
        what = fact.form
    else:
        return False
    is_put_back = what in _PUTTING_BACK and _is_for_constructors(m)
    return is_put_back and (_is_loaded(m, fact.field) or _is_handed_on(m, fact.site))


def _is_for_constructors(m: Machine) -> bool:
    callers = {
        unit.name
        for unit in m.world.program.units
        if any(event.name == m.unit.name for event in m.world.index(unit).of(t.Invoke))
    }
    return callers == {"__init__"}


def _is_handed_on(m: Machine, site: int) -> bool:
    """Whether whoever comes to a site has handed the object on, on the way, as a whole."""
    calls: list[t.Call | t.Invoke] = [*m.index.of(t.Call), *m.index.of(t.Invoke)]
    given = [call for call in calls if call.site < site and any(_is_own(m, one.register) for one in call.arguments)]
    return any(uses.runs_before(m, call.site, site) for call in given)


def _is_own(m: Machine, register: int) -> bool:
    event = m.unit.definitions[register] if register >= 0 else None
    return isinstance(event, t.Load) and event.name == m.unit.first


def _is_loaded(m: Machine, field: str) -> bool:
    for unit in m.world.program.units:
        for event in m.world.index(unit).stores.get(field, ()) if unit.name != m.unit.name else ():
            made = unit.definitions[event.value] if event.value >= 0 else None
            if isinstance(made, t.Invoke) and made.name == "load":
                return True
    return False
