"""What a function does when a call tells it a constant, `mask(values, mutate=True)`, or nothing, so that its default
holds.

A summary is of all that a function may do. Where a parameter alone decides what it does (`if not mutate: values =
values.clone()`), and a call tells what that is, only one arm of the condition is run. So such a function is run once
more, without the others, when a call is met that tells it; and what its defaults and their opposites come to is put
into what other files may know of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.interprocedural.summaries import Flag, Summary, Told, summarise
from torchcopylint.flow.model import PERHAPS_CUT, Cell, Kind, Value
from torchcopylint.flow.tapes import constants
from torchcopylint.flow.tapes.index import UnitIndex

if TYPE_CHECKING:
    from torchcopylint.flow.files.world import World

MAX_FLAGS = 2
"""With more flags, other files know a function by what it may do alone."""
MAX_EVENTS = 400
"""Functions of more events are not run once more."""


class ToldSummaries:
    """The summaries of the functions of a file by what calls tell their flags. One for each file."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._flags: dict[int, tuple[Flag, ...]] = {}
        self._found: dict[tuple[int, tuple[tuple[str, bool | None], ...]], Summary] = {}

    def forget(self, number: int) -> None:
        """A function is run again: what it does when it is told something may be something else."""
        for key in [key for key in self._found if key[0] == number]:
            del self._found[key]

    def of_call(self, number: int, summary: Summary, bound: Mapping[str, Value]) -> Summary:
        """The summary of a function for a call that passes `bound`: the one that is given, if that tells nothing."""
        own = self.world.is_own(number)
        flags = self.flags(number, summary) if own else summary.flags
        told = _told(flags, bound) if flags else {}
        if not told:
            return summary
        if not own:
            items = tuple(told.items())
            return next((one.summary for one in summary.told if one.flags == items), summary)
        return self._run(number, told) or summary

    def flags(self, number: int, summary: Summary) -> tuple[Flag, ...]:
        """The parameters of a function that decide by themselves what it does to what it is given."""
        does = bool(summary.writes) or len(summary.returned) > 1 or PERHAPS_CUT in summary.result.flags
        if not does and not self._keeps(number, summary):
            return ()
        if number not in self._flags:
            self._flags[number] = self._flags_of(number)
        return self._flags[number]

    def _keeps(self, number: int, summary: Summary) -> bool:
        """Whether a function puts something away. Constructors do, and that is no news."""
        return bool(summary.kept) and self.world.program.units[number].name != "__init__"

    def exported(self, number: int, summary: Summary, file: str) -> Summary:
        """A summary with all that a call from another file may tell the function."""
        flags = tuple(flag for flag in self.flags(number, summary) if flag.has_default)
        if not 0 < len(flags) <= MAX_FLAGS:
            return summary
        values = [(None,) if flag.default is None else (True, False) for flag in flags]
        found: list[Told] = []
        for combination in product(*values):
            told = dict(zip((flag.name for flag in flags), combination, strict=True))
            one = self._run(number, told, file)
            if one is not None:
                found.append(Told(tuple(told.items()), one))
        return summary._replace(flags=flags, told=tuple(found))

    def _flags_of(self, number: int) -> tuple[Flag, ...]:
        unit = self.world.program.units[number]
        index = self.world.index(unit)
        if unit.kind != "function" or unit.is_generator or len(index.events) > MAX_EVENTS:
            return ()
        asked = constants.asked(unit, index.of(t.Branch)) | _asked_for_graph(unit, index)
        found: list[Flag] = []
        for parameter in unit.parameters:
            if parameter.name not in asked or parameter.kind != "plain" or parameter.of:
                continue
            default = self.world.defaults.get(number, {}).get(parameter.name)
            value = default.value if default is not None else None
            if isinstance(value, bool | None) and (default is not None or not parameter.has_default):
                found.append(Flag(parameter.name, value, parameter.has_default))
        return tuple(found)

    def _run(self, number: int, told: dict[str, bool | None], file: str = "") -> Summary | None:
        """The summary of a function that is told some constants; `None` if it cannot be run now."""
        key = (number, tuple(told.items()))
        if key in self._found and not file:
            return self._found[key]
        unit = self.world.program.units[number]
        shorter = constants.shortened(unit, {name: t.Const(t.NO_REGISTER, value, -1) for name, value in told.items()})
        kinds = {name: Kind.NONE if value is None else Kind.NUMBER for name, value in told.items()}
        cells = {name: Cell((), kinds[name], value, site=-1) for name, value in told.items()}
        graph = _asked_for_graph(unit, self.world.index(unit)) if shorter is unit else frozenset()
        m = self.world.run_shortened(shorter, cells) if shorter is not unit or graph & told.keys() else None
        if m is None:
            return None
        found = summarise(m, file)
        if not file:
            self._found[key] = found
        return found


def _asked_for_graph(unit: t.Unit, index: UnitIndex) -> frozenset[str]:
    """The names that say whether what a unit computes has a graph: `grad(y, x, create_graph=create_graph)`."""
    calls: list[t.Call | t.Invoke] = [*index.of(t.Call), *index.of(t.Invoke)]
    asked = [one.register for call in calls for one in call.arguments if one.keyword == "create_graph"]
    loads = [unit.definitions[register] for register in asked if register >= 0]
    return frozenset(load.name for load in loads if isinstance(load, t.Load))


def _told(flags: tuple[Flag, ...], bound: Mapping[str, Value]) -> dict[str, bool | None]:
    """What a call tells some flags, as far as it is known."""
    found: dict[str, bool | None] = {}
    for flag in flags:
        value = bound.get(flag.name)
        if value is None and flag.has_default:
            found[flag.name] = flag.default
        elif value is not None and (isinstance(value.const, bool) or value.kind is Kind.NONE):
            found[flag.name] = value.const if isinstance(value.const, bool) else None
    return found
