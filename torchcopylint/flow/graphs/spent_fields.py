"""Graphs that a constructor leaves in a field, and that a method runs backward over each time it is called."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import BackwardAgain
from torchcopylint.flow.model import CONTAINERS, TENSORS, Fact, Kind, Sure
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from torchcopylint.flow.facts import Relation
    from torchcopylint.flow.running.machine import Machine

_ENDS = frozenset({"detach", "item", "data", "numpy", "tolist", "clone_detached", "detach_", "shape", "size", "dim"})
"""Methods and attributes whose result has no graph."""


def found(m: Machine) -> Iterator[Relation]:
    """Where a method frees the graph in a field that nobody sets anew, and is called again: by a loop, or by others
    for whom it takes one step of many."""
    if m.unit.owner < 0 or m.unit.kind != "function" or m.unit.name == "__init__" or not m.runs.sites:
        return
    for site in sorted(m.runs.sites - m.runs.kept):
        over = _operand(m, site)
        if over < 0 or site in m.runs.again or m.on_purpose:
            continue
        for field in _fields_behind(m, over):
            made = _made_with_graph(m, field) if not m.world.setters(field) else None
            if made is not None and (_is_called_again(m) or _is_a_step(m)):
                name = f"self.{field}"
                yield BackwardAgain(site, naming.text_of(m, over), site, Sure.LIKELY, "", made, name)
                break


def _operand(m: Machine, site: int) -> int:
    """The register that backward at a site runs over, -1 if nobody knows."""
    register = m.index.calls.get(site, -1)
    event = m.unit.definitions[register] if register >= 0 else None
    if isinstance(event, t.Invoke) and event.name == "backward":
        return event.base
    if isinstance(event, t.Invoke | t.Call) and event.arguments and not event.arguments[0].keyword:
        return event.arguments[0].register
    return -1


def _fields_behind(m: Machine, register: int) -> list[str]:
    """The fields that a value is computed from, by operations that keep the graph."""
    events = uses.expression(m, register, "")
    if any(isinstance(event, t.Attribute | t.Invoke) and event.name in _ENDS for event in events):
        return []
    loaded = [event for event in events if isinstance(event, t.Attribute) and _is_self(m, event.base)]
    recorded = (event for event in loaded if event.site not in m.index.unrecorded)
    return [event.name for event in recorded if event.name in m.initial_fields]


def _is_self(m: Machine, register: int) -> bool:
    event = m.unit.definitions[register] if register >= 0 else None
    return isinstance(event, t.Load) and event.name == m.unit.first


def _made_with_graph(m: Machine, field: str) -> int | None:
    """Where the constructor puts something into a field that surely has a graph to be freed; `None` if it does not."""
    number = m.world.method(m.unit.owner, "__init__")
    initial = m.world.machines.get(number) if number is not None else None
    if initial is None or not initial.unit.parameters:
        return None
    cell = initial.state.cell((initial.number("argument", initial.unit.first), f".{field}"))
    if cell is None or len(cell.refs) != 1 or cell.site < 0 or uses.on_some_paths(initial, cell.site):
        return None
    held = [cell.refs[0]]
    if initial.state.object(held[0]).kind in CONTAINERS:
        held = [ref for slot in initial.state.slot_names(held[0]) for ref in initial.state.refs_of(slot)]
    objects = [initial.state.object(ref) for ref in held]
    computed = (obj.kind in TENSORS and obj.leaf is Fact.NO and obj.requires_grad > 0 and obj.graph for obj in objects)
    return cell.site if objects and all(computed) else None


def _is_called_again(m: Machine) -> bool:
    """Whether a loop in the file calls the method, on an object that the loop has not made."""
    for number, other in m.world.machines.items():
        for event in other.index.of(t.Invoke) if number != m.unit.number else ():
            loops = uses.loops_around(other, event.site) if event.name == m.unit.name else ()
            base = other.unit.definitions[event.base] if loops else None
            if isinstance(base, t.Load) and not any(
                not use.loads and use.loops[:1] == loops[:1] for use in uses.of_name(other, base.name)
            ):
                return True
    return False


def _is_a_step(m: Machine) -> bool:
    """Whether a method takes one step of an optimizer, and nobody in the file calls it: one step trains nothing."""
    called = {event.name for other in m.world.machines.values() for event in other.index.of(t.Invoke)}
    steps = [event for event in m.index.of(t.Invoke) if event.name == "step" and not uses.loops_around(m, event.site)]
    return m.unit.name not in called and any(m.value(event.base).kind is Kind.OPTIMIZER for event in steps)
