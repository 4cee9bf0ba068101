"""What all calls pass for a parameter, or all methods put somewhere: of a unit that is run again, what the last run has
shown."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from torchcopylint.flow.model import Object, join_objects

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchcopylint.flow.running.machine import Machine

MAX_CALLS = 30
"""Of what more calls (or methods) say something of, all that any run has shown counts."""


class Newest:
    """The objects that some calls pass for one parameter, or methods put into one place, each with the machine that has
    run the call or method."""

    def __init__(self) -> None:
        self._calls: dict[tuple[int, int], tuple[Machine, Object]] = {}
        self._joined: Object | None = None

    def note(self, m: Machine, site: int, obj: Object) -> Object:
        """The call at a site passes such an object; returns what all calls do."""
        key = (m.unit.number, site)
        before = self._calls.get(key)
        if len(self._calls) > MAX_CALLS or before is None or before[0] is m or m.partial:
            # Another call, or another turn of a loop.
            own = obj if before is None else join_objects(before[1], obj)
            joined = obj if self._joined is None else join_objects(self._joined, obj)
        else:
            own = obj
            rest = (one for other, (_, one) in self._calls.items() if other != key)
            joined = reduce(join_objects, rest, obj)
        self._calls[key] = (m, own)
        self._joined = joined
        return joined

    def shown_by(self, unit: int) -> Object | None:
        """What the last run of a unit has shown, of what is not told by its site."""
        shown = self._calls.get((unit, -1))
        return shown[1] if shown is not None else None

    def take_back(self, unit: int) -> Object | None:
        """Forget what the last run of a unit has shown, of what is not told by its site; returns what all others have
        shown."""
        self._calls.pop((unit, -1), None)
        rest = [obj for _, obj in self._calls.values()]
        self._joined = reduce(join_objects, rest) if rest else None
        return self._joined

    def amend(self, change: Callable[[Object], Object]) -> None:
        """Something holds of all that has been shown."""
        self._calls = {key: (m, change(obj)) for key, (m, obj) in self._calls.items()}
        self._joined = change(self._joined) if self._joined is not None else None
