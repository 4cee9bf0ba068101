"""The terms of a loss: what somebody adds to what backward runs over is there for its gradient.

A constant in a sum changes no gradient, so nobody adds one. `loss = a + 0.5 * b` says that `a` and `b` have graphs,
whatever function they come from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.graphs import runs
from torchcopylint.flow.model import PART, TENSORS, Fact, Kind, Sure
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchcopylint.flow.running.machine import Machine

MAX_TERMS = 24
MAX_ARMS = 4
"""So many things may be meant by one name, by the conditions before it."""


def note(m: Machine, loss: int, site: int) -> None:
    """Backward has run, at a site, over the value of a register: over its terms as well.

    Only of what is one thing, or what each of several arms has made, of which it is not known that it has no graph. It
    may be a leaf for all that: `y = q + x`.
    """
    for register in of(m, loss):
        refs = m.value(register).refs
        if len(refs) > MAX_ARMS or any(ref & 1 for ref in refs):
            continue
        for ref in refs:
            obj = m.state.object(ref)
            if obj.requires_grad is Fact.NO or obj.leaf > 0 or obj.kind not in (*TENSORS, Kind.UNKNOWN):
                continue
            if obj.requires_grad is Fact.UNKNOWN:
                obj = obj._replace(requires_grad=Fact.LIKELY, flags=obj.flags - {PART})
            ran = site in runs.ran_at(obj.graph)
            m.state.set_object(ref, obj if ran else obj._replace(graph=runs.spent(obj.graph, site)))


def of(m: Machine, loss: int) -> Iterator[int]:
    """The registers of what is summed up to a loss: directly, scaled, or by way of names."""
    pending, seen = [loss], 0
    while pending and seen < MAX_TERMS:
        register = pending.pop()
        seen += 1
        event = m.unit.definitions[register] if register >= 0 else None
        match event:
            case t.Load():
                bound = _begun(m, event)
                pending += bound if len(bound) == 1 else ()
            case t.Unpack() | t.Attribute():
                pending += _bound_otherwise(m, event)
            case t.Operate() if event.symbol in ("+", "-"):
                pending += event.operands
                yield from event.operands
            case t.Augment() if event.symbol in ("+=", "-="):
                pending += (event.target, event.value)
                yield event.value
            case t.Operate() if event.symbol in ("*", "/"):
                scaled = [operand for operand in event.operands if not is_setting(m, operand)]
                if not scaled:
                    # A number and a name: of two factors, one has the gradient.
                    scaled = [operand for operand in event.operands if m.value(operand).kind is not Kind.NUMBER]
                if len(scaled) == 1:
                    pending += scaled
                    yield scaled[0]
            case t.Invoke() if event.name == "scale" and len(event.arguments) == 1:
                pending.append(event.arguments[0].register)


def _begun(m: Machine, load: t.Load) -> list[int]:
    """What a name was bound to, without what is added to that on some paths: `if penalise: loss += penalty(x)`."""
    bound = uses.bindings_before(m, load)
    if len(bound) < 2:
        return bound
    return [register for register in bound if not _adds_to(m, register, load.name)]


def _adds_to(m: Machine, register: int, name: str) -> bool:
    event = m.unit.definitions[register] if register >= 0 else None
    target = m.unit.definitions[event.target] if isinstance(event, t.Augment) and event.target >= 0 else None
    return (
        isinstance(event, t.Augment)
        and event.symbol in ("+=", "-=")
        and isinstance(target, t.Load)
        and target.name == name
    )


def _bound_otherwise(m: Machine, event: t.Unpack | t.Attribute) -> list[int]:
    """What a name has got by a display that was taken apart, or a field by the one statement that sets it before."""
    if isinstance(event, t.Unpack):
        display = m.unit.definitions[event.value] if event.value >= 0 else None
        placed = isinstance(display, t.Make) and 0 <= event.position < len(display.items)
        return [display.items[event.position]] if placed and isinstance(display, t.Make) else []
    text = naming.text_of(m, event.base)
    stored = [one for one in m.index.stores.get(event.name, ()) if naming.text_of(m, one.base) == text]
    return [stored[0].value] if len(stored) == 1 and stored[0].site < event.site and not stored[0].augmented else []


def bound_to(m: Machine, register: int) -> int:
    """What a name, a field or a part of a display holds that a register was read from; -1 if there may be several."""
    event = m.unit.definitions[register] if register >= 0 else None
    bound: list[int] = []
    if isinstance(event, t.Load):
        bound = uses.bindings_before(m, event)
    elif isinstance(event, t.Unpack | t.Attribute):
        bound = _bound_otherwise(m, event)
    return bound[0] if len(bound) == 1 else -1


def is_setting(m: Machine, register: int, depth: int = 3) -> bool:
    """Whether a value is a number, or a setting: nothing but names leads to it, `self.beta`, `0.5 * args.weight`."""
    value = m.value(register)
    if value.kind is Kind.NUMBER:
        return True
    event = m.unit.definitions[register] if register >= 0 else None
    if isinstance(event, t.Operate) and event.symbol in ("*", "/") and depth:
        return all(is_setting(m, operand, depth - 1) for operand in event.operands)
    while isinstance(event, t.Attribute):
        event = m.unit.definitions[event.base]
    known = [m.state.object(ref) for ref in value.refs]
    return isinstance(event, t.Load) and all(obj.kind not in TENSORS or obj.sure is Sure.NOT for obj in known)
