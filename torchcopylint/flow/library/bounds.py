"""Bounds of slices: numbers, or texts of names and numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import Bound
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine


def bound(m: Machine, register: int) -> object:
    """A bound of a slice: a number, a text of names and numbers, or untold."""
    number = _whole_number(m, register)
    if number is not None:
        return number
    text = naming.formula(m, register)
    return text if "..." not in text and "()" not in text else Bound.UNTOLD


def _whole_number(m: Machine, register: int) -> int | None:
    """A number that is written down, by its name too, or a sum or difference of such: `steps - 1`."""
    value = m.value(register)
    if isinstance(value.const, int):
        return int(value.const)
    made = m.unit.definitions[register] if register >= 0 else None
    if not isinstance(made, t.Operate) or made.symbol not in ("+", "-") or len(made.operands) != 2:
        return None
    left, right = (_whole_number(m, operand) for operand in made.operands)
    if left is None or right is None:
        return None
    return left + right if made.symbol == "+" else left - right
