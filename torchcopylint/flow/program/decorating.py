"""The decorators of the functions of a file, as text, and those that nobody has written.

Before Python 3 a function in the body of a class had to be decorated to be called by way of the class. Now
`class Trainer: def train(model, loader): ...` and `Trainer.train(model, loader)` do as well, and some write whole
programs so. What is called like that, and does not name its first parameter as methods do, is a static method.
"""

from __future__ import annotations

from torchcopylint.flow import tape as t

_OBJECTS = frozenset({"", "self", "cls", "mcs", "klass", "this", "_"})
"""What methods call what they are called on; a function without parameters needs no decorator to be known."""


def written(program: t.Program) -> dict[int, tuple[str, ...]]:
    """The decorators of each function that has any, by its unit, as they are written; and of those that are static
    without one."""
    found: dict[int, tuple[str, ...]] = dict.fromkeys(_undecorated(program), ("staticmethod",))
    for unit in program.units:
        for event in unit.definitions:
            if event.__class__ is t.Function and event.decorators:
                found[event.unit] = tuple(_decorator(unit, register) for register in event.decorators)
    return found


def _undecorated(program: t.Program) -> set[int]:
    """The functions in bodies of classes that are called by way of their classes, and take no object."""
    apart: dict[tuple[str, str], int] = {}
    for info in program.classes:
        firsts = {name: program.units[number].first for name, number in info.methods.items()}
        objects = _OBJECTS.union(first for name, first in firsts.items() if name.startswith("__"))
        apart |= {(info.name, name): info.methods[name] for name, first in firsts.items() if first not in objects}
    if not apart:
        return set()
    called: set[int] = set()
    for unit in program.units:
        for event in unit.definitions:
            if event.__class__ is t.Invoke:
                base = unit.definitions[event.base]
                if base.__class__ is t.Load and (base.name, event.name) in apart:
                    called.add(apart[base.name, event.name])
    return called


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
