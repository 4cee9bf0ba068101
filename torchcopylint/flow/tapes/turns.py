"""What one turn of a loop sees of another: what it put back into what the loop goes through, what it bound before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import Cell, Key
from torchcopylint.flow.values.state import ALIVE, Delta

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

_WHOLE = frozenset({"items", "keys"})
_COUNTED = frozenset({"enumerate", "list", "sorted"})
_NUMBERS = frozenset({"range", "len"})


def put_back(m: Machine, site: int) -> frozenset[int]:
    """The objects, as the older ones of their sites, that the turns of a loop put back under its own key.

    In `for key, value in table.items(): table[key] = new(value)` no later turn comes upon what an earlier one has put
    there: each key has one turn.
    """
    found: set[int] = set()
    for store in m.index.put_back.get(site, ()):
        found.update(ref | 1 for ref in m.value(store.value).refs)
    return frozenset(found)


def stores_of_turns(
    unit: t.Unit, stores: list[t.StoreItem], bound_before: dict[int, list[int]]
) -> dict[int, list[t.StoreItem]]:
    """For each loop, by the site of its `Iterate`, those of a unit's `stores` that its turns do under their own key."""
    found: dict[int, list[t.StoreItem]] = {}
    for event in stores:
        if len(event.subscript) != 1 or not isinstance(event.subscript[0], int):
            continue
        base, key = unit.definitions[event.base], unit.definitions[event.subscript[0]]
        place = _place(unit, base)
        if not isinstance(key, t.Load) or not place:
            continue
        for register in bound_before.get(key.out, ()):
            made = unit.definitions[register] if register >= 0 else None
            while isinstance(made, t.Unpack):
                made = unit.definitions[made.value]
            if isinstance(made, t.Iterate) and _gone_through(unit, made.iterable) == place:
                found.setdefault(made.site, []).append(event)
    return found


def is_single(unit: t.Unit, loop: t.Loop) -> bool:
    """Whether a loop takes one turn, because that is what is written there: `for i in range(1):`."""
    head = loop.body[0] if loop.body else None
    over = unit.definitions[head.iterable] if isinstance(head, t.Iterate) and head.iterable >= 0 else None
    if not isinstance(over, t.Call) or len(over.arguments) != 1 or loop.orelse:
        return False
    called, count = unit.definitions[over.function], unit.definitions[over.arguments[0].register]
    return isinstance(called, t.Load) and called.name == "range" and isinstance(count, t.Const) and count.value == 1


def renewed_names(unit: t.Unit) -> dict[int, tuple[str, ...]]:
    """For each loop, by its site, the names that its turns write in place and that every turn binds anew.

    In `h += x[t]; out.append(h); h = f(h)` what a turn writes is what the turn before it has made, and `out` has what
    was made before that.
    """
    found: dict[int, tuple[str, ...]] = {}
    for loop in t.events(unit.tape):
        if loop.__class__ is not t.Loop:
            continue
        bound = {
            event.name
            for event in loop.body
            if event.__class__ is t.Bind
            and event.value >= 0
            and not isinstance(unit.definitions[event.value], t.Augment | t.Load | t.Iterate)
        }
        writing = [event for event in t.events(loop.body) if event.__class__ in _WRITING] if bound else []
        written = {_written_name(unit, event) for event in writing}
        if names := tuple(sorted(bound & written)):
            found[loop.site] = names
    return found


_WRITING = frozenset({t.Augment, t.StoreItem, t.Invoke})
"""Events that may write in place what a name holds."""


def _written_name(unit: t.Unit, event: t.Event) -> str:
    """The name that an event writes in place, as far as it says so itself."""
    match event:
        case t.Augment(target=base) | t.StoreItem(base=base):
            pass
        case t.Invoke(base=base, name=name) if name.endswith("_") and not name.startswith("_"):
            pass
        case _:
            return ""
    made = unit.definitions[base] if base >= 0 else None
    return made.name if isinstance(made, t.Load) else ""


class Started(NamedTuple):
    """What a name stood for when a loop began whose turns write it and bind it anew: its objects, who held their memory
    then, what backward needed of it, and where the name is bound at the head of a later turn."""

    refs: frozenset[int]
    holders: frozenset[Key]
    saved: frozenset[int]
    site: int = -1


