"""Callers that go on using what they passed to a function which writes it and returns it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import giving, naming
from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import CallerSuffers, ReadAfter, Write

if TYPE_CHECKING:
    from torchcopylint.flow.machine import Machine
    from torchcopylint.flow.world import World


def suffering(world: World) -> dict[int, list[CallerSuffers]]:
    """By the unit of each function that writes and returns a parameter: who reads what was passed afterwards.

    A caller that drops the result calls the function for its effect. One that calls it again with the same tensor may
    mean to go on from there.
    """
    found: dict[int, list[CallerSuffers]] = {}
    for number in sorted(world.machines):
        m = world.machines[number]
        dropped = _dropped(m) if m.argument_writes else frozenset()
        for site in sorted(m.facts) if m.argument_writes else ():
            for fact in m.facts[site]:
                if not isinstance(fact, ReadAfter) or not fact.own or not fact.certain or site == fact.write:
                    continue
                if fact.write in m.argument_writes and _goes_back(m, fact.write):
                    continue
                unit, parameter, returned = m.argument_writes.get(fact.write, (-1, "", False))
                callee = world.machines.get(unit)
                write = _first_write(callee, parameter) if callee is not None and fact.write not in dropped else None
                second = write.root if write is not None and not returned and _is_second_name(write, parameter) else ""
                if write is not None and (returned or second):
                    sure = min(write.sure, fact.sure)
                    suffers = CallerSuffers(write.site, parameter, write.op, fact.write, fact.name, site, sure, second)
                    found.setdefault(unit, []).append(suffers)
    return found


def _is_second_name(write: Write, parameter: str) -> bool:
    """Whether a write goes through a name that a function has given to a whole parameter, as if to work on a copy."""
    return write.root.isidentifier() and write.root != parameter and all(link.how is None for link in write.chain)


def _goes_back(m: Machine, call: int) -> bool:
    """Whether a call's result is stored where an argument of it was taken from: `x[:k] = fill(x[:k])`."""
    given = giving.arguments_of(m, call)
    return any(giving.is_stored_in(m, call, naming.text_of(m, register)) for register in given)


def _dropped(m: Machine) -> frozenset[int]:
    """The sites of calls that are statements of their own."""
    made = [m.unit.definitions[event.value] for event in m.index.of(t.Discard)]
    return frozenset(event.site for event in made if event is not None)


def _first_write(callee: Machine, parameter: str) -> Write | None:
    """The first write that surely reaches a parameter."""
    storage = callee.number("argument", parameter)
    hits = [w for w in callee.writes.values() if w.storages == (storage,) and all(link.sure for link in w.chain)]
    return min(hits, key=lambda write: write.site, default=None)
