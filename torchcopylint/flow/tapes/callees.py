"""What a call calls, where that is one function of the file for sure, and which functions it passes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import Kind
from torchcopylint.flow.references import FunctionReference
from torchcopylint.flow.tape import Dotted
from torchcopylint.flow.values import imports

if TYPE_CHECKING:
    from torchcopylint.flow.files.world import World
    from torchcopylint.flow.running.machine import Machine

NOTHING_KNOWN: Mapping[str, int] = {}


def function_in(m: Machine, register: int, known: Mapping[str, int]) -> int | None:
    """The function of the file that a register holds; `known` are the parameters of which it is known what they are."""
    made = m.unit.definitions[register] if register >= 0 else None
    if isinstance(made, t.Load) and made.name in known:
        return known[made.name]
    reference = m.value(register).const
    number = reference.unit if isinstance(reference, FunctionReference) else None
    return number if number is not None and _is_ready(m.world, number) else None


def passed_functions(
    m: Machine, event: t.Call | t.Invoke | t.Attribute, known: Mapping[str, int] = NOTHING_KNOWN
) -> list[int]:
    """The functions of the file that a call passes."""
    given = event.arguments if isinstance(event, t.Call | t.Invoke) else ()
    found = (function_in(m, one.register, known) for one in given if not one.stars)
    return [number for number in found if number is not None]


def called(m: Machine, event: t.Call | t.Invoke | t.Attribute, known: Mapping[str, int] = NOTHING_KNOWN) -> int | None:
    """The function of this file that surely is called: a property, a method, or a function of the module."""
    world = m.world
    if isinstance(event, t.Call):
        return function_in(m, event.function, known)
    value = m.value(event.base)
    if isinstance(value.const, Dotted):
        # `helpers.step(model)`
        reference = imports.member(m, value.const, event.name).const if isinstance(event, t.Invoke) else None
        number = reference.unit if isinstance(reference, FunctionReference) else None
        return number if number is not None and _is_ready(world, number) else None
    if len(value.refs) != 1:
        return None
    obj = m.state.object(value.refs[0])
    owner = world.local_class(obj.type)
    if owner is None or obj.kind not in (Kind.INSTANCE, Kind.MODULE):
        return None
    if obj.kind is Kind.MODULE and event.name in ("forward", "__call__"):
        # What a network returns has a graph over all of it.
        return None
    number = world.method(owner, event.name)
    if number is None or not _is_ready(world, number) or world.overriding(number):
        return None
    is_property = "property" in world.decorators(number)
    return number if is_property is isinstance(event, t.Attribute) else None


def _is_ready(world: World, number: int) -> bool:
    return world.is_own(number) and number in world.machines
