"""Graphs that a constructor leaves in a field, and that a method runs backward over each time it is called, or a loop
on each of its turns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.autograd import distributions, hanging
from torchcopylint.flow.facts import BackwardAgain, ComputedOnce
from torchcopylint.flow.model import CONTAINERS, TENSORS, Fact, Kind, Sure
from torchcopylint.flow.program import hollow
from torchcopylint.flow.storages import keeping
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.tapes.way_back import WayBack
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from torchcopylint.flow.facts import Relation
    from torchcopylint.flow.running.machine import Machine

MAX_STEPS = 80
"""So many events are gone back over from a loss to the fields that it is computed from."""
_ENDS = frozenset({"detach", "item", "data", "numpy", "tolist", "clone_detached", "detach_", "shape", "size", "dim"})
"""Methods and attributes whose result has no graph."""


def found(m: Machine) -> Iterator[Relation]:
    """Where a method frees the graph in a field that nobody sets anew, and is called again: by a loop, or by others
    for whom it takes one step of many."""
    if m.unit.owner < 0 or m.unit.kind != "function" or m.unit.name == "__init__" or not m.runs.sites:
        return
    for site in sorted(m.runs.sites - m.runs.kept):
        over = operand(m, site)
        if over < 0 or site in m.runs.again or m.blocks.on_purpose:
            continue
        for field in _fields_behind(m, over):
            made = _made_with_graph(m, m.unit.owner, field)
            if made is not None and (site in m.results.registers or _is_called_again(m) or _is_a_step(m)):
                name = f"self.{field}"
                yield BackwardAgain(site, naming.text_of(m, over), site, Sure.LIKELY, "", made, name)
                break


def in_loops(m: Machine) -> Iterator[Relation]:
    """Where each turn of a loop runs backward over what a field of an object from before the loop has kept, of whatever
    class of the file, or over what a method of it computes from the field: `(system.rollout(x) - y).backward()`."""
    for site in sorted(m.runs.sites - m.runs.kept - set(m.runs.again)):
        loops = uses.loops_around(m, site)
        over = operand(m, site) if loops and not m.blocks.on_purpose else -1
        for name, made in _looked_at(m, over, loops) if over >= 0 else ():
            yield BackwardAgain(site, naming.text_of(m, over), site, Sure.LIKELY, "", made, name)
            break


def of_networks(m: Machine) -> Iterator[Relation]:
    """What the constructor of a network computes and keeps with its graph, and `forward` hangs on each time it is
    called: the backward of one training step frees it, and the next one raises. Not where a loop of the file tells of
    it, or somebody retains graphs."""
    if m.unit.name != "__init__" or m.unit.owner < 0 or m.world.class_kind(m.unit.owner)[0] is not Kind.MODULE:
        return
    me = m.number("argument", m.unit.first)
    for field, made in _returned(m, m.unit.owner, "forward"):
        held = [m.state.object(ref) for ref in m.state.refs_of((me, f".{field}"))]
        if not all(hollow.comes_through_known(m, obj) for obj in held):
            continue
        others = m.world.machines.values()
        if any(other.runs.kept or any(in_loops(other)) for other in others):
            return
        number = m.world.method(m.unit.owner, "forward")
        forward = m.world.machines[number] if number is not None else m
        read = min(e.site for e in forward.index.of(t.Attribute) if e.name == field and uses.is_self(forward, e.base))
        yield ComputedOnce(made, f"self.{field}", read, Sure.LIKELY)


def _looked_at(m: Machine, register: int, loops: tuple[int, ...]) -> Iterator[tuple[str, int]]:
    """The fields with such a graph that a value is computed from by what keeps the graph, and where they are set."""
    way = WayBack(m, register, MAX_STEPS)
    for event in way:
        if isinstance(event, t.Load):
            way.go_on(uses.bindings_before(m, event))
        elif isinstance(event, t.Operate):
            way.go_on(event.operands)
        elif isinstance(event, t.Attribute) and event.name not in _ENDS:
            owner = _class_of(m, event.base, loops)
            made = _made_with_graph(m, owner, event.name) if owner is not None else None
            if made is not None:
                yield naming.text_of(m, event.out), made
        elif (called := _called(m, event, loops)) is not None:
            for field, made in _returned(m, called[1], called[2]):
                yield f"{naming.text_of(m, called[0])}.{field}", made
        elif isinstance(event, t.Call | t.Invoke) and hands_on(m, event):
            way.go_on([argument.register for argument in event.arguments])
            way.go_on([event.base] if isinstance(event, t.Invoke) else [])


def _called(m: Machine, event: t.Event, loops: tuple[int, ...]) -> tuple[int, int, str] | None:
    """Of a call of a method of an object from before the loop, or of a network: the register of the object, its class,
    and the method."""
    register = event.base if isinstance(event, t.Invoke) else event.function if isinstance(event, t.Call) else -1
    owner = _class_of(m, register, loops)
    if owner is None:
        return None
    if isinstance(event, t.Invoke):
        return register, owner, event.name
    return register, owner, "forward" if m.world.class_kind(owner)[0] is Kind.MODULE else "__call__"


def hands_on(m: Machine, event: t.Call | t.Invoke) -> bool:
    """Whether an operation of torch hands on the graph of what it is given."""
    name = event.name if isinstance(event, t.Invoke) else m.dotted_of(event).rpartition(".")[2]
    return name not in _ENDS and keeping.keeps_graph(m, event)


def _class_of(m: Machine, register: int, loops: tuple[int, ...]) -> int | None:
    """The class of the file that an object is of which a name holds on all turns of a loop."""
    event = m.unit.definitions[register] if register >= 0 else None
    if not isinstance(event, t.Load):
        return None
    if any(not use.loads and use.loops[:1] == loops[:1] for use in uses.of_name(m, event.name)):
        return None
    refs = m.value(register).refs
    number = m.world.local_class(m.state.object(refs[0]).type) if len(refs) == 1 else None
    return number if number is not None and m.world.is_own_class(number) else None


def _returned(m: Machine, owner: int, name: str) -> Iterator[tuple[str, int]]:
    """The fields with such a graph that what a method returns hangs on, whichever way it returns."""
    number = m.world.method(owner, name)
    other = m.world.machines.get(number) if number is not None else None
    if other is None or other.blocks.has_no_grad or other.unit.is_generator:
        return
    if any(other.state.object(ref).requires_grad is Fact.NO for value in other.results.returned for ref in value.refs):
        return
    returns = [event.value for event in other.index.of(t.Return)]
    looked = {event.name for event in other.index.of(t.Attribute) if uses.is_self(other, event.base)}
    spent = {field: made for field in looked if (made := _made_with_graph(m, owner, field)) is not None}
    for field, made in sorted(spent.items()):
        whole = hanging.field_of(other, field)
        if returns and all(one >= 0 and whole in hanging.sources(other, one, frozenset({field})) for one in returns):
            yield field, made


def operand(m: Machine, site: int) -> int:
    """The register that backward at a site runs over, -1 if nobody knows."""
    if site in m.results.registers:
        return m.results.registers[site]
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
    loaded = [event for event in events if isinstance(event, t.Attribute) and uses.is_self(m, event.base)]
    recorded = (event for event in loaded if event.site not in m.index.unrecorded)
    return [event.name for event in recorded if event.name in m.fields.initial]


def _made_with_graph(m: Machine, owner: int, field: str) -> int | None:
    """Where the constructor of a class puts something into a field that surely has a graph to be freed, and nobody sets
    the field anew; `None` if it does not."""
    number = m.world.method(owner, "__init__") if not _is_set_anew(m, field) else None
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
    hanging = (obj for obj in objects if distributions.is_one(obj) or (obj.kind in TENSORS and obj.leaf is Fact.NO))
    computed = [obj for obj in hanging if obj.requires_grad > 0 and obj.graph]
    return cell.site if objects and len(computed) == len(objects) else None


def _is_set_anew(m: Machine, field: str) -> bool:
    """Whether a function sets a field of that name, other than a constructor, and somebody in the file speaks of it.

    Methods of networks, and those with special names, are called without being spoken of.
    """
    units = [m.world.program.units[number] for number in m.world.setters(field)]
    setters = {unit.name for unit in units}
    if any(unit.owner >= 0 and m.world.class_kind(unit.owner)[0] is not Kind.INSTANCE for unit in units):
        return True
    if any(name.startswith("__") for name in setters):
        return True
    for unit in m.world.program.units if setters else ():
        index = m.world.index(unit)
        spoken = {event.name for event in index.of(t.Invoke)} | {event.name for event in index.of(t.Attribute)}
        spoken |= {event.name for event in index.of(t.StoreAttribute)} | {event.name for event in index.of(t.Load)}
        if not spoken.isdisjoint(setters):
            return True
    return False


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
