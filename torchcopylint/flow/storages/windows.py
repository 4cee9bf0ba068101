"""`bytearray` and `memoryview`: plain memory, and windows on it; `bytes`, which nobody may write; who draws numbers."""

from __future__ import annotations

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import BUFFERS, How, Kind, Object, Sure, Value
from torchcopylint.flow.running.machine import Machine
from torchcopylint.flow.running.special import special
from torchcopylint.flow.storages import reading
from torchcopylint.flow.values import memory
from torchcopylint.flow.values.sites import Arguments


@special("builtins.bytearray", "array.array")
def _bytearray(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    return memory.fresh(m, event.site, Object(Kind.BYTES, Sure.PROVEN, text=f"{name}(...)"))


@special("builtins.bytes")
def _bytes(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    for value in arguments.positional:
        reading.read(m, value, event.site, "look", name)
    return memory.fresh(m, event.site, Object(Kind.STRING, Sure.PROVEN, text=f"{name}(...)"))


@special("numpy.random.RandomState")
def _random_state(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    return memory.fresh(m, event.site, Object(Kind.OTHER, Sure.PROVEN, text=f"{name}(...)", type=memory.RANDOM_STATE))


@special("numpy.random.default_rng")
def _default_rng(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    return memory.fresh(m, event.site, Object(Kind.OTHER, Sure.PROVEN, text=f"{name}(...)", type=memory.GENERATOR))


@special("builtins.memoryview")
def _memoryview(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    source = arguments.at(0)
    if not source.refs or any(m.state.object(ref).kind not in BUFFERS for ref in source.refs):
        return memory.unknown(m, event.site, f"{name}(...)")
    made = Object(Kind.BYTES, Sure.PROVEN, type=memory.WINDOW, text=f"{name}(...)")
    return memory.alias(m, source, event.site, How.VIEW, made)
