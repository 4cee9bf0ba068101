"""Which turns of a loop are looked at: the first few, and the first few again after something of note outside of it.

What a later turn does is what the earlier ones did, and looking at everything around every statement costs more than
running it. A loop in which something is kept or shared, and not everything else happens as well, is looked at to its
end: in which of its turns the thing was kept that is read after it, only the end tells.
"""

from __future__ import annotations

MOST_TURNS = 3


class Attention:
    """Awake or asleep. `stale` says that things happened in between that are nobody's, `slept` that it ever was asleep.

    `keeping` says for each mark whether something is kept or shared there. With `always`, it never sleeps.
    """

    def __init__(self, keeping: list[bool]) -> None:
        self.stale = False
        self.slept = False
        self.always = False
        self._keeping = keeping
        self._turns: dict[int, int] = {}
        self._inside: dict[int, set[int]] = {}
        self._running: list[tuple[object, int]] = []
        self._asleep: object | None = None

    @property
    def asleep(self) -> bool:
        """Whether nothing is looked at now."""
        return self._asleep is not None

    def turn(self, loop: int, running: object) -> None:
        """Another turn of the loop with that number begins; `running` stands for this execution of it."""
        if (running, loop) not in self._running:
            self._running.append((running, loop))
        if self._asleep is None and not self.always:
            self._turns[loop] = self._turns.get(loop, 0) + 1
            inside = self._inside.get(loop, set())
            kept = any(self._keeping[mark] for mark in inside) and len(inside) < len(self._keeping)
            if self._turns[loop] > MOST_TURNS and not kept:
                self._asleep = running
                self.slept = True

    def over(self, running: object) -> None:
        """An execution of a loop has ended."""
        self._running = [entry for entry in self._running if entry[0] is not running]
        if self._asleep is running:
            self._wake()

    def passed(self, mark: int, *, first: bool) -> None:
        """A marked statement runs, for the first time or not: to loops around which it runs, what follows is new."""
        within = {loop for _, loop in self._running}
        for loop in within:
            self._inside.setdefault(loop, set()).add(mark)
        self._turns = {loop: turns for loop, turns in self._turns.items() if loop in within and not first}
        if first and self._asleep is not None:
            self._wake()

    def _wake(self) -> None:
        self._asleep = None
        self.stale = True
