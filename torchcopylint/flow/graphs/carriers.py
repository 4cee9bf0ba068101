"""What takes a graph into the next turn of a loop: a name, field or entry that the loop reads before it sets it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.graphs.runs import MAX_DEPTH, held_in, ran_at
from torchcopylint.flow.model import TENSORS, Fact, Kind
from torchcopylint.flow.program import recurrent
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

MAX_NAMES = 4
"""By way of so many names, what is kept is followed back to where it was computed."""


def found(m: Machine, loop: t.Loop, ran: int, through: frozenset[int]) -> tuple[str, int] | None:
    """The name that takes a graph into the loop's next turn, and where it is bound last, if nothing there cuts it.

    It is read in the loop before it is bound there. Where one of several bindings cuts it, that happens under a
    condition of which we do not know how it goes with the one for backward.
    """
    read: dict[str, list[t.Load | t.Attribute | t.Item]] = {}
    bound: dict[str, list[tuple[int, int]]] = {}
    carried: set[str] = set()
    names: dict[tuple[int, str], str] = {}
    """Of each field and entry, what it was called first: a helper that was put in has a name of its own for it."""
    for event in (event for part in (loop.test, loop.body) for event in t.events(part)):
        match event:
            case t.Load():
                read.setdefault(event.name, []).append(event)
            case t.Attribute() | t.Item():
                read.setdefault(_called(m, event, names), []).append(event)
            case t.Bind() | t.StoreAttribute():
                named = event.name if isinstance(event, t.Bind) else _called(m, event, names)
                if named in read and named not in bound and not _is_made_anew(m, event, loop, carried):
                    carried.add(named)
                bound.setdefault(named, []).append((event.value, event.site))
            case t.StoreItem() if _is_entry(m, event):
                named = _called(m, event, names)
                if named in read and named not in bound and not _is_made_anew(m, event, loop, carried):
                    carried.add(named)
                bound.setdefault(named, []).append((event.value, event.site))
            case t.StoreItem() | t.Invoke() if isinstance(event, t.StoreItem) or event.name.endswith("_"):
                # In place: what the name held before goes on, and takes the graph of what is put into it along.
                base = m.unit.definitions[event.base] if event.base >= 0 else None
                # In a helper that was put in, its own name stands for it, as where that is bound.
                named = base.name if isinstance(base, t.Load) else naming.text_of(m, event.base)
                if named not in bound:
                    carried.add(named)
                bound.setdefault(named, []).append((event.base, event.site))
    for name, places in bound.items():
        if name in carried and _is_reached(m, name, places, through) and _all_take_along(m, places, ran):
            if any(recurrent.may_cut(m, register) for register, _ in places):
                continue
            if recurrent.cuts_elements(m, (e for part in (loop.test, loop.body) for e in t.events(part)), name):
                continue
            if all(_is_for_next_turn(m, register, name, ran) for register, _ in places):
                continue
            if _is_cut_when_read(m, read.get(name, []), places[0][1]):
                continue
            return None if _is_cut_by_method(m, loop, name) else (name, places[-1][1])
    return None


def _is_cut_when_read(m: Machine, looks: list[t.Load | t.Attribute | t.Item], bound: int) -> bool:
    """Whether a turn takes what it finds in a place without its graph alone, and then sets the place on all paths:
    `h = state.detach()`, and `state = h` when `h` has gone through the steps of an inner loop."""
    before = [look.out for look in looks if look.site < bound]
    return bool(before) and bound not in m.index.on_arms and all(_is_cut(m, out) for out in before)


def _is_cut(m: Machine, register: int) -> bool:
    """Whether what is computed of a value has lost the graph before it gets a name: `(state * decay).detach()`."""
    for _ in range(MAX_NAMES):
        user = m.consumer_of(register)
        if isinstance(user, t.Invoke | t.Attribute) and user.base == register and user.name in _CUTS:
            return True
        if isinstance(user, t.Call) and recurrent.may_cut(m, user.out):
            return True
        if not isinstance(user, t.Invoke | t.Attribute | t.Item | t.Operate):
            return False
        register = user.out
    return False


_CUTS = frozenset({"detach", "data"})


def _is_for_next_turn(m: Machine, register: int, name: str, ran: int) -> bool:
    """Whether what a turn leaves under a name is computed neither of what the name held before nor of anything that
    backward at a site runs over on the same turn: then the next turn's backward is the first to come to its graph.

    `y = head(state)`, `state = encoder(x)`, and backward over `y`: what `encoder` has saved is needed a turn later.
    """
    call = m.unit.definitions[m.index.calls[ran]] if ran in m.index.calls else None
    if not isinstance(call, t.Invoke):
        return False
    made, lost = uses.expression(m, register, name), uses.expression(m, call.base, "")
    if max(len(made), len(lost)) >= uses.MAX_EXPRESSION or any(e.__class__ is t.Load and e.name == name for e in made):
        return False
    inside = uses.loops_around(m, ran)
    now, later = (
        {event.site for event in part if isinstance(event, _COMPUTING) and _has_graph(m, event, Fact.UNKNOWN)}
        for part in (lost, made)
    )
    aside = [event for event in lost if not isinstance(event, (*_COMPUTING, t.Load, t.Unpack))]
    if any(_has_graph(m, event, Fact.LIKELY) for event in aside):
        # A field, or what somebody has put into a list, may be what is carried.
        return False
    turn = {site for site in now | later if uses.loops_around(m, site) == inside}
    return bool(now & turn and later & turn) and now.isdisjoint(later)


_COMPUTING = (t.Call, t.Invoke, t.Operate)


def _has_graph(m: Machine, event: t.Event, least: Fact) -> bool:
    """Whether what an event makes is computed of something that requires grad, or may be."""
    out = getattr(event, "out", t.NO_REGISTER)
    held = held_in(m, m.value(out).refs if out >= 0 else (), MAX_DEPTH)
    kinds = (*TENSORS, Kind.UNKNOWN)
    return any(obj.kind in kinds and obj.leaf <= 0 and obj.requires_grad >= least for obj in held)


def _called(
    m: Machine, event: t.Attribute | t.StoreAttribute | t.Item | t.StoreItem, names: dict[tuple[int, str], str]
) -> str:
    """How a field or an entry is called where the loop first comes upon it."""
    step = event.name if isinstance(event, t.Attribute | t.StoreAttribute) else naming.index_text(m, event.subscript)
    attribute = isinstance(event, t.Attribute | t.StoreAttribute)
    text = f"{naming.text_of(m, event.base)}{f'.{step}' if attribute else f'[{step}]'}"
    refs = m.value(event.base).refs
    return names.setdefault((refs[0] | 1, step), text) if len(refs) == 1 else text


def _is_made_anew(m: Machine, event: t.Bind | t.StoreAttribute | t.StoreItem, loop: t.Loop, carried: set[str]) -> bool:
    """Whether each turn has made what an entry or field is put into: `out = model(x)`, and then `out["loss"] = ...`."""
    held = m.unit.definitions[event.base] if not isinstance(event, t.Bind) and event.base >= 0 else None
    if not isinstance(held, t.Load) or held.name in carried:
        return False
    binds = [bind for bind in loop.body if isinstance(bind, t.Bind) and bind.name == held.name]
    made = m.unit.definitions[binds[0].value] if binds and binds[0].value >= 0 else None
    return isinstance(made, t.Make) or (isinstance(made, t.Call) and bool(made.arguments))


def _is_entry(m: Machine, event: t.StoreItem) -> bool:
    """Whether something is put under a key that is a text."""
    keys = [m.value(one).const for one in event.subscript if not isinstance(one, t.Slice)]
    return len(keys) == 1 == len(event.subscript) and isinstance(keys[0], str)


def _is_reached(m: Machine, name: str, places: list[tuple[int, int]], through: frozenset[int]) -> bool:
    """Whether what a name is bound to in a loop had the graph when backward freed it, under that name or another."""
    if "#" in name or name.startswith(("%", ".")) or "..." in name:
        return False
    cell = m.state.cell(name)
    sites = {*(site for _, site in places), cell.site if cell is not None else -1}
    return not sites.isdisjoint(through) or any(
        not through.isdisjoint(_bound_before(m, register)) for register, _ in places
    )


def _bound_before(m: Machine, register: int) -> set[int]:
    """Where the names were bound that a value has had before: `h = new` behind `y, new = cell(x, h)`."""
    found: set[int] = set()
    for _ in range(MAX_NAMES):
        event = m.unit.definitions[register] if register >= 0 else None
        display = m.unit.definitions[event.value] if isinstance(event, t.Unpack) else None
        if isinstance(event, t.Unpack) and isinstance(display, t.Make) and 0 <= event.position < len(display.items):
            register = display.items[event.position]
            continue
        binds = m.index.binds.get(event.name, ()) if isinstance(event, t.Load) else ()
        found.update(bind.site for bind in binds)
        if len(binds) != 1:
            break
        register = binds[0].value
    return found


def _all_take_along(m: Machine, places: list[tuple[int, int]], ran: int) -> bool:
    return all(_takes_along(m, register, ran) for register, _ in places)


def _is_cut_by_method(m: Machine, loop: t.Loop, name: str) -> bool:
    """Whether a loop calls a method of the same object that sets the field `name` anew, or detaches it."""
    owner, _, kept = name.rpartition(".")
    for event in (event for part in (loop.test, loop.body) for event in t.events(part)):
        if owner != "self" or not isinstance(event, t.Invoke) or naming.text_of(m, event.base) != owner:
            continue
        called = m.world.method(m.unit.owner, event.name)
        if called is not None and m.world.is_own(called) and _lets_go(m.world.unit(called), kept):
            return True
    return False


def _lets_go(unit: t.Unit, kept: str) -> bool:
    """Whether a method sets a field, or cuts what it holds."""
    for event in t.events(unit.tape):
        if isinstance(event, t.StoreAttribute) and event.name == kept:
            return True
        if isinstance(event, t.Invoke) and event.name == "detach_" and event.base >= 0:
            base = unit.definitions[event.base]
            if isinstance(base, t.Attribute) and base.name == kept:
                return True
    return False


def _takes_along(m: Machine, register: int, ran: int) -> bool:
    """Whether the value of a register carries a graph that backward at a site has freed (it has run since).

    What an empty list holds by now was put there later.
    """
    made = m.unit.definitions[register] if register >= 0 else None
    if isinstance(made, t.Make) and not made.items and register not in m.index.collected:
        return False
    held = list(held_in(m, m.value(register).refs, MAX_DEPTH))
    return bool(held) and any(ran in ran_at(obj.graph) for obj in held)
