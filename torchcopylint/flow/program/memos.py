"""What a memoised function keeps: it hands one object to all callers with the same arguments.

By a decorator, `functools.lru_cache`, or by a dictionary of the module that it fills itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import BLANK, CONTAINERS, LOCAL, MEMO
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from torchcopylint.flow.model import Value
    from torchcopylint.flow.running.machine import Machine

_MEMOISING = frozenset({"functools.lru_cache", "functools.cache", "functools.cached_property"})


def take(m: Machine, unit: int, name: str, result: Value, site: int) -> Value:
    """The result of the call at a site of a function of this file: if that is memoised, nobody who holds the result
    holds it alone.

    What was only allocated, to be filled by whoever asks for it, is meant to be written.
    """
    made = m.world.machines.get(unit)
    if made is None or not (_is_memoised(m, unit) or _fills_memo(made)):
        return result
    if any(BLANK in made.state.object(ref).flags for value in made.results.returned for ref in value.refs):
        return result
    asked = _asked_for(m, unit, site) if _is_memoised(m, unit) else ""
    known = m.holding.memos.get(asked, ())
    if result.refs and known and all(m.state.get(ref) is not None for ref in known):
        # Whoever asks for the same gets the same, if this path has come by where it was made.
        return result._replace(refs=known)
    if asked:
        m.holding.memos[asked] = result.refs
    for ref in result.refs:
        held = [ref]
        if m.state.object(ref).kind in CONTAINERS:
            held += [one for slot in m.state.slot_names(ref) for one in m.state.refs_of(slot)]
        for one in held:
            obj = m.state.object(one)
            if obj.owner in ("", LOCAL):
                m.state.set_object(one, obj._replace(owner=MEMO, text=name))
    return result


def is_memoised(m: Machine, unit: int) -> bool:
    """Whether a function of this file hands out the same for the same, whatever it is there for."""
    made = m.world.machines.get(unit)
    return made is not None and (_is_memoised(m, unit) or _fills_memo(made))


def _asked_for(m: Machine, unit: int, site: int) -> str:
    """What a call asks a function for, as text, if that can be told from its arguments: other calls that read the same
    ask for the same, where no name in them is bound twice. Else nothing."""
    call = m.unit.definitions[m.index.calls[site]] if site in m.index.calls else None
    if not isinstance(call, t.Call | t.Invoke) or uses.loops_around(m, site):
        return ""
    texts = [f"{argument.keyword}={_spelt(m, argument.register)}" for argument in call.arguments if not argument.stars]
    told = len(texts) == len(call.arguments) and not any("..." in text or "(" in text for text in texts)
    return f"{unit}({', '.join(texts)})" if told else ""


def _spelt(m: Machine, register: int) -> str:
    """A constant, or a name or field of one that the unit does not set itself."""
    event = m.unit.definitions[register] if register >= 0 else None
    if isinstance(event, t.Const):
        return repr(event.value)
    if isinstance(event, t.Attribute):
        return f"{_spelt(m, event.base)}.{event.name}" if event.name not in m.index.stores else "..."
    return event.name if isinstance(event, t.Load) and event.name not in m.index.binds else "..."


def _is_memoised(m: Machine, unit: int) -> bool:
    names = (name.partition("(")[0] for name in m.world.decorators(unit))
    return any(m.world.resolve_name(name) in _MEMOISING for name in names)


def _fills_memo(m: Machine) -> bool:
    """Whether a function returns nothing but elements of dictionaries of the module into which it puts them itself."""
    stored = {naming.text_of(m, event.base) for event in m.index.of(t.StoreItem) if not event.augmented}
    own = {parameter.name for parameter in m.unit.parameters} | m.index.binds.keys()
    # One of a function around this one is made anew by each call of that, and may be there to be written.
    module = m.world.index(m.world.program.units[0]).binds.keys()
    names = {name for name in stored - own if name in module}
    taken = [m.unit.definitions[event.value] for event in m.index.of(t.Return) if event.value >= 0]
    return bool(names and taken) and all(_is_of(m, event, names) for event in taken)


def _is_of(m: Machine, event: t.Event | None, names: set[str]) -> bool:
    """Whether a value is `memo[key]`, or is bound to a name that is put there."""
    if isinstance(event, t.Item):
        return naming.text_of(m, event.base) in names
    if not isinstance(event, t.Load):
        return False
    put = [store for store in m.index.of(t.StoreItem) if naming.text_of(m, store.base) in names]
    return any(naming.text_of(m, store.value) == event.name for store in put)
