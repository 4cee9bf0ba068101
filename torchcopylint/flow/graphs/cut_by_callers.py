"""Callers that take what a function returns off its graph before they do anything with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.references import FunctionReference
from torchcopylint.flow.tapes import uses

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

_CUTTING = frozenset({"detach", "item", "tolist"})


def does(m: Machine, number: int) -> bool:
    """Whether a unit cuts off all that it gets from a function of the file: `v = f(x)`, and then `v = v.detach()`.

    It does so at once, or before anybody else looks at the name that it has bound.
    """
    calls = [call for call in m.index.of(t.Call) if _calls(m, call, number)]
    return bool(calls) and all(_is_cut(m, call.out) for call in calls)


def _calls(m: Machine, call: t.Call, number: int) -> bool:
    called = m.value(call.function).const
    return isinstance(called, FunctionReference) and called.unit == number


def _is_cut(m: Machine, register: int) -> bool:
    event = m.consumer_of(register)
    if isinstance(event, t.Invoke):
        return event.base == register and event.name in _CUTTING
    if isinstance(event, t.Attribute):
        return event.name == "data"
    if not isinstance(event, t.Bind):
        return False
    loads = [use for use in uses.of_name(m, event.name) if use.loads and use.site > event.site]
    first = min(loads, key=lambda use: use.site, default=None)
    if first is None or first.loops != uses.loops_around(m, event.site) or first.site in m.index.on_arms:
        return False
    cut = m.consumer_of(first.register)
    if not isinstance(cut, t.Invoke) or cut.base != first.register or cut.name not in _CUTTING:
        return False
    kept = m.consumer_of(cut.out)
    return len(loads) == 1 or (isinstance(kept, t.Bind) and kept.name == event.name)
