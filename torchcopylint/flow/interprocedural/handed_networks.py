"""Networks that are handed to a unit, of which a finding's graph may be: the project is asked whether all callers have
frozen them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow.facts import Clobbered, LeafWritten, NumpyRefused
from torchcopylint.flow.model import ARGUMENT, FIELD, Fact, Kind

if TYPE_CHECKING:
    from torchcopylint.flow.files.world import World
    from torchcopylint.flow.running.machine import Machine

_ON_GRAPHS = (Clobbered, NumpyRefused, LeafWritten)
"""What is stated of graphs and leaves while a unit runs, and may not be so if the networks behind them are frozen."""


def learn(world: World, m: Machine) -> bool:
    """Ask who calls a unit whether the networks are frozen that it was handed; whether something new is known of it.

    Nobody is asked for a unit of which nothing is told that such a graph decides.
    """
    told = m.runs.again or any(isinstance(fact, _ON_GRAPHS) for facts in m.facts.values() for fact in facts)
    owner = world.program.classes[m.unit.owner] if m.unit.owner >= 0 else None
    within = world.program.units[owner.body].parent if owner is not None else m.unit.parent
    if not told or not world.is_of_file(m.unit.number) or m.unit.kind != "function" or within != 0:
        return False
    class_name, new = owner.name if owner is not None else "", False
    for name in sorted(_networks(m)):
        field = name.partition(".")[2]
        if not field and (m.unit.number, name) not in world.frozen_arguments:
            if world.outside.all_frozen(class_name, m.unit.name, name):
                world.frozen_arguments.add((m.unit.number, name))
                new = True
        elif field and owner is not None and (m.unit.owner, field) not in world.frozen_fields:
            given = _given_to_constructor(world, m.unit.owner, field)
            if given and world.outside.all_frozen(class_name, "__init__", given):
                world.frozen_fields.add((m.unit.owner, field))
                new = True
    return new


def _networks(m: Machine) -> set[str]:
    """The parameters of a unit, and the fields of its object, that hold networks which it calls, and the parameters
    that hold those whose weights it writes."""
    found = set()
    if any(isinstance(fact, LeafWritten) for facts in m.facts.values() for fact in facts):
        for parameter in m.unit.parameters:
            given = m.state.object(m.number("argument", parameter.name))
            if given.kind is Kind.MODULE and given.requires_grad is not Fact.NO and given.owner == ARGUMENT:
                found.add(parameter.name)
    for ref in {ref for value in m.needed.by_modules.values() for ref in value.refs}:
        obj = m.state.object(ref)
        parts = obj.text.split(".")
        if obj.kind is not Kind.MODULE or obj.requires_grad is Fact.NO:
            continue
        if obj.owner == ARGUMENT and parts[0] in {one.name for one in m.unit.parameters}:
            found.add(parts[0])
        elif obj.owner == FIELD and parts[0] == m.unit.first and len(parts) > 1:
            found.add(f"{parts[0]}.{parts[1]}")
    return found


def _given_to_constructor(world: World, number: int, field: str) -> str:
    """The parameter of a class's own constructor that it keeps in a field, if nothing else sets that."""
    initial = world.program.classes[number].methods.get("__init__")
    summary = world.summary(initial) if initial is not None and not world.setters(field) else None
    kept = [one for one in summary.kept if one.path == (f".{field}",)] if summary is not None else []
    return kept[0].kept if len(kept) == 1 and kept[0].how is None and kept[0].always else ""
