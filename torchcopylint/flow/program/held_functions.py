"""Functions of the file that a class keeps in its fields: `self.hooks = {"x": reverse(1)}`."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from torchcopylint.flow.model import CONTAINERS, Cell, Kind, Value
from torchcopylint.flow.references import AppliedReference, FunctionReference

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

Function: TypeAlias = "FunctionReference | AppliedReference"
Held: TypeAlias = "dict[tuple[int, str, str], Function | None]"
"""By class, field, and slot in what the field holds (empty for the field itself): the function, or none for several."""


def note(m: Machine, held: Held, owner: int, name: str, value: Value) -> None:
    """A field of a class is set: which functions stand in it from now on."""
    if isinstance(value.const, FunctionReference | AppliedReference) or (owner, name, "") in held:
        _join(held, (owner, name, ""), value.const)
    for ref in value.refs:
        if m.state.object(ref).kind in CONTAINERS:
            for slot in m.state.slot_names(ref):
                cell = m.state.cell(slot)
                if cell is not None and isinstance(cell.const, FunctionReference | AppliedReference):
                    _join(held, (owner, name, slot[1]), cell.const)


def _join(held: Held, key: tuple[int, str, str], const: object) -> None:
    function = const if isinstance(const, FunctionReference | AppliedReference) else None
    held[key] = function if held.get(key, function) == function else None


def in_field(m: Machine, type_name: str, name: str) -> Value | None:
    """The function that a field of an object of a class surely holds."""
    local = m.world.local_class(type_name) if m.world.held_functions else None
    for current in m.world.lineage(local) if local is not None else ():
        function = m.world.held_functions.get((current, name, ""))
        if function is not None:
            return Value(kind=Kind.FUNCTION, const=function)
    return None


def bind(m: Machine, field: Value, type_name: str, name: str) -> None:
    """What a field holds has functions in it, by their keys, as the class has put them there."""
    local = m.world.local_class(type_name) if m.world.held_functions and len(field.refs) == 1 else None
    for current in m.world.lineage(local) if local is not None else ():
        for (owner, named, key), function in m.world.held_functions.items():
            slot = (field.refs[0], key)
            if (owner, named) == (current, name) and key and function is not None and m.state.cell(slot) is None:
                m.state.put_cell(slot, Cell((), Kind.FUNCTION, function, site=-1))
