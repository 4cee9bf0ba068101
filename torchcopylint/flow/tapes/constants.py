"""What a call tells a helper by constants: which arm of a condition is run where the helper stands in its place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

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
    held = [isinstance(one, t.Assume) and holds(unit, one.register, known) is one.truth for one in assumed]
    return event.arms[held.index(True)] if held.count(True) == 1 else None


def asked(unit: t.Unit, branches: Iterable[t.Branch]) -> frozenset[str]:
    """The names that conditions of a function ask for, each alone or with others, and that it does not bind anew."""
    pending = [arm[0].register for branch in branches for arm in branch.arms if arm and isinstance(arm[0], t.Assume)]
    found: set[str] = set()
    while pending:
        register = pending.pop()
        event = unit.definitions[register] if register >= 0 else None
        if isinstance(event, t.Load):
            found.add(event.name)
        elif isinstance(event, t.Logic) and event.symbol in _TELLING:
            pending += event.operands
    bound = {event.name for event in t.events(unit.tape) if event.__class__ is t.Bind} if found else set()
    return frozenset(found - bound)


_TELLING = frozenset({"not", "and", "or", "is", "is not"})


def shortened(unit: t.Unit, known: Mapping[str, t.Const]) -> t.Unit:
    """A unit of which only those arms are left that are run where some parameters are constants; the unit itself, if
    that is told of none."""
    tape = _shortened(unit, unit.tape, known)
    return unit if tape == unit.tape else unit._replace(tape=tape)


def _shortened(unit: t.Unit, tape: t.Tape, known: Mapping[str, t.Const]) -> t.Tape:
    found: list[t.Event] = []
    for event in tape:
        arm = only_arm(unit, event, known) if event.__class__ is t.Branch else None
        if arm is not None:
            found += _shortened(unit, arm, known)
        else:
            inside = t.changed_inside(event, lambda inner: _shortened(unit, inner, known))
            found.append(event._replace(**inside) if inside else event)
    return tuple(found)


def holds(unit: t.Unit, register: int, known: Mapping[str, t.Const]) -> bool | None:
    """Whether a condition holds; `None` if that is not known."""
    event = unit.definitions[register] if register >= 0 else None
    if isinstance(event, t.Load) and event.name in known:
        return bool(known[event.name].value)
    if not isinstance(event, t.Logic):
        return None
    if event.symbol in ("is", "is not"):
        return _is_none(unit, event, known)
    parts = [holds(unit, operand, known) for operand in event.operands]
    if event.symbol == "not":
        return None if parts[0] is None else not parts[0]
    if event.symbol in ("and", "or"):
        ends = event.symbol == "or"
        return ends if ends in parts else None if None in parts else not ends
    return None


def _is_none(unit: t.Unit, event: t.Logic, known: Mapping[str, t.Const]) -> bool | None:
    """Whether `name is None` holds, or `name is not None`; of `out is values`, with `out` being nothing, whoever calls
    the function passes something for `values`."""
    one, other = (unit.definitions[register] if register >= 0 else None for register in event.operands[:2])
    if isinstance(one, t.Load) and one.name in known and known[one.name].value is None and isinstance(other, t.Load):
        required = any(p.name == other.name and not p.has_default and p.kind == "plain" for p in unit.parameters)
        return event.symbol == "is not" if required and other.name not in known else None
    if isinstance(one, t.Load) and one.name in known and isinstance(other, t.Const) and other.value is None:
        return (known[one.name].value is None) is (event.symbol == "is")
    return None
