"""Registries: decorators of the file that put what they decorate into a dictionary of the module.

    HEADS = {}
    def head(name):
        def add(function):
            HEADS[name] = function
            return function
        return add

From there on the dictionary is a table of functions and classes as if it had been written down (see `tables`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import Cell, Kind
from torchcopylint.flow.references import ClassReference, FunctionReference

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine


def enter(m: Machine, decorators: tuple[int, ...], made: FunctionReference | ClassReference, name: str) -> None:
    """What the body of a module defines, by a name, is put into the tables of the decorators that do so."""
    for register in decorators if m.unit.kind == "module" else ():
        place = _place(m, register, name)
        refs = m.state.refs_of(place[0]) if place is not None else ()
        if place is not None and len(refs) == 1 and m.state.object(refs[0]).kind is Kind.DICT:
            m.state.put_cell((refs[0], f"[{place[1]!r}]"), Cell((), Kind.FUNCTION, made, site=-1))


def _place(m: Machine, register: int, name: str) -> tuple[str, object] | None:
    """The dictionary, and the key there, under which a decorator puts what has a name."""
    event = m.unit.definitions[register]
    given: dict[str, object] = {}
    adding = m.value(register).const
    if isinstance(event, t.Call):
        maker = m.value(event.function).const
        if not isinstance(maker, FunctionReference) or not m.world.is_own(maker.unit):
            return None
        given = _given(m, event, m.world.unit(maker.unit))
        inner = [unit for unit in m.world.program.units if unit.parent == maker.unit and unit.kind == "function"]
        return _put(m, inner[0], given, name) if len(inner) == 1 else None
    if isinstance(adding, FunctionReference) and m.world.is_own(adding.unit):
        return _put(m, m.world.unit(adding.unit), given, name)
    return None


def _given(m: Machine, call: t.Call, maker: t.Unit) -> dict[str, object]:
    """What the parameters of a function are given, as far as that is constant."""
    names = [parameter.name for parameter in maker.parameters]
    plain = [argument for argument in call.arguments if not argument.stars]
    by_place = zip(names, [one for one in plain if not one.keyword], strict=False)
    named = {argument.keyword: argument for argument in plain if argument.keyword}
    return {key: m.value(one.register).const for key, one in {**dict(by_place), **named}.items()}


def _put(m: Machine, unit: t.Unit, given: Mapping[str, object], name: str) -> tuple[str, object] | None:
    """Where a function stores its first parameter in a dictionary of the module."""
    for event in m.world.index(unit).of(t.StoreItem):
        base, value = unit.definitions[event.base], unit.definitions[event.value]
        key = event.subscript[0] if len(event.subscript) == 1 else None
        if not (isinstance(base, t.Load) and isinstance(value, t.Load) and isinstance(key, int)):
            continue
        if value.name == unit.first and base.name not in unit.bound:
            told = _key(unit, key, given, name)
            return (base.name, told) if told is not None else None
    return None


def _key(unit: t.Unit, register: int, given: Mapping[str, object], name: str) -> object:
    """The key: what was given, a constant, or the name of what is decorated."""
    event = unit.definitions[register]
    if isinstance(event, t.Const):
        return event.value
    if isinstance(event, t.Load) and event.name not in unit.bound:
        return given.get(event.name)
    base = unit.definitions[event.base] if isinstance(event, t.Attribute) and event.name == "__name__" else None
    return name if isinstance(base, t.Load) and base.name == unit.first else None
