"""Transforms of a file that are only ever made to stand behind others: what they are given, those have made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchcopylint.flow.files.world import World
    from torchcopylint.flow.running.machine import Machine

_SERIES = ("list", "tuple")


def is_fed_by_others(world: World, owner: int) -> bool:
    """Whether every instance of a class that the file makes stands in a list behind something that makes a new sample:
    `Compose([Scale(), Normalize()])`.

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
    series = m.consumer_of(event.out)
    if not isinstance(series, t.Make) or series.kind not in _SERIES or event.out not in series.items:
        return False
    before = series.items[: series.items.index(event.out)]
    return any(not _hands_on(world, m, register) for register in before)


def _hands_on(world: World, m: Machine, register: int) -> bool:
    """Whether a transform in a list may return what it is given: one of the file does, and so may what is no call."""
    event = m.unit.definitions[register] if register >= 0 else None
    if not isinstance(event, t.Call | t.Invoke):
        return True
    function = m.unit.definitions[event.function] if isinstance(event, t.Call) and event.function >= 0 else None
    names = {one.name: one for one in world.program.classes}
    if not isinstance(function, t.Load) or function.name not in names:
        return False
    number = world.method(names[function.name].number, "__call__")
    summary = world.summary(number) if number is not None else None
    if summary is None or summary.unknown or len(summary.parameters) < 2:
        return True
    return not summary.returns_value or any(one.parameter in summary.parameters for one in summary.returned)
