"""A model that each turn of a loop hands to another trainer, where all of them were to begin from the same state.

`w = client.train(net)`, with `net.load_state_dict(average(ws))` behind the loop: that the average of what the turns
have made is put back says that each of them was to be given a copy. As it is, each goes on from where the last one
ended. So it does where each of them was handed the model before, and keeps it:
`clients = [Client(net, part) for part in parts]`, with `ws = [client.train() for client in clients]`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import PutAside
from torchcopylint.flow.model import Kind, Sure
from torchcopylint.flow.program.begun_again import RESETTING, is_bound_in, is_put_back, optimizer_for
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchcopylint.flow.running.machine import Machine

CONSUMER = "turns"
_ITSELF = frozenset({"to", "cuda", "cpu", "float", "double", "train"})
"""Methods of a module that return it."""
_COUNTING = frozenset({"range", "enumerate", "tqdm", "trange"})
MAX_STEPS = 40


def found(m: Machine) -> Iterator[PutAside]:
    """The calls of a loop that train one model in turn, where what all of them return is put back into it."""
    yield from _by_name(m)
    for number, write in m.writes.items():
        loops = m.index.loops.get(write.site, ())
        call = _call_at(m, write.site) if write.form == "step" and write.kind is Kind.MODULE and loops else None
        if isinstance(call, t.Invoke):
            yield from _kept(m, number, call, loops[-1])
        handed = _handed(m, call, write.name) if call is not None else -1
        source = write.name
        if call is None or handed < 0 or is_bound_in(m, source.partition(".")[0], loops[-1]):
            continue
        if _is_set(m, source, loops[-1]) or is_put_back(m, {source}, loops[-1]) or not _has_own(m, call, loops[-1]):
            continue
        lists = _collected(m, call, loops[-1])
        back = min(_put_back(m, source, lists, loops[-1], call.site), default=-1)
        if lists and back >= 0:
            yield PutAside(back, source, source, handed, number, CONSUMER, Sure.LIKELY, Kind.MODULE)


def _by_name(m: Machine) -> Iterator[PutAside]:
    """What a loop trains itself under a name that each turn binds to the model in a field: `local = self.net`."""
    for name, binds in m.index.binds.items():
        loops = m.index.loops.get(binds[0].site, ())
        made = m.unit.definitions[binds[0].value] if len(binds) == 1 and loops and binds[0].value >= 0 else None
        while isinstance(made, t.Invoke) and made.name in _ITSELF and made.base >= 0:
            made = m.unit.definitions[made.base]
        source = naming.text_of(m, made.out) if isinstance(made, t.Attribute) else ""
        if not source or _is_set(m, source, loops[-1]) or is_put_back(m, {name}, loops[-1]):
            continue
        invoked = (event for event in m.index.of(t.Invoke) if loops[-1] in m.index.loops.get(event.site, ()))
        if any(one.name.startswith(RESETTING) and naming.text_of(m, one.base) == source for one in invoked):
            continue
        steps = [mark.write for mark in sorted(m.value(binds[0].value).marks) if _is_step(m, mark.write, loops[-1])]
        if steps and _goes_through_own(m, loops[-1]) and optimizer_for(m, name, binds[0].site, loops[-1]) >= 0:
            lists = {one for one, event in _put_into(m, loops[-1]) if isinstance(event, t.Load) and event.name == name}
            back = min(_put_back(m, source, lists, loops[-1], binds[0].site), default=-1)
            if back >= 0:
                yield PutAside(back, name, source, binds[0].site, steps[0], CONSUMER, Sure.LIKELY, Kind.MODULE)


def _goes_through_own(m: Machine, loop: int) -> bool:
    """Whether a loop within a loop goes through what the turns of that have of their own: each client has its data."""
    for event in m.index.of(t.Iterate):
        around = m.index.loops.get(event.site, ())
        if loop in around[:-1] and is_own(m, event.iterable, loop):
            return True
    return False


def _is_step(m: Machine, number: int, loop: int) -> bool:
    write = m.writes.get(number)
    return write is not None and write.form == "step" and loop in m.index.loops.get(write.site, ())


def _call_at(m: Machine, site: int) -> t.Call | t.Invoke | None:
    calls: list[t.Call | t.Invoke] = [*m.index.of(t.Call), *m.index.of(t.Invoke)]
    return next((call for call in calls if call.site == site), None)


def _kept(m: Machine, number: int, call: t.Invoke, loop: int) -> Iterator[PutAside]:
    """What a call of a loop trains because whom it calls was handed it before, as all the others were."""
    write = m.writes[number]
    on = set(write.storages)
    others = (one for one in m.writes.values() if one.form == "load" and on & set(one.storages))
    reset = any(loop in m.index.loops.get(one.site, ()) for one in others)
    owner = naming.text_of(m, call.base).partition(".")[0]
    if reset or not _has_own(m, call, loop) or is_put_back(m, {owner}, loop):
        return
    lists = _collected(m, call, loop) | _gone_through(m, call, loop)
    for event in m.index.of(t.Invoke) if lists else ():
        source = naming.text_of(m, event.base) if event.name == "load_state_dict" else ""
        if not source or not any(mark.write == number for mark in m.value(event.base).marks):
            continue
        back = min(_put_back(m, source, lists, loop, call.site), default=-1)
        handed = next(_handed_in_turn(m, source, call), -1) if back >= 0 else -1
        if handed >= 0:
            yield PutAside(back, source, source, handed, number, CONSUMER, Sure.LIKELY, Kind.MODULE)
            return


def _handed_in_turn(m: Machine, source: str, training: t.Invoke) -> Iterator[int]:
    """Where a loop hands one model to something that each turn has of its own."""
    calls: list[t.Call | t.Invoke] = [*m.index.of(t.Call), *m.index.of(t.Invoke)]
    given = [(call, _handed(m, call, source)) for call in calls if call is not training]
    for call, handed in given:
        loops = m.index.loops.get(call.site, ())
        if handed < 0 or not loops or is_bound_in(m, source.partition(".")[0], loops[-1]):
            continue
        if _has_own(m, call, loops[-1]) and not _is_set(m, source, loops[-1]):
            yield handed
    for store in m.index.of(t.StoreAttribute):
        loops = m.index.loops.get(store.site, ())
        made = m.unit.definitions[store.value] if store.value >= 0 else None
        named = isinstance(made, t.Load | t.Attribute) and naming.text_of(m, made.out) == source
        if named and loops and is_own(m, store.base, loops[-1]):
            yield store.site


def _handed(m: Machine, call: t.Call | t.Invoke, name: str) -> int:
    """Where a call is passed what a name or a field holds, behind methods of a module that return it."""
    for argument in call.arguments:
        made = m.unit.definitions[argument.register] if argument.register >= 0 else None
        while isinstance(made, t.Invoke) and made.name in _ITSELF and made.base >= 0:
            made = m.unit.definitions[made.base]
        if isinstance(made, t.Load | t.Attribute) and naming.text_of(m, made.out) == name:
            return made.site
    return -1


def _is_set(m: Machine, source: str, loop: int) -> bool:
    stores = m.index.stores.get(source.rpartition(".")[2], ()) if "." in source else ()
    return any(loop in m.index.loops.get(store.site, ()) for store in stores)


def _has_own(m: Machine, call: t.Call | t.Invoke, loop: int) -> bool:
    """Whether the turn brings along whom it calls, or what that is trained with: a client, a part of the data.

    What the loop counts with alone is none of that: epochs go on from one another.
    """
    given = [call.base] if isinstance(call, t.Invoke) else []
    given += [argument.register for argument in call.arguments]
    return any(is_own(m, register, loop) for register in given)


def is_own(m: Machine, register: int, loop: int) -> bool:
    """Whether a value is computed from what the turns of a loop have of their own."""
    for event in _behind(m, register):
        for bind in m.index.binds.get(event.name, ()) if isinstance(event, t.Load) else ():
            if loop in m.index.loops.get(bind.site, ()) and not _is_count(m, bind.value):
                return True
        if isinstance(event, t.Item) and any(isinstance(one, int) and one >= 0 for one in event.subscript):
            return True
    return False


def _is_count(m: Machine, register: int) -> bool:
    """Whether a loop's variable counts: `for epoch in range(5)`."""
    made = m.unit.definitions[register] if register >= 0 else None
    if isinstance(made, t.Unpack):
        return made.position == 0 and _is_count(m, made.value)
    over = m.unit.definitions[made.iterable] if isinstance(made, t.Iterate) else None
    return isinstance(over, t.Call) and naming.text_of(m, over.function).rpartition(".")[2] in _COUNTING


