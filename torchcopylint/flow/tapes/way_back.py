"""From a value back to what it is made of, as far as whoever asks goes on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine


class WayBack:
    """Goes through the events that have made a value, each once, and at most so many of them.

    Of what each is made is for the one who goes through them to say, by `go_on`. `cut_short`: there were more.
    """

    def __init__(self, m: Machine, register: int, most: int) -> None:
        self.cut_short = False
        self._definitions = m.unit.definitions
        self._pending = [register]
        self._most = most

    def go_on(self, registers: Iterable[int]) -> None:
        """The way goes on with these registers, the last first."""
        self._pending += registers

    def __iter__(self) -> Iterator[t.Event]:
        seen = {t.NO_REGISTER}
        while self._pending:
            register = self._pending.pop()
            if register in seen:
                continue
            if len(seen) > self._most:
                self.cut_short = True
                return
            seen.add(register)
            event = self._definitions[register]
            if event is not None:
                yield event