def started(m: Machine, loop: t.Loop) -> dict[str, Started]:
    """What the names that each turn of a loop writes and binds anew stand for as it begins."""
    found = {}
    for name in m.index.renewed.get(loop.site, ()):
        refs = m.state.refs_of(name)
        storages = {share.storage for ref in refs for share in m.state.object(ref).shares}
        if storages:
            holders = frozenset(key for storage in storages for key, _ in m.state.holders_of(storage))
            saved = frozenset(one for storage in storages for one in m.state.object(storage).saved)
            found[name] = Started(frozenset(refs), holders, saved)
    return found


def renewed(known: dict[str, Started], turns: Sequence[Delta]) -> list[str]:
    """The names that stand for nothing that they stood for when a loop began, in whichever way a turn has ended."""
    live = [turn for turn in turns if turn.get(ALIVE, True) is True]
    found = []
    for name, start in known.items():
        cells = [turn.get(name) for turn in live]
        if cells and all(isinstance(c, Cell) and c.refs and start.refs.isdisjoint(c.refs) for c in cells):
            found.append(name)
    return found


def behind(m: Machine, root: Key | None, ref: int) -> Started | None:
    """If a write goes through a name, at the head of a later turn, that stands for this object as the loop began: what
    was so then. Who came to hold it afterwards, in the first turn, sees no write of a later one."""
    start = m.started.get(root) if isinstance(root, str) else None
    if start is None or ref not in start.refs:
        return None
    cell = m.state.cell(root) if root is not None else None
    return start if cell is not None and cell.site == start.site else None


def _gone_through(unit: t.Unit, register: int) -> str:
    """The name or field of what a loop goes through, by its items, its keys or its positions."""
    event = unit.definitions[register] if register >= 0 else None
    if isinstance(event, t.Invoke) and event.name in _WHOLE:
        event = unit.definitions[event.base]
    elif isinstance(event, t.Call) and len(event.arguments) == 1:
        called = unit.definitions[event.function] if event.function >= 0 else None
        if isinstance(called, t.Load) and called.name in _COUNTED | _NUMBERS:
            return _gone_through(unit, event.arguments[0].register)
    return _place(unit, event)


def _place(unit: t.Unit, event: t.Event | None) -> str:
    """A name, or a field of one, as it is written: `table`, `self.table`; else nothing."""
    if isinstance(event, t.Attribute):
        base = _place(unit, unit.definitions[event.base])
        return f"{base}.{event.name}" if base else ""
    return event.name if isinstance(event, t.Load) else ""


def of_other_elements(m: Machine, write: int, taken: int, holder: str) -> bool:
    """Whether a loop first changes an element that it goes through, at the site `write`, and then takes something of
    it, at the site `taken`, for what `holder` holds and every run of the loop finds made anew.

    The next turn changes the next element, and what was taken of this one stays as it was.
    """
    around = [loop for loop in m.index.loops.get(taken, ()) if loop in m.index.loops.get(write, ())]
    if not around or not write < taken or taken not in m.index.calls or write not in m.index.calls:
        return False
    loop = next(event for event in m.index.of(t.Loop) if event.site == around[-1])
    if not loop.body or not isinstance(loop.body[0], t.Iterate):
        return False
    names = {event.name for event in loop.body if isinstance(event, t.Bind) and _is_element(m, event.value, loop)}
    of_element = [_owner(m, site) for site in (write, taken)]
    if of_element[0] != of_element[1] or of_element[0] not in names:
        return False
    bound = [event.site for event in m.index.binds.get(holder, ())]
    return bool(bound) and all(list(m.index.loops.get(site, ())) == around[:-1] for site in bound)


def is_on_element(m: Machine, site: int) -> bool:
    """Whether the innermost loop around a call calls what it takes out, or a method or part of that, on each turn."""
    around = m.index.loops.get(site, ())
    if not around or site not in m.index.calls:
        return False
    loop = _loop(m, around[-1])
    if not loop.body or not isinstance(loop.body[0], t.Iterate):
        return False
    event: t.Event | None = m.unit.definitions[m.index.calls[site]]
    if isinstance(event, t.Call):
        event = m.unit.definitions[event.function]
    followed = False
    while isinstance(event, t.Invoke | t.Attribute | t.Item | t.Load):
        if isinstance(event, t.Load):
            if followed or _is_taken_out(m, event.out, loop):
                return not followed
            # `layer = self.layers[i]`, then `layer(x)`; one name is followed, and no chain of them.
            followed = True
            bound = [*m.index.binds.get(event.name, ())]
            alone = len(bound) == 1 and bound[0].value >= 0 and m.index.loops.get(bound[0].site, ()) == around
            event = m.unit.definitions[bound[0].value] if alone else None
            continue
        # `self.layers[i](x)` calls another one on each turn, as `layer(x)` does.
        places = [*event.subscript] if isinstance(event, t.Item) else []
        place = places[0] if len(places) == 1 else None
        if isinstance(place, int) and _is_taken_out(m, place, loop):
            return True
        event = m.unit.definitions[event.base] if event.base >= 0 else None
    return False


