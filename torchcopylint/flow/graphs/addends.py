"""What is added to a sum where it goes on: `total = total + a + b`, `mean = 0.9 * mean + 0.1 * loss`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from torchcopylint.flow import tape as t
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from torchcopylint.flow.model import Value
    from torchcopylint.flow.running.machine import Machine

Setting: TypeAlias = "t.Bind | t.StoreAttribute | t.StoreItem"
MAX_TERMS = 16
"""So many terms of one sum are looked at."""


class Sum(NamedTuple):
    """`place` sets a name, field or item to the sum of what it held, as loaded into `own`, and of the `others`."""

    place: Setting
    own: int
    others: list[int]


def of(m: Machine, event: Setting) -> Sum | None:
    """What an event adds to what the name, field or item held that it sets, if it does.

    What it held may be scaled, and so may be the sum: that keeps the graph. Of a conditional expression, each arm is
    looked at when it has been computed.
    """
    made = m.unit.definitions[event.value] if event.value >= 0 else None
    place = _set_in_the_end(m, event) if isinstance(made, t.Operate) else None
    if place is None or not isinstance(made, t.Operate):
        return None
    if made.symbol in ("*", "/") and len(made.operands) == 2:
        # `(mean * n + loss) / (n + 1)`
        inside = (m.unit.definitions[register] for register in _scaled(made))
        made = next((inner for inner in inside if isinstance(inner, t.Operate) and inner.symbol == "+"), made)
    if made.symbol not in ("+", "-") or len(made.operands) != 2:
        return None
    own, others = t.NO_REGISTER, list[int]()
    for register in _terms(m, made):
        mine = _own(m, place, register) if own == t.NO_REGISTER else t.NO_REGISTER
        if mine == t.NO_REGISTER:
            others.append(register)
        else:
            own = mine
    return Sum(place, own, others) if own != t.NO_REGISTER and others else None


def goes_on(m: Machine, event: Setting) -> bool:
    """Whether a name or field is set to something that is computed from what it holds: `total += x`, or a sum as above.

    A conditional expression goes on if one of its arms does.
    """
    made = m.unit.definitions[event.value] if event.value >= 0 else None
    if isinstance(made, t.Load) and made.name.startswith("%"):
        return any(goes_on(m, arm) for arm in m.index.binds.get(made.name, ()))
    if not isinstance(made, t.Augment | t.Operate):
        return False
    place = _set_in_the_end(m, event)
    sources = (m.unit.definitions[register] for register in t.operands(made))
    direct = place is not None and any(naming.is_same_place(m, place, source) for source in sources)
    return direct or of(m, event) is not None


def _set_in_the_end(m: Machine, event: Setting) -> Setting | None:
    """What sets the name or field for which a conditional expression has an arm; what sets it itself is that."""
    if not isinstance(event, t.Bind) or not event.name.startswith("%"):
        return event
    loads = [use.register for use in uses.of_name(m, event.name) if use.loads]
    taken = m.consumer_of(loads[0]) if len(loads) == 1 else None
    return taken if isinstance(taken, t.Bind | t.StoreAttribute | t.StoreItem) and taken.value == loads[0] else None


def _terms(m: Machine, made: t.Operate) -> list[int]:
    """The terms of a sum, in order; of a difference, the sides."""
    pending, found = list(reversed(made.operands)), list[int]()
    while pending and len(found) < MAX_TERMS:
        register = pending.pop()
        inner = m.unit.definitions[register] if register >= 0 else None
        if isinstance(inner, t.Operate) and inner.symbol in ("+", "-") and len(inner.operands) == 2:
            pending += reversed(inner.operands)
        else:
            found.append(register)
    return found


def _own(m: Machine, place: Setting, register: int) -> int:
    """Where a name or field is looked at, if a register holds what it holds, or that multiplied or divided."""
    made = m.unit.definitions[register] if register >= 0 else None
    if isinstance(made, t.Operate) and made.symbol in ("*", "/") and len(made.operands) == 2:
        return next((r for r in _scaled(made) if naming.is_same_place(m, place, m.unit.definitions[r])), t.NO_REGISTER)
    return register if naming.is_same_place(m, place, made) else t.NO_REGISTER


def _scaled(made: t.Operate) -> tuple[int, ...]:
    """What a product or quotient may be the multiple of: both factors, or what is divided."""
    return made.operands if made.symbol == "*" else made.operands[:1]


def carried(m: Machine, register: int) -> int:
    """Of what is added, what surely has a graph: `loss` in `0.1 * loss`."""
    made = m.unit.definitions[register] if register >= 0 else None
    if isinstance(made, t.Operate) and made.symbol in ("*", "/") and len(made.operands) == 2:
        having = [r for r in made.operands if any(m.state.object(ref).requires_grad > 0 for ref in m.value(r).refs)]
        named = having and isinstance(m.unit.definitions[having[0]], t.Load | t.Attribute)
        return having[0] if len(having) == 1 and named else register
    return register


def of_loss(m: Machine, register: int) -> Value:
    """What is added, without what it is multiplied with, if backward runs over that: `loss` in `loss * len(batch)`.

    What backward runs over has a graph, and so has a multiple of it, whatever function has returned it.
    """
    made = m.unit.definitions[register] if register >= 0 else None
    if isinstance(made, t.Operate) and made.symbol in ("*", "/") and len(made.operands) == 2:
        for factor in _scaled(made):
            refs = m.value(factor).refs if factor >= 0 else ()
            if refs and all(ref | 1 in m.runs.directly for ref in refs):
                return m.value(factor)
    return m.value(register)
