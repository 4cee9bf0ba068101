"""What a call tells a helper by constants: which arm of a condition is run where the helper stands in its place."""

from __future__ import annotations

from collections.abc import Mapping

from torchcopylint.flow import tape as t


def told(
    unit: t.Unit, given: Mapping[str, int | t.Const], known: Mapping[str, t.Const], bound: frozenset[str]
) -> dict[str, t.Const]:
    """The parameters of a helper that a call in `unit` gives constants to, and that the helper does not bind anew.

    `given` are registers of the unit, or defaults; `known` are the parameters of the unit that are constants here.
    """
    found: dict[str, t.Const] = {}
    for name, value in given.items():
        made = unit.definitions[value] if isinstance(value, int) and value >= 0 else value
        if isinstance(made, t.Load):
            made = known.get(made.name)
        if isinstance(made, t.Const) and name not in bound:
            found[name] = made
    return found


def only_arm(unit: t.Unit, event: t.Branch, known: Mapping[str, t.Const]) -> t.Tape | None:
    """The arm of a branch that alone is run, as the constants say; `None` if they do not."""
    if not known:
        return None
    assumed = [arm[0] if arm else None for arm in event.arms]
    held = [isinstance(one, t.Assume) and _holds(unit, one.register, known) is one.truth for one in assumed]
    return event.arms[held.index(True)] if held.count(True) == 1 else None


def _holds(unit: t.Unit, register: int, known: Mapping[str, t.Const]) -> bool | None:
    """Whether a condition holds; `None` if that is not known."""
    event = unit.definitions[register] if register >= 0 else None
    if isinstance(event, t.Load) and event.name in known:
        return bool(known[event.name].value)
    if not isinstance(event, t.Logic):
        return None
    if event.symbol in ("is", "is not"):
        return _is_none(unit, event, known)
    parts = [_holds(unit, operand, known) for operand in event.operands]
    if event.symbol == "not":
        return None if parts[0] is None else not parts[0]
    if event.symbol in ("and", "or"):
        ends = event.symbol == "or"
        return ends if ends in parts else None if None in parts else not ends
    return None


def _is_none(unit: t.Unit, event: t.Logic, known: Mapping[str, t.Const]) -> bool | None:
    """Whether `name is None` holds, or `name is not None`."""
    one, other = (unit.definitions[register] if register >= 0 else None for register in event.operands[:2])
    if isinstance(one, t.Load) and one.name in known and isinstance(other, t.Const) and other.value is None:
        return (known[one.name].value is None) is (event.symbol == "is")
    return None
