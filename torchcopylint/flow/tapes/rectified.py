"""What goes into `relu` alone, and what the constructor alone puts into a field that is called."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.tapes import callees, inquiries, uses

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

MAX_CALLS = 8
"""So many calls are followed, each of what the one before returns."""
KEEPING_SIGNS = frozenset({"relu", "leakyrelu", "rrelu", "elu", "celu"})
"""Activations that return what is not negative as it is, and make no positive number of another one."""
_JOINING = frozenset({"cat", "concat", "concatenate", "stack"})


def is_rectified(m: Machine, op: str, site: int, refs: tuple[int, ...]) -> bool:
    """Whether what is read at a site goes into `relu` alone, which is the same of what an activation has left in place
    as of what was there: `F.relu(torch.cat([x, skip], 1))` behind `F.leaky_relu_(skip)`, or by a helper that joins."""
    if plain(op) not in KEEPING_SIGNS:
        return False
    for _ in range(MAX_CALLS):
        register = m.index.calls.get(site, -1)
        event = m.unit.definitions[register] if register >= 0 else None
        if not isinstance(event, t.Call | t.Invoke):
            return False
        name = _operation(m, event)
        user = _only_user(m, register)
        if plain(name) == "relu":
            return True
        if user is None or not (plain(name) in _JOINING or _is_joined_by(m, event, refs)):
            return False
        site, refs = user.site, m.value(register).refs
    return False


def _only_user(m: Machine, register: int) -> t.Event | None:
    """What uses the result of a call, by the name that it gets as well, if that is bound and looked at once."""
    user = m.consumer_of(register)
    if not isinstance(user, t.Bind) or len(m.index.binds.get(user.name, ())) != 1:
        return user
    loads = [load for load in m.index.of(t.Load) if load.name == user.name]
    return m.consumer_of(loads[0].out) if len(loads) == 1 else user


def _is_joined_by(m: Machine, event: t.Call | t.Invoke, refs: tuple[int, ...]) -> bool:
    """Whether a function or method of the file puts what it is given beside others, and returns that."""
    method = isinstance(event, t.Invoke) and uses.is_self(m, event.base) and m.unit.owner >= 0
    if isinstance(event, t.Call):
        number = callees.function_in(m, event.function, callees.NOTHING_KNOWN)
    else:
        number = m.world.method(m.unit.owner, event.name) if method else None
    helper = m.world.machines.get(number) if number is not None else None
    given = [place for place, one in enumerate(event.arguments) if refs and m.value(one.register).refs == refs]
    if helper is None or not given or any(one.stars or one.keyword for one in event.arguments):
        return False
    names = [one.name for one in helper.unit.parameters][int(method) :]
    return all(place < len(names) and _joins(helper, names[place]) for place in given)


def _joins(m: Machine, name: str) -> bool:
    """Whether all that a unit does with a parameter, but for asking what it is like, is to return it beside others."""
    loads = [load for load in m.index.of(t.Load) if load.name == name and not inquiries.is_inquiry(m, load.out)]
    lists = [m.consumer_of(load.out) for load in loads]
    joins = [m.consumer_of(made.out) if isinstance(made, t.Make) else None for made in lists]
    done = [one for one in joins if isinstance(one, t.Call | t.Invoke)]
    joined = len(done) == len(loads) and all(plain(_operation(m, one)) in _JOINING for one in done)
    handed = all(isinstance(m.consumer_of(one.out), t.Return) for one in done)
    return bool(loads) and name not in m.index.binds and joined and handed


def _operation(m: Machine, event: t.Call | t.Invoke) -> str:
    """What a call does: the name of a function or method, or the class of a layer, of a field if the constructor alone
    says what it is."""
    if isinstance(event, t.Call):
        refs = m.value(event.function).refs
        return m.state.object(refs[0]).type if len(refs) == 1 else m.dotted_of(event) if not refs else ""
    made, built = made_by_constructor(m, event)
    if made is not None:
        return made.dotted_of(built) if isinstance(built, t.Call | t.Invoke) else ""
    return event.name


def plain(name: str) -> str:
    """The name of an activation without its package and the form of the call, the underscores and capitals."""
    return name.partition("(")[0].rpartition(".")[2].replace("_", "").lower()


def made_by_constructor(m: Machine, event: t.Invoke) -> tuple[Machine | None, t.Event | None]:
    """What the constructor alone puts into the field of `self` that is called, in the end, and its machine."""
    initial = m.world.method(m.unit.owner, "__init__") if m.unit.owner >= 0 else None
    made = m.world.machines.get(initial) if initial is not None else None
    if made is None or not uses.is_self(m, event.base) or m.world.setters(event.name):
        return None, None
    stores = made.index.stores.get(event.name, ())
    if not stores or any(store.site in made.index.on_arms for store in stores):
        return None, None
    last = stores[-1].value
    return made, made.unit.definitions[last] if last >= 0 else None
