"""The decorators of the functions of a file, as text."""

from __future__ import annotations

from torchcopylint.flow import tape as t


def written(program: t.Program) -> dict[int, tuple[str, ...]]:
    """The decorators of each function that has any, by its unit, as they are written."""
    found: dict[int, tuple[str, ...]] = {}
    for unit in program.units:
        for event in unit.definitions:
            if event.__class__ is t.Function and event.decorators:
                found[event.unit] = tuple(_decorator(unit, register) for register in event.decorators)
    return found


def _decorator(unit: t.Unit, register: int) -> str:
    event = unit.definitions[register]
    if isinstance(event, t.Load):
        return event.name
    if isinstance(event, t.Attribute):
        return f"{_decorator(unit, event.base)}.{event.name}"
    if isinstance(event, t.Const):
        return repr(event.value)
    if isinstance(event, t.Call):
        inner = ", ".join(_decorator(unit, a.register) for a in event.arguments)
        return f"{_decorator(unit, event.function)}({inner})"
    if isinstance(event, t.Invoke):
        inner = ", ".join(_decorator(unit, a.register) for a in event.arguments)
        return f"{_decorator(unit, event.base)}.{event.name}({inner})"
    return "..."
