"""What the methods of a file's classes put into places of their objects: fields, or the containers in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow.interprocedural.newest import Newest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from torchcopylint.flow.model import Object
    from torchcopylint.flow.running.machine import Machine

Place = tuple[int, str]
"""The number of a class, and a name."""


class Contents:
    """Places of objects of some classes, with what all methods have put there; of a method that is run again, what the
    last run has shown."""

    def __init__(self) -> None:
        self._known: dict[int, dict[str, Object]] = {}
        self._newest: dict[Place, Newest] = {}

    def of(self, number: int) -> Mapping[str, Object]:
        """What is known of the places of objects of one class, by their names."""
        return self._known.get(number, {})

    def note(self, m: Machine, number: int, name: str, obj: Object) -> None:
        """A method has put something there."""
        newest = self._newest.setdefault((number, name), Newest())
        self._known.setdefault(number, {})[name] = newest.note(m, -1, obj)

    def amend(self, number: int, name: str, change: Callable[[Object], Object]) -> None:
        """Something has shown what holds of all that methods have put there."""
        self._newest[number, name].amend(change)
        self._known[number][name] = change(self._known[number][name])

    def put_by(self, unit: int) -> dict[Place, Object]:
        """What a method has put anywhere when it was last run."""
        shown = ((place, newest.shown_by(unit)) for place, newest in self._newest.items())
        return {place: obj for place, obj in shown if obj is not None}

    def take_back(self, unit: int) -> set[Place]:
        """A method is to be run again: what it has put somewhere, it does not find there, if others have put something
        there as well (`self.mean -= shift` says nothing of what the field holds). Returns where it alone has."""
        alone: set[Place] = set()
        for place, put in self.put_by(unit).items():
            rest = self._newest[place].take_back(unit)
            alone |= {place} if rest is None else set()
            self._known[place[0]][place[1]] = rest or put
        return alone
