"""A model that a loop puts into a list as it is, and trains on: every entry is the model as it is now.

`past.append(model)`, where copies of how it was are meant: opponents to play against, members of an ensemble.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import PutAside
from torchcopylint.flow.model import Kind, Sure
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchcopylint.flow.model import Value
    from torchcopylint.flow.running.machine import Machine


def found(m: Machine) -> Iterator[PutAside]:
    """Where a loop puts one model into a list that was there before, on some turns, and an optimizer moves it.

    Of which the unit looks at the list, elsewhere than in front of the place where it puts it in, or hands it out.
    """
    for call in m.index.appends:
        loops = m.index.loops.get(call.site, ())
        value = m.value(call.arguments[0].register)
        if not loops or call.site not in m.index.on_arms or _leaves(m, call.site):
            # What each turn puts in is told of a loop already: one module stands there several times.
            continue
        if len(value.refs) != 1 or value.refs[0] & 1:
            continue
        obj = m.state.object(value.refs[0])
        write = _step(m, value, loops) if obj.kind is Kind.MODULE else -1
        if write < 0 or _loops_of(m, obj.site) & set(loops) & _loops_of(m, write):
            continue
        container = naming.text_of(m, call.base)
        refs = m.value(call.base).refs
        made = [m.state.object(ref) for ref in refs]
        if len(made) != 1 or made[0].kind is not Kind.LIST or _loops_of(m, made[0].site) & _loops_of(m, write):
            continue
        used = _looked_at(m, container, call)
        if used >= 0:
            source = naming.text_of(m, call.arguments[0].register) or obj.text
            sure = max(Sure.LIKELY, obj.sure)
            yield PutAside(used, f"{container}[-1]", source, call.site, write, "entries", sure, Kind.MODULE)


def _leaves(m: Machine, site: int) -> bool:
    """Whether the arm of a condition that a site stands in goes on to leave the loop, or the unit."""
    arms = (arm for branch in m.index.of(t.Branch) for arm in branch.arms)
    around = (list(t.events(arm)) for arm in arms if any(event.site == site for event in t.events(arm)))
    return any(isinstance(event, t.Break | t.Return) and event.site > site for arm in around for event in arm)


def _loops_of(m: Machine, site: int) -> set[int]:
    return set(m.index.loops.get(site, ()))


def _step(m: Machine, value: Value, loops: tuple[int, ...]) -> int:
    """The step of an optimizer, on turns of a loop that stands around the place as well, that moves a model."""
    for mark in sorted(value.marks):
        write = m.writes.get(mark.write)
        if write is not None and write.form == "step" and set(loops) & _loops_of(m, write.site):
            return mark.write
    return -1


def _looked_at(m: Machine, container: str, call: t.Invoke) -> int:
    """Where else a unit looks at a list than where it puts something in or takes something out."""
    for unit in m.world.program.units:
        if unit is not m.unit and unit.parent != m.unit.number:
            continue
        for load in m.world.index(unit).of(t.Load):
            if load.name != container or (unit is m.unit and load.out == call.base):
                continue
            user = m.world.index(unit).consumers.get(load.out)
            if not isinstance(user, t.Invoke | t.Call) or (isinstance(user, t.Invoke) and user.base != load.out):
                return load.site
    return -1