def _behind(m: Machine, register: int) -> list[t.Event]:
    """The events that a value is computed by, in the unit, as far as names lead back."""
    events: dict[int, t.Event] = {}
    pending = [register]
    while pending and len(events) < MAX_STEPS:
        current = pending.pop()
        event = m.unit.definitions[current] if current >= 0 else None
        if event is None or current in events:
            continue
        events[current] = event
        pending += uses.bindings_before(m, event) if isinstance(event, t.Load) else t.operands(event)
        pending += m.index.collected.get(current, ())
    return list(events.values())


def _collected(m: Machine, call: t.Call | t.Invoke, loop: int) -> set[str]:
    """The lists and dictionaries from before a loop that are given what a call of the loop returns."""
    return {name for name, event in _put_into(m, loop) if event is call}


def _put_into(m: Machine, loop: int) -> Iterator[tuple[str, t.Event]]:
    """The lists and dictionaries from before a loop that it puts something into, and what that is made by."""
    put = [(naming.text_of(m, event.base), event.arguments[0].register, event.site) for event in m.index.appends]
    put += [(naming.text_of(m, item.base), item.value, item.site) for item in m.index.of(t.StoreItem)]
    displays = {bind.value: bind.name for binds in m.index.binds.values() for bind in binds}
    put += [(displays.get(one.container, ""), one.item, one.site) for one in m.index.of(t.Collect)]
    for name, register, site in put:
        if name and loop in m.index.loops.get(site, ()) and not is_bound_in(m, name, loop):
            yield from ((name, event) for event in _behind(m, register))


def _gone_through(m: Machine, call: t.Invoke, loop: int) -> set[str]:
    """The list whose elements a loop calls: what they hold may be taken out of them behind it."""
    owner = m.unit.definitions[call.base] if call.base >= 0 else None
    binds = m.index.binds.get(owner.name, ()) if isinstance(owner, t.Load) else ()
    turns = [m.unit.definitions[one.value] for one in binds if loop in m.index.loops.get(one.site, ())]
    return {naming.text_of(m, one.iterable) for one in turns if isinstance(one, t.Iterate)} - {""}


def _put_back(m: Machine, source: str, lists: set[str], loop: int, since: int) -> Iterator[int]:
    """Where, behind a loop, a model is loaded with what is computed from lists."""
    for event in m.index.of(t.Invoke):
        behind = event.site > since and loop not in m.index.loops.get(event.site, ())
        if behind and event.name == "load_state_dict" and naming.text_of(m, event.base) == source and event.arguments:
            origins = _behind(m, event.arguments[0].register)
            if any(isinstance(one, t.Load | t.Attribute) and naming.text_of(m, one.out) in lists for one in origins):
                yield event.site