def _is_taken_out(m: Machine, register: int, loop: t.Loop) -> bool:
    """Whether a register was loaded, within a loop, from a name that this binds there to what it takes out."""
    load = m.unit.definitions[register] if register >= 0 else None
    return isinstance(load, t.Load) and _holds_element(m, load, loop)


def _holds_element(m: Machine, load: t.Load, loop: t.Loop) -> bool:
    """Whether a name that is loaded within a loop stands for what this takes out. What binds it outside, as another
    loop does whose elements go by the same name, is not seen there: the head of each turn binds it anew."""
    if loop.site not in m.index.loops.get(load.site, ()):
        return False
    bound = [bind for bind in m.index.binds.get(load.name, ()) if loop.site in m.index.loops.get(bind.site, ())]
    return bool(bound) and all(_is_element(m, bind.value, loop) for bind in bound)


def is_of_other_element(m: Machine, written: int, saved: int) -> bool:
    """Whether a loop writes what it takes out, or a part of that, before it calls it: what a call on an earlier turn
    has saved is another element's. `for layer in self.layers: layer.adapt(x); x = layer(x)`"""
    behind = saved == written or (
        saved > written and m.index.loops.get(saved, ()) == m.index.loops.get(written, ()) and is_on_element(m, saved)
    )
    return behind and is_on_element(m, written)


def nested(m: Machine, around: tuple[int, ...]) -> int:
    """How many of the innermost of some loops go through parts of what the one around them takes out, and that one:
    `for group in groups: for p in group["params"]`. All that they come upon is another thing each time."""
    count = 1
    while count < len(around):
        outer, inner = (_loop(m, around[-count - 1]), _loop(m, around[-count]))
        head = inner.body[0] if inner.body else None
        if not isinstance(head, t.Iterate) or not _is_of_element(m, head.iterable, outer):
            break
        count += 1
    return count


def _loop(m: Machine, site: int) -> t.Loop:
    return next(event for event in m.index.of(t.Loop) if event.site == site)


def _is_of_element(m: Machine, register: int, loop: t.Loop) -> bool:
    """Whether a register holds what a loop takes out, or a part of that."""
    event = m.unit.definitions[register] if register >= 0 else None
    while isinstance(event, t.Item | t.Invoke | t.Attribute):
        event = m.unit.definitions[event.base] if event.base >= 0 else None
    return isinstance(event, t.Load) and bool(loop.body) and _holds_element(m, event, loop)


def _is_element(m: Machine, register: int, loop: t.Loop) -> bool:
    made = m.unit.definitions[register] if register >= 0 else None
    while isinstance(made, t.Unpack):
        made = m.unit.definitions[made.value]
    return made is loop.body[0]


def _owner(m: Machine, site: int) -> str:
    """The name on which, or on a field of which, a method is called."""
    event: t.Event | None = m.unit.definitions[m.index.calls[site]]
    while isinstance(event, t.Invoke | t.Attribute):
        event = m.unit.definitions[event.base] if event.base >= 0 else None
    return event.name if isinstance(event, t.Load) else ""


def bound_on_the_way(m: Machine, name: str, site: int, other: int = -1) -> int:
    """Where a name was bound on the way to a site, in the same turn of every loop around it; -1 if that is not sure.

    With another site, only the turns of loops around both count.
    """
    found = -1
    tape = m.unit.tape
    while True:
        inside: t.Tape | None = None
        for event in tape:
            parts = t.inner_tapes(event)
            inside = next((part for part in parts if any(one.site == site for one in t.events(part))), None)
            if event.__class__ is t.Loop and inside is not None:
                both = other < 0 or any(one.site == other for one in t.events(inside))
                found = -1 if both else found
            if inside is not None or event.site == site:
                break
            if isinstance(event, t.Bind) and event.name == name:
                found = event.site
        if inside is None:
            return found
        tape = inside
