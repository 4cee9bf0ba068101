"""What a call is handed for good: memory that nobody else holds, or looks at again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import LOCAL, How, Value
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import naming
from torchcopylint.flow.values.callforms import PLACES

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

_STEPS = 4
"""So many operations lie between a call and the end of its statement, of those that are looked at."""


def is_nobody_elses(m: Machine, value: Value, site: int) -> bool:
    """Whether an argument of the call at `site` has memory of its own, and no name.

    Or only names that are bound to what the call returns next, or that the unit does not look at again.
    """
    objects = [m.state.object(ref) for ref in value.refs]
    if _is_put_back(m, value, site) or _is_replaced_by_result(m, value, site):
        return True
    if not objects or any(obj.owner not in ("", LOCAL) for obj in objects):
        return False
    own = all(share.how is How.OWN for obj in objects for share in obj.shares)
    if own and value.root is None:
        return True
    if value.root is None:
        # `f(q.t())`: what has no name itself is a view of what has one.
        return _is_given_up(m, value, site)
    if not isinstance(value.root, str):
        return False
    holders = {key for ref in value.refs for key in m.state.holders.get(ref, ()) if ref in m.state.refs_of(key)}
    result = m.use_of(site)
    if own and isinstance(result, t.Bind) and result.name == value.root and holders == {value.root}:
        return True
    return _is_given_up(m, value, site)


def _is_bound_next(m: Machine, name: str, site: int) -> bool:
    """Whether a name is bound by the very statement that the call at a site is a part of: `d = scale * unit(d)`,
    `d = unit(d)[:n] if short else d`."""
    event = m.use_of(site)
    for _ in range(_STEPS):
        if isinstance(event, t.Bind) and event.name.startswith("%"):
            # What an arm of a conditional expression has for a value goes to what that is a part of.
            loads = [use.register for use in uses.of_name(m, event.name) if use.loads]
            event = m.consumer_of(loads[0]) if len(loads) == 1 else None
        elif isinstance(event, t.Operate | t.Call | t.Invoke | t.Item):
            event = m.consumer_of(event.out)
        else:
            break
    return isinstance(event, t.Bind) and event.name == name


def _is_put_back(m: Machine, value: Value, site: int) -> bool:
    """`sample["mask"] = flip(sample["mask"])`: the place holds what has become of it, whoever else holds the place."""
    if isinstance(m.use_of(site), t.StoreItem | t.StoreAttribute):
        given = [register for register in arguments_of(m, site) if m.value(register).refs == value.refs]
        return any(is_stored_in(m, site, naming.text_of(m, register)) for register in given)
    return False


def _is_replaced_by_result(m: Machine, value: Value, site: int) -> bool:
    """Whether a loop goes through the parts of something, looks at one for the last time in the call, and sets in its
    place what the call returns: `for name, part in list(net.named_modules()): setattr(net, name, split(part))`."""
    binds = m.index.binds.get(value.root, ()) if isinstance(value.root, str) else ()
    if not binds or not all(uses.from_iteration(m, bind.value) for bind in binds):
        return False
    if not isinstance(value.root, str) or not uses.ends_in(m, value.root, site):
        return False
    event = m.use_of(site)
    results = [m.index.calls[site]] if site in m.index.calls else []
    if isinstance(event, t.Bind):
        results = [use.register for use in uses.of_name(m, event.name) if use.loads and use.site > site]
    taken = [m.consumer_of(register) for register in results]
    return any(isinstance(one, t.Call) and naming.text_of(m, one.function) == "setattr" for one in taken)


def arguments_of(m: Machine, site: int) -> list[int]:
    """The registers that the call at `site` is given."""
    made = m.unit.definitions[m.index.calls[site]] if site in m.index.calls else None
    return [argument.register for argument in made.arguments] if isinstance(made, t.Call | t.Invoke) else []


def is_stored_in(m: Machine, site: int, place: str) -> bool:
    """Whether what the call at `site` returns is put at once into a place, as the user wrote that: `x`, `x[:, :k]`."""
    event = m.use_of(site)
    if "..." in place:
        return False
    if isinstance(event, t.Bind):
        return event.name == place
    if isinstance(event, t.StoreItem):
        return f"{naming.text_of(m, event.base)}[{naming.index_text(m, event.subscript)}]" == place
    return isinstance(event, t.StoreAttribute) and f"{naming.text_of(m, event.base)}.{event.name}" == place


def is_part_of(m: Machine, site: int, place: str) -> bool:
    """Whether what the call at `site` returns is put at once into a part of a place: `x[i]` of `x`."""
    event = m.use_of(site)
    return isinstance(event, t.StoreItem) and naming.text_of(m, event.base) == place and "..." not in place


def is_element_exchanged(m: Machine, site: int, given: int) -> bool:
    """Whether an element, which is in a register, is exchanged for what the call at `site` and methods of that make of
    it: `rows[i] = torch.LongTensor(rows[i]).t()`."""
    taken, event = m.unit.definitions[given], m.use_of(site)
    for _ in range(_STEPS):
        if not isinstance(event, t.Invoke):
            break
        event = m.consumer_of(event.out)
    if not isinstance(taken, t.Item) or not isinstance(event, t.StoreItem):
        return False
    places = [f"{naming.text_of(m, one.base)}[{naming.index_text(m, one.subscript)}]" for one in (taken, event)]
    return places[0] == places[1] and "..." not in places[0]


def _is_given_up(m: Machine, value: Value, site: int) -> bool:
    """Whether only names hold the memory, all of which are looked at for the last time in the call."""
    storages = {share.storage for ref in value.refs for share in m.state.object(ref).shares}
    if any(m.state.object(storage).owner not in ("", LOCAL) for storage in storages):
        return False
    held = {key for storage in storages for key, _ in m.state.holders_of(storage)}
    # What it holds itself goes with it.
    names = {key for key in held if not isinstance(key, tuple) or key[0] not in value.refs}
    names = {key for key in names if not isinstance(key, tuple) or not _is_places(m, key[0])}
    if len(names) == 1 and value.root in (None, *names) and all(_is_bound_next(m, str(name), site) for name in names):
        return True
    return all(isinstance(name, str) and uses.ends_in(m, name, site) for name in names)


def _is_places(m: Machine, ref: int) -> bool:
    """Whether something is the pair that `x.max(1)` gives, which is new whatever `x` is, and has no name."""
    obj = m.state.object(ref)
    made = m.unit.definitions[m.index.calls[obj.site]] if obj.site in m.index.calls else None
    named = any(ref in m.state.refs_of(key) for key in m.state.holders.get(ref, ()))
    return isinstance(made, t.Invoke) and made.name in PLACES and not named
