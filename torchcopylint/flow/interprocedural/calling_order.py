"""In which order the methods of a class are called on one object, as their calls in the file tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.tapes.uses import is_self

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

_TRAINING = frozenset({"step", "backward"})


def behind(m: Machine) -> frozenset[str]:
    """The methods that the file calls nowhere but behind a call of this one, on the same object and in the same turn,
    with nothing in between that trains: what this one leaves in a field, they find as it was just made."""
    me, known = m.unit.name, m.world.program.classes[m.unit.owner].methods if m.unit.owner >= 0 else {}
    callers = [one for one in m.world.machines.values() if any(e.name == me for e in one.index.of(t.Invoke))]
    called = {event.name for one in callers for event in one.index.of(t.Invoke)} & known.keys() - {me}
    return frozenset(name for name in called if _is_behind(m, name))


def _is_behind(m: Machine, name: str) -> bool:
    for unit in m.world.program.units:
        if not any(event.name == name for event in m.world.index(unit).of(t.Attribute)):
            calls = [event for event in m.world.index(unit).of(t.Invoke) if event.name == name]
        else:
            return False
        around = m.world.machines.get(unit.number)
        for call in calls:
            if around is None or unit.owner != m.unit.owner or not is_self(around, call.base):
                return False
            if not _comes_before(around, m.unit.name, call):
                return False
    return True


def _comes_before(around: Machine, name: str, call: t.Invoke) -> bool:
    """Whether who comes to a call has just come by one of another method, and by nothing that trains since."""
    before = [
        event.site
        for event in around.index.of(t.Invoke)
        if event.name == name
        and is_self(around, event.base)
        and uses.runs_before(around, event.site, call.site)
        and uses.loops_around(around, event.site) == uses.loops_around(around, call.site)
    ]
    between = [event for event in around.index.of(t.Invoke) if before and max(before) < event.site < call.site]
    return bool(before) and not any(_trains(around, event) for event in between)


def _trains(around: Machine, event: t.Invoke) -> bool:
    """Whether a call may train: itself, or by a method of the object whose own calls do."""
    if event.name in _TRAINING:
        return True
    number = around.world.method(around.unit.owner, event.name) if is_self(around, event.base) else None
    called = around.world.machines.get(number) if number is not None else None
    if number is not None and called is None:
        return True
    return called is not None and (
        called.backward.trains
        or any(write.form in ("step", "load") for write in called.writes.values())
        or any(_is_training_method(called, one) for one in uses.own_calls(called))
    )


def _is_training_method(m: Machine, name: str) -> bool:
    number = m.world.method(m.unit.owner, name)
    called = m.world.machines.get(number) if number is not None else None
    return called is None or called.backward.trains
