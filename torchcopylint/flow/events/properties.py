"""Properties: `self.recent` is a call of a method of that name, without brackets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.interprocedural import applying, attributes
from torchcopylint.flow.library import reparametrised
from torchcopylint.flow.model import BUFFERS, Kind, Value
from torchcopylint.flow.program import memos
from torchcopylint.flow.references import FunctionReference
from torchcopylint.flow.running.machine import handles
from torchcopylint.flow.storages import slots
from torchcopylint.flow.values import naming
from torchcopylint.flow.values.sites import Arguments

if TYPE_CHECKING:
    from torchcopylint.flow.interprocedural.summaries import Summary
    from torchcopylint.flow.running.machine import Machine

_GETTERS = frozenset({"property", "cached_property", "functools.cached_property"})


@handles(t.Attribute)
def _attribute(m: Machine, event: t.Attribute) -> None:
    base = m.value(event.base)
    getters = [_getter(m, ref, event.name) for ref in base.refs] if m.world.is_method(event.name) else []
    if not getters or None in getters:
        computed = reparametrised.asked(m, base, event.name, event.site)
        if computed is not None:
            m.set(event.out, computed)
        else:
            attributes.load(m, event)
        return
    text = f"{naming.text_of(m, event.base)}.{event.name}"
    results = [_got(m, ref, getter or 0, event.site, text) for ref, getter in zip(base.refs, getters, strict=True)]
    m.set(event.out, slots.join_values(results))


def _got(m: Machine, ref: int, getter: int, site: int, text: str) -> Value:
    """What the getter of a property hands out."""
    given = Arguments([Value((ref,), m.state.object(ref).kind)], {})
    result = applying.call(m, FunctionReference(getter), given, site, text)
    for one in result.refs:
        obj = m.state.object(one)
        if obj.site == site:
            m.state.set_object(one, obj._replace(text=text))
    return result


def called(m: Machine, ref: int, name: str, site: int, text: str) -> Value | None:
    """What `x.name(...)` calls, if `name` is a property of `x`: what that hands out, and not the getter itself."""
    obj = m.state.object(ref)
    number = m.world.method_of(obj, name) if obj.kind in (Kind.INSTANCE, Kind.MODULE) else None
    if number is None or not _GETTERS & set(m.world.decorators(number)):
        return None
    getter = _getter(m, ref, name)
    return Value() if getter is None else _got(m, ref, getter, site, text)


def _getter(m: Machine, ref: int, name: str) -> int | None:
    """The unit of the property of an object that hands out what stands in its fields, or aliases of that, alone or
    several together: `return self.hidden, self.cell`.

    What a property computes anew is followed as a field that nobody sets, which is one thing at each look. One that
    keeps what it has computed hands that out.
    """
    obj = m.state.object(ref)
    if obj.kind not in (Kind.INSTANCE, Kind.MODULE) or m.state.cell((ref, f".{name}")) is not None:
        return None
    number = m.world.method_of(obj, name)
    if number is None or not _GETTERS & set(m.world.decorators(number)):
        return None
    summary = m.world.summary(number)
    if summary is None:
        return None
    alone = bool(summary.returned) and all(one.parameter for one in summary.returned)
    keeps = summary.result.kind in BUFFERS and memos.is_memoised(m, number)
    return number if alone or keeps or _hands_out_together(summary) else None


def _hands_out_together(summary: Summary) -> bool:
    """Whether all that stands in the tuple or list that a function makes stands in fields of what it is passed."""
    together = summary.result.kind in (Kind.TUPLE, Kind.LIST) and bool(summary.parts)
    return together and all(part.returned and all(one.parameter for one in part.returned) for part in summary.parts)
