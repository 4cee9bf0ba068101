"""A plain tensor becomes the memory of two parameters: each is trained, and so is the other with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import DataShared
from torchcopylint.flow.model import ARGUMENT, LOCAL, TENSORS, UNKNOWN, Kind, Value
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

_FORM = "table"
_COLLECTING = frozenset({"append", "add_module"})


def note(m: Machine, site: int, source: Value, text: str, place: str = "") -> None:
    """A plain tensor becomes the memory of a parameter, `text`: the second that gets it shares it with the first.

    `place` tells parameters apart, where their names do not.
    """
    place = place or text
    _note_handed(m, site, source, text)
    if not _is_plain(m, source):
        return
    obj = m.state.object(source.refs[0])
    table, _ = m.holding.tables.get(obj.shares[0].storage, (-1, False)) if obj.shares else (-1, False)
    first, held = m.holding.given_memory.setdefault(source.refs[0], (site, place) if table < 0 else (table, ""))
    name = naming.key_text(m, source.root) or obj.text
    if held != place and uses.runs_before(m, first, site):
        m.fact(DataShared(site, text, name, _FORM, obj.sure, first))
    elif _each_turn(m, site, obj.site, text):
        m.fact(DataShared(site, text, name, _FORM, obj.sure))


def note_table(m: Machine, source: Value, site: int, frozen: bool, place: str) -> None:
    """One table of weights is given to an embedding; twice, and trained by one, it is shared by two."""
    if not frozen:
        _note_handed(m, site, source, place)
    if len(source.refs) != 1 or m.state.object(source.refs[0]).kind not in TENSORS:
        return
    ref = source.refs[0]
    storage = m.state.object(ref).shares[0].storage
    first, kept = m.holding.tables.setdefault(storage, (site, frozen))
    # One that is frozen and one that is not may be the arms of one condition.
    both = not kept and not frozen and first != site
    if both or (not (kept and frozen) and uses.runs_before(m, first, site)):
        name = naming.key_text(m, source.root) or "one tensor"
        m.fact(DataShared(site, "this embedding", name, _FORM, m.state.object(ref).sure, first))
    elif not frozen and _is_plain(m, source) and _each_turn(m, site, m.state.object(ref).site, place):
        name = naming.key_text(m, source.root) or "one tensor"
        m.fact(DataShared(site, "this embedding", name, _FORM, m.state.object(ref).sure))


def by_call(m: Machine, number: int, bound: dict[str, Value], site: int, name: str) -> None:
    """A function of the file, or a constructor, makes what it is given the memory of a parameter, and hands that out:
    each call does so."""
    callee = m.world.machines.get(number)
    for parameter in callee.holding.handed_memory if callee is not None else ():
        value = bound.get(parameter, UNKNOWN)
        if _is_plain(m, value):
            # Each call makes a parameter of its own.
            note(m, site, value, f"{name}(...)", str(site))


def _each_turn(m: Machine, site: int, made: int, place: str) -> bool:
    """Whether each turn of a loop collects a parameter of its own, and all get what was made before the loop."""
    loops = uses.loops_around(m, site)
    if not loops or uses.on_some_paths(m, site) or loops[-1] in uses.loops_around(m, made):
        return False
    root = place.partition(".")[0]
    named = (event for event in m.index.of(t.Load) if event.name == root)
    loads = [event.out for event in named if loops[-1] in uses.loops_around(m, event.site)]
    users = [m.use_of(site), *(m.consumer_of(register) for register in loads)]
    return any(
        isinstance(user, t.Collect) or (isinstance(user, t.Invoke) and user.name in _COLLECTING) for user in users
    )


def _is_plain(m: Machine, source: Value) -> bool:
    """Whether a value is one tensor that no loop makes anew, and no field or parameter."""
    if len(source.refs) != 1 or source.refs[0] & 1:
        return False
    obj = m.state.object(source.refs[0])
    return obj.kind is Kind.TENSOR and obj.owner in ("", LOCAL, ARGUMENT)


def _note_handed(m: Machine, site: int, source: Value, place: str) -> None:
    """What becomes the memory of a parameter may have been handed in by whoever gets the parameter: in a field of the
    object that a constructor makes, or as a part of what a function returns."""
    if len(source.refs) != 1 or uses.on_some_paths(m, site):
        return
    root = place.partition(".")[0]
    made = m.unit.definitions
    ends = [made[event.value] for event in m.index.of(t.Return) if event.value >= 0]
    handed_out = bool(ends) and all(isinstance(one, t.Load) and one.name == root for one in ends)
    if handed_out or (m.unit.name == "__init__" and root == m.unit.first):
        names = [p.name for p in m.unit.parameters if m.number("argument", p.name) == source.refs[0]]
        m.holding.handed_memory.update(names)
