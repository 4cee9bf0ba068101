"""Code for another version of a library: what stands on an arm of a test that asks for a version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

_MAX_EVENTS = 40


def is_asked_for(m: Machine, site: int) -> bool:
    """Whether a site stands on an arm of a condition that is computed from something called a version:
    `if torch.__version__ < "0.4":`. Which of the arms is for the torch of today is not known."""
    for branch in m.index.of(t.Branch):
        for arm in branch.arms:
            head = arm[0] if arm else None
            stands = isinstance(head, t.Assume) and any(event.site == site for event in t.events(arm))
            if stands and isinstance(head, t.Assume) and _is_of_version(m, head.register):
                return True
    return False


def _is_of_version(m: Machine, register: int) -> bool:
    """Whether a value is computed from what is called a version, here or where a name of the module is bound."""
    module = m.world.program.units[0]
    pending = [(m.unit, register)]
    for _ in range(_MAX_EVENTS):
        if not pending:
            break
        unit, current = pending.pop()
        event = unit.definitions[current] if current >= 0 else None
        if event is None:
            continue
        if isinstance(event, t.Load | t.Attribute) and "version" in event.name.lower():
            return True
        if isinstance(event, t.Load) and unit is not module and event.name not in unit.bound:
            pending += [(module, bind.value) for bind in m.world.index(module).binds.get(event.name, ())]
        pending += [(unit, operand) for operand in t.operands(event)]
    return False
