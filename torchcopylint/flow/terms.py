"""The terms of a loss: what somebody adds to what backward runs over is there for its gradient.

A constant in a sum changes no gradient, so nobody adds one. `loss = a + 0.5 * b` says that `a` and `b` have graphs,
whatever function they come from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import runs, uses
from torchcopylint.flow import tape as t
from torchcopylint.flow.model import PART, TENSORS, Fact, Kind, Sure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchcopylint.flow.machine import Machine

MAX_TERMS = 24


def note(m: Machine, loss: int, site: int) -> None:
    """Backward has run, at a site, over the value of a register: over its terms as well.

    Only of what is one thing, of which it is not known that it has no graph.
    """
    for register in _terms(m, loss):
        value = m.value(register)
        if len(value.refs) != 1 or value.refs[0] & 1:
            continue
        obj = m.state.object(value.refs[0])
        if obj.requires_grad is Fact.NO or obj.leaf > 0 or obj.kind not in (*TENSORS, Kind.UNKNOWN):
            continue
        if obj.requires_grad is Fact.UNKNOWN:
            obj = obj._replace(requires_grad=Fact.LIKELY, leaf=Fact.NO, flags=obj.flags - {PART})
        ran = site in runs.ran_at(obj.graph)
        m.state.set_object(value.refs[0], obj if ran else obj._replace(graph=runs.spent(obj.graph, site)))


def _terms(m: Machine, loss: int) -> Iterator[int]:
    """The registers of what is summed up to a loss: directly, scaled, or by way of names."""
    pending, seen = [loss], 0
    while pending and seen < MAX_TERMS:
        register = pending.pop()
        seen += 1
        event = m.unit.definitions[register] if register >= 0 else None
        match event:
            case t.Load():
                bound = uses.bindings_before(m, event)
                pending += bound if len(bound) == 1 else ()
            case t.Operate() if event.symbol in ("+", "-"):
                pending += event.operands
                yield from event.operands
            case t.Augment() if event.symbol in ("+=", "-="):
                pending += (event.target, event.value)
                yield event.value
            case t.Operate() if event.symbol in ("*", "/"):
                scaled = [operand for operand in event.operands if not _is_factor(m, operand)]
                if len(scaled) == 1:
                    pending += scaled
                    yield scaled[0]
            case t.Invoke() if event.name == "scale" and len(event.arguments) == 1:
                pending.append(event.arguments[0].register)


def _is_factor(m: Machine, register: int) -> bool:
    """Whether a value is a number, or a setting: nothing but names leads to it, `self.beta`, `args.weight`."""
    value = m.value(register)
    if value.kind is Kind.NUMBER:
        return True
    event = m.unit.definitions[register] if register >= 0 else None
    while isinstance(event, t.Attribute):
        event = m.unit.definitions[event.base]
    known = [m.state.object(ref) for ref in value.refs]
    return isinstance(event, t.Load) and all(obj.kind not in TENSORS or obj.sure is Sure.NOT for obj in known)
