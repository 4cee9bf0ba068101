"""Modules without parameters: what they make of something without a graph has none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import Kind, Object

if TYPE_CHECKING:
    from torchcopylint.flow.world import World

_PLAIN = frozenset({Kind.NUMBER, Kind.STRING, Kind.NONE})
_BARE = frozenset({"torch.nn.Module", "torch.nn.modules.Module"})
_REGISTERING = frozenset(
    ["register_parameter", "add_module", "register_module", "register_buffer", "setattr", "__setattr__", "__dict__"]
)
"""Names that say that a class sets fields in other ways than by assignment."""


def is_hollow(world: World, number: int) -> bool:
    """Whether the instances of a class of this file hold nothing but numbers and texts, so that they train nothing.

    A field that is set to a parameter of the constructor holds a number if that is what the default is.
    """
    if not world.is_own_class(number) or [name for _, name in world.bases(number)] not in [[base] for base in _BARE]:
        return False
    units = [unit for unit in world.program.units if unit.owner == number]
    named = (event.name for unit in units for event in unit.definitions if isinstance(event, t.Load | t.Invoke))
    if any(name in _REGISTERING for name in named):
        return False
    fields = world.fields(number)
    return bool(fields) and all(_is_plain(world, number, obj) for obj in fields.values())


def _is_plain(world: World, number: int, obj: Object) -> bool:
    if obj.kind in _PLAIN:
        return True
    initial = world.method(number, "__init__")
    if obj.kind is not Kind.UNKNOWN or initial is None:
        return False
    unit = world.unit(initial)
    outer = world.program.units[unit.parent].definitions if unit.parent >= 0 else ()
    made = next((e for e in outer if isinstance(e, t.Function) and e.unit == initial), None)
    default = dict(made.defaults).get(obj.text, t.NO_REGISTER) if made is not None else t.NO_REGISTER
    constant = outer[default] if default != t.NO_REGISTER else None
    return isinstance(constant, t.Const) and isinstance(constant.value, int | float | str)
