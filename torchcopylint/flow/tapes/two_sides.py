"""Operations whose two sides are computed in the same way, each from one value: `before.norm() - after.norm()`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import SidesAlike

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchcopylint.flow.running.machine import Machine

_COMPARING = frozenset({"-", "/", "==", "!=", "<", "<=", ">", ">="})
_MAX_STEPS = 6


def found(m: Machine) -> Iterator[SidesAlike]:
    """Where a unit takes the difference of, or compares, what it has computed from two values in the same way."""
    for event in m.index.of(t.Operate):
        if event.symbol in _COMPARING and len(event.operands) == 2:
            (ones, one), (others, other) = (_computed(m, operand) for operand in event.operands)
            if ones and ones == others:
                yield SidesAlike(event.site, one, other)


def _computed(m: Machine, register: int) -> tuple[tuple[str, ...], int]:
    """The operations that lead from a value to a register, from the last to the first, and the site of the first."""
    names: list[str] = []
    site = -1
    for _ in range(_MAX_STEPS):
        event = m.unit.definitions[register] if register >= 0 else None
        if isinstance(event, t.Invoke):
            names.append(event.name)
            register, site = event.base, event.site
        elif isinstance(event, t.Call) and len(event.arguments) == 1:
            names.append(m.dotted_of(event))
            register, site = event.arguments[0].register, event.site
        elif isinstance(event, t.Operate) and len(event.operands) == 2 and _is_constant(m, event.operands[1]):
            names.append(event.symbol)
            register, site = event.operands[0], event.site
        else:
            break
    return tuple(names), site


def _is_constant(m: Machine, register: int) -> bool:
    return register >= 0 and isinstance(m.unit.definitions[register], t.Const)
