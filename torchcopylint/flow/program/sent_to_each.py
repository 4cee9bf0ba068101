"""One model that a loop gives to each of several objects, where each is asked for the state of its own.

`for client in clients: client.net = net`, or `clients = [Client(net, part) for part in parts]`, and elsewhere
`[client.net.state_dict() for client in clients]`: who gathers what each has made of it takes them for different ones.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import ModulePaired
from torchcopylint.flow.model import Kind, Sure
from torchcopylint.flow.program import named_apart, trained_in_turn
from torchcopylint.flow.program.begun_again import is_bound_in
from torchcopylint.flow.values import kinds, naming

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchcopylint.flow.running.machine import Machine
    from torchcopylint.flow.tapes.index import UnitIndex

FORM = "gathered"
_STATES = frozenset({"state_dict", "parameters", "named_parameters"})


def found(m: Machine) -> Iterator[ModulePaired]:
    """The fields of what a loop goes through that it sets to one model, and that are gathered one by one."""
    for field, stores in m.index.stores.items():
        for store in stores:
            loops = m.index.loops.get(store.site, ())
            source = _of_all_turns(m, store, loops[-1]) if loops and len(stores) == 1 else ""
            met = min(_gathered(m, field, store.site), default=-1) if source else -1
            if met >= 0 and not _is_made_anew(m, field, store.site):
                name = f"{naming.text_of(m, store.base)}.{field}"
                yield ModulePaired(met, name, source, store.site, FORM, Sure.LIKELY)
    yield from _kept_by_all(m)


def _kept_by_all(m: Machine) -> Iterator[ModulePaired]:
    """The model that each turn of a loop hands to something it makes, which keeps it in a field."""
    for call in m.index.of(t.Call):
        loops = m.index.loops.get(call.site, ())
        made = m.value(call.out).refs if loops else ()
        if len(made) != 1 or m.state.object(made[0]).kind is not Kind.INSTANCE:
            continue
        fields = [slot for slot in m.state.slot_names(made[0]) if slot[1].startswith(".")]
        for argument in call.arguments:
            source = _of_loops(m, argument.register, loops[-1])
            given = m.value(argument.register).refs if source else ()
            for slot in fields if given else ():
                field = slot[1][1:]
                met = min(_gathered(m, field, call.site), default=-1) if m.state.refs_of(slot) == given else -1
                if met >= 0 and not _is_made_anew(m, field, call.site):
                    name = f"{m.state.object(made[0]).text}.{field}"
                    yield ModulePaired(met, name, source, call.site, FORM, Sure.LIKELY)


def _of_all_turns(m: Machine, store: t.StoreAttribute, loop: int) -> str:
    """The name of a model from before a loop that a store of the loop puts into a field of what each turn has of its
    own; empty if it is none."""
    return _of_loops(m, store.value, loop) if trained_in_turn.is_own(m, store.base, loop) else ""


def _of_loops(m: Machine, register: int, loop: int) -> str:
    """The name of a model that is the same one on all turns of a loop; empty if it is none."""
    made = m.unit.definitions[register] if register >= 0 else None
    source = naming.text_of(m, register) if isinstance(made, t.Load | t.Attribute) else ""
    if not isinstance(made, t.Load | t.Attribute) or not source or trained_in_turn.is_own(m, register, loop):
        return ""
    known = m.value(register).kind is Kind.MODULE or kinds.named_model(made.name)
    if not known or not named_apart.may_be_model(m, register) or is_bound_in(m, source.partition(".")[0], loop):
        return ""
    stores = m.index.stores.get(made.name, ()) if isinstance(made, t.Attribute) else ()
    # The field of another object may have that name, too.
    own = (one for one in stores if naming.text_of(m, one.base) == source.rpartition(".")[0])
    return "" if any(loop in m.index.loops.get(one.site, ()) for one in own) else source


def _gathered(m: Machine, field: str, stored: int) -> Iterator[int]:
    """Where a loop of this unit, or of another method of its class, asks what the field of each holds for its state.

    One that has each train in the same turn may gather what it copies, and begin from where it was again.
    """
    for unit in m.world.program.units:
        if unit is not m.unit and (unit.owner < 0 or unit.owner != m.unit.owner):
            continue
        index = m.world.index(unit)
        for event in index.of(t.Invoke):
            held = unit.definitions[event.base] if event.name in _STATES and event.base >= 0 else None
            owner = unit.definitions[held.base] if isinstance(held, t.Attribute) and held.base >= 0 else None
            if isinstance(held, t.Attribute) and held.name == field and isinstance(owner, t.Load):
                around = index.loops.get(event.site, ())
                over = (index.loops.get(bind.site, ())[-1:] for bind in index.binds.get(owner.name, ()))
                turns = {*chain.from_iterable(over)}.intersection(around)
                if turns and not any(_is_part_of_turn(unit, index, owner.name, stored, loop) for loop in turns):
                    yield event.site


def _is_part_of_turn(unit: t.Unit, index: UnitIndex, name: str, stored: int, loop: int) -> bool:
    """Whether the store is a part of a loop's turn, or a call of a method of what a name holds."""
    called = (event for event in index.of(t.Invoke) if loop in index.loops.get(event.site, ()))
    bases = (unit.definitions[event.base] for event in called if event.base >= 0)
    calls = any(isinstance(base, t.Load) and base.name == name for base in bases)
    return calls or loop in index.loops.get(stored, ())


def _is_made_anew(m: Machine, field: str, stored: int) -> bool:
    """Whether somebody else in the file sets such a field, once the object is there. The class that hands its model
    out may have one of that name itself."""
    for number in m.world.setters(field):
        unit = m.world.unit(number)
        for event in m.world.index(unit).stores.get(field, ()) if unit.name != "__init__" else ():
            owner = unit.definitions[event.base] if event.base >= 0 else None
            mine = unit.owner == m.unit.owner and isinstance(owner, t.Load) and owner.name == unit.first
            made = unit.definitions[event.value] if event.value >= 0 else None
            handed = isinstance(made, t.Load) and any(one.name == made.name for one in unit.parameters)
            none = isinstance(made, t.Const) and made.value is None
            if event.site != stored and not (mine or handed or none):
                return True
    return False
