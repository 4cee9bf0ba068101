"""Transforms of a file that are only ever made to stand behind others: what they are given, those have made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import naming
from torchcopylint.knowledge import table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchcopylint.flow.files.world import World
    from torchcopylint.flow.running.machine import Machine

_SERIES = ("list", "tuple")
_IN_A_ROW = frozenset({"torch.nn.Sequential"})


def is_fed_by_others(world: World, owner: int) -> bool:
    """Whether every instance of a class that the file makes stands in a row behind something that makes a new sample:
    `Compose([Scale(), Normalize()])`, or `Compose(Scale(), Normalize())` where that takes as many as there are.

    Of a transform from elsewhere it is taken for granted: `ToTensor()`.
    """
    name = world.program.classes[owner].name
    made = list(_made(world, name))
    return bool(made) and all(_has_makers_before(world, m, event) for m, event in made)


def _made(world: World, name: str) -> Iterator[tuple[Machine, t.Call]]:
    for m in world.machines.values():
        for event in m.index.of(t.Call):
            function = m.unit.definitions[event.function] if event.function >= 0 else None
            if isinstance(function, t.Load) and function.name == name:
                yield m, event


def _has_makers_before(world: World, m: Machine, event: t.Call) -> bool:
    """Whether all rows that an instance is put into, by its name or as it is made, have a maker before it."""
    register = _unpacked(m, event.out)
    bind = m.consumer_of(register)
    if not isinstance(bind, t.Bind):
        return _is_behind_a_maker(world, m, register)
    loads = [one for one in m.index.of(t.Load) if one.name == bind.name]
    mine = [one.out for one in loads if register in uses.bindings_before(m, one)]
    return bool(mine) and all(_is_behind_a_maker(world, m, one) for one in mine)


def _unpacked(m: Machine, register: int) -> int:
    """What a thing is once a tuple of several has been taken apart again: `first, second = Scale(), Flip()`."""
    row = m.consumer_of(register)
    if isinstance(row, t.Make) and row.kind == "tuple" and isinstance(m.consumer_of(row.out), t.Unpack):
        parts = [one for one in m.index.of(t.Unpack) if one.value == row.out]
        return next((one.out for one in parts if row.items[one.position : one.position + 1] == (register,)), register)
    return register


def _made_as(m: Machine, register: int) -> t.Event | None:
    """What has made a thing, by whatever name it goes."""
    event = m.unit.definitions[register] if register >= 0 else None
    if isinstance(event, t.Load):
        bound = uses.bindings_before(m, event)
        event = m.unit.definitions[bound[0]] if len(bound) == 1 and bound[0] >= 0 else None
    row = m.unit.definitions[event.value] if isinstance(event, t.Unpack) and event.value >= 0 else None
    if isinstance(event, t.Unpack) and isinstance(row, t.Make) and 0 <= event.position < len(row.items):
        event = m.unit.definitions[row.items[event.position]]
    return event


def _is_behind_a_maker(world: World, m: Machine, register: int) -> bool:
    before = _before(world, m, register)
    return any(not _hands_on(world, m, one) for one in before)


def _before(world: World, m: Machine, register: int) -> tuple[int, ...]:
    """What stands before a thing in the row that it is put into; nothing if it is put into none."""
    match m.consumer_of(register):
        case t.Make() as row if row.kind in _SERIES and register in row.items:
            return row.items[: row.items.index(register)]
        case t.Call() as call if _takes_a_row(world, m, call):
            given = [argument.register for argument in call.arguments if not argument.keyword]
            return tuple(given[: given.index(register)]) if register in given else ()
        case t.Invoke() as put if put.name == "append" and put.base >= 0:
            begun = _made_as(m, put.base)
            return begun.items if isinstance(begun, t.Make) and begun.kind == "list" else ()
    return ()


def _takes_a_row(world: World, m: Machine, call: t.Call) -> bool:
    """Whether a call takes as many things as there are, as a class of the file with `*steps` does."""
    name = naming.text_of(m, call.function)
    made = next((one for one in world.program.classes if one.name == name), None)
    if made is None:
        return table.canonical(world.resolve_name(name)) in _IN_A_ROW
    initial = world.method(made.number, "__init__")
    parameters = world.unit(initial).parameters if initial is not None else ()
    return [parameter.kind for parameter in parameters[1:2]] == ["star"]


def _hands_on(world: World, m: Machine, register: int) -> bool:
    """Whether a transform in a row may return what it is given: one of the file does, and so may what is no call."""
    event = _made_as(m, register)
    if not isinstance(event, t.Call | t.Invoke):
        return True
    function = m.unit.definitions[event.function] if isinstance(event, t.Call) and event.function >= 0 else None
    names = {one.name: one for one in world.program.classes}
    if not isinstance(function, t.Load) or function.name not in names:
        return False
    owner = names[function.name].number
    numbers = [world.method(owner, name) for name in ("__call__", "forward")]
    number = next((one for one in numbers if one is not None), None)
    summary = world.summary(number) if number is not None else None
    if summary is None or summary.unknown or len(summary.parameters) < 2:
        return True
    return not summary.returns_value or any(one.parameter in summary.parameters for one in summary.returned)
