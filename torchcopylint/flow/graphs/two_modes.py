"""Fields of one object that a method calls, the one with recording on and the other one with recording off."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import FieldsPaired
from torchcopylint.flow.graphs import runs
from torchcopylint.flow.model import Fact, Value

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

MAX_STEPS = 5
"""So many attributes, items and methods are gone through from a call to where its result is detached."""


def note_called(m: Machine, function: Value, site: int, method: str = "") -> None:
    """What a field of `self` holds since before the method is called, or a method of it, with recording on or off."""
    if runs.is_field_from_before(m, function.root):
        assert isinstance(function.root, tuple)
        recording = Fact.NO if _is_cut_at_once(m, site) else m.state.mode.recording
        m.called.fields.setdefault((function.root[1][1:], method), {})[recording] = site


def _is_cut_at_once(m: Machine, site: int) -> bool:
    """Whether the graph of what a call returns is dropped where it is called: `target(x).max(1)[0].detach()`."""
    register = m.index.calls.get(site, t.NO_REGISTER)
    for _ in range(MAX_STEPS):
        event = m.consumer_of(register) if register >= 0 else None
        if not isinstance(event, t.Invoke | t.Attribute | t.Item) or event.base != register:
            return False
        if not isinstance(event, t.Item) and event.name in ("detach", "data"):
            return True
        register = event.out
    return False


def paired(m: Machine) -> list[FieldsPaired]:
    """Fields that are called with recording off only, in a method that calls others with recording on only.

    The one is somebody to learn from, the other one is trained. Of methods, both have to be asked for the same thing.
    Of a field that is wrapped later on (`self.net = DDP(self.net)`), another name is the network without it.
    """
    fixed = [(*key, modes[Fact.NO]) for key, modes in m.called.fields.items() if set(modes) == {Fact.NO}]
    trained = [key for key, modes in m.called.fields.items() if set(modes) == {Fact.YES}]
    return [
        FieldsPaired(site, field, other, "modes")
        for field, method, site in fixed
        for other, asked in trained
        if method == asked and field != other and not _is_wrapped(m, other)
    ]


def _is_wrapped(m: Machine, field: str) -> bool:
    """Whether a method of the class sets a field to what is made of what the field holds: `torch.compile(self.net)`."""
    units = (unit for unit in m.world.program.units if unit.owner == m.unit.owner >= 0)
    return any(
        event.name == field and _is_made_of(unit, event.value, field)
        for unit in units
        for event in m.world.index(unit).of(t.StoreAttribute)
    )


def _is_made_of(unit: t.Unit, register: int, field: str) -> bool:
    made = unit.definitions[register] if register >= 0 else None
    given = made.arguments if isinstance(made, t.Call | t.Invoke) else ()
    held = (unit.definitions[one.register] for one in given if one.register >= 0)
    return any(isinstance(one, t.Attribute) and one.name == field for one in held)
