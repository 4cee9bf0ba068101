"""Two names for one network whose outputs for one input are compared: `(net(x) - noisy(x)).abs().max()`."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import LookedAtAnew
from torchcopylint.flow.model import Kind, Region, Value
from torchcopylint.flow.storages import aliasing
from torchcopylint.flow.tapes import next_turn, uses
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchcopylint.flow.running.machine import Machine

Call: TypeAlias = "t.Call | t.Invoke"
_MEETING = frozenset(
    ["mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div", "cosine_similarity", "dist", "allclose", "equal"]
)
"""Losses and tests of equality: the functions that two outputs are given to in order to be compared."""
_PASSING = frozenset(
    ["detach", "softmax", "log_softmax", "sigmoid", "tanh", "mean", "max", "argmax", "flatten", "view", "cpu", "numpy"]
)
"""Methods that leave an output one that can be compared with another."""
MAX_STEPS = 12
"""So many events are gone back over from a value to the network that returned it."""


def note(m: Machine) -> None:
    """Once a unit has been run: the pairs of names of networks whose outputs for the same input meet."""
    for site, one, other in _comparisons(m):
        _note_looked_at_anew(m, site, one, other)
        calls = _origin(m, one), _origin(m, other)
        if calls[0] is None or calls[1] is None or calls[0].site == calls[1].site:
            continue
        first, second = _network(m, calls[0]), _network(m, calls[1])
        kinds = {m.state.object(ref).kind for value in (first, second) if value is not None for ref in value.refs}
        if Kind.MODULE not in kinds:
            continue
        if first is not None and second is not None and _inputs(m, calls[0]) == _inputs(m, calls[1]):
            modules = frozenset(first.refs), frozenset(second.refs)
            single = len(first.refs) == len(second.refs) == 1
            apart = naming.key_text(m, first.root) != naming.key_text(m, second.root)
            apart = apart and (single or next_turn.handed_on(m, first, second, site) is not None)
            if apart and not _handed_back_between(m, (first, second), calls[0].site, calls[1].site):
                aliasing.note_met(m, first, second, modules, site, "compared")


def _note_looked_at_anew(m: Machine, site: int, one: int, other: int) -> None:
    """A parameter of a layer that has no name here is met with a name for it: each look finds another object, which is
    the same part of the network."""
    for named, looked in ((one, other), (other, one)):
        event = m.unit.definitions[looked] if looked >= 0 else None
        if isinstance(event, t.Attribute) and named >= 0 and isinstance(m.unit.definitions[named], t.Load):
            parts = _parts(m, looked)
            if parts and parts & _parts(m, named):
                m.fact(LookedAtAnew(site, naming.text_of(m, named), naming.text_of(m, looked)))


def _parts(m: Machine, register: int) -> set[tuple[int, Region]]:
    """Which parts of networks a value is, told by the names or numbers of layers."""
    value = m.value(register)
    shares = m.state.object(value.refs[0]).shares if len(value.refs) == 1 else ()
    return {
        (share.storage, share.region)
        for share in shares
        if share.sure and share.region and all(part.kind in ("int", "field") for part in share.region)
    }


def _handed_back_between(m: Machine, networks: tuple[Value, Value], *called: int) -> bool:
    """Whether a function has handed the network back in between, under the second name: it may have changed it, and
    the output from before is what that is compared with: `out = net(x)`, `fused = fuse(net)`, `fused(x)`."""
    for network in networks:
        cell = m.state.cell(network.root) if network.root is not None else None
        if cell is not None and min(called) < cell.site < max(called):
            stored = [event for event in m.index.of(t.Bind) if event.site == cell.site and event.value >= 0]
            if any(isinstance(m.unit.definitions[event.value], t.Call | t.Invoke) for event in stored):
                return True
    return False


def _comparisons(m: Machine) -> Iterator[tuple[int, int, int]]:
    """Where two values are subtracted, or are given to a loss or a test of equality, and which."""
    for event in m.index.of(t.Operate):
        if event.symbol == "-" and len(event.operands) == 2:
            yield event.site, *event.operands
    for call in m.index.of(t.Invoke):
        if call.name in _MEETING and len(call.arguments) > 1:
            yield call.site, call.arguments[0].register, call.arguments[1].register
    for plain in m.index.of(t.Call):
        function = m.unit.definitions[plain.function]
        if function.__class__ is t.Load and function.name in _MEETING and len(plain.arguments) > 1:
            yield plain.site, plain.arguments[0].register, plain.arguments[1].register


def _origin(m: Machine, register: int) -> Call | None:
    """The call that a value was returned by, under whatever name and through whatever leaves it comparable."""
    for _ in range(MAX_STEPS):
        event = m.unit.definitions[register] if register >= 0 else None
        if isinstance(event, t.Load):
            bound = uses.bindings_before(m, event)
            if len(bound) != 1:
                return None
            register = bound[0]
        elif isinstance(event, t.Unpack):
            pair = m.unit.definitions[event.value] if event.value >= 0 else None
            if not isinstance(pair, t.Make) or any(pair.stars) or event.position >= len(pair.items):
                return None
            register = pair.items[event.position]
        elif isinstance(event, t.Invoke) and event.name in _PASSING and m.value(event.base).refs:
            register = event.base
        else:
            return event if isinstance(event, t.Call | t.Invoke) else None
    return None


def _network(m: Machine, call: Call) -> Value | None:
    """What was called, if that is a network, or one of several, which a name or a field holds."""
    if isinstance(call, t.Call):
        value = m.value(call.function)
    else:
        base = m.value(call.base)
        slot = (base.refs[0], f".{call.name}") if len(base.refs) == 1 else None
        cell = m.state.cell(slot) if slot is not None else None
        if slot is None or cell is None:
            return None
        value = Value(cell.refs, cell.kind, root=slot)
    # Of one of two fields that hold one object, nothing else may say what it is.
    unknown = {Kind.UNKNOWN} if isinstance(call, t.Invoke) else set()
    known = all(m.state.object(ref).kind in {Kind.MODULE} | unknown and not ref & 1 for ref in value.refs)
    return value if value.refs and known and value.root is not None else None


def _inputs(m: Machine, call: Call) -> tuple[str, ...]:
    return tuple(f"{one.keyword}={naming.text_of(m, one.register)}" for one in call.arguments)
