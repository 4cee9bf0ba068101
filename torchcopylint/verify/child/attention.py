"""Which turns of a loop are looked at, and how many are run.

Looked at are the first few, and the first few again after something of note outside of it.

What a later turn does is what the earlier ones did, and looking at everything around every statement costs more than
running it. A loop in which something is kept or shared, and not everything else happens as well, is looked at to its
end: in which of its turns the thing was kept that is read after it, only the end tells.

Where few turns are asked for, a loop of many statements ends after the first few: a training loop goes on doing what it
has done. Loops of few statements run to their end: they go through the layers of a network, or fill a list. So do those
in which something is kept that is read after them, with all inside: the best of few epochs is mostly the last.
"""

from __future__ import annotations

import hashlib

MOST_TURNS = 3
TURNS_RUN = 4
STATEMENTS_RUN = 40
STATEMENTS_A_TURN = 5
"""A loop ends early after so many turns, if at least so many statements ran in them, and in each on average."""


class Attention:
    """Awake or asleep. `stale` says that things happened in between that are nobody's, `slept` that it ever was asleep.

    `keeping` says for each mark whether something is kept or shared there. With `always`, it never sleeps. With `few`,
    loops end early.
    """

    def __init__(self, keeping: list[bool]) -> None:
        self.stale = False
        self.slept = False
        self.always = False
        self.few = False
        self._shortened = hashlib.blake2b(digest_size=8)
        self._any_shortened = False
        self._keeping = keeping
        self._turns: dict[int, int] = {}
        self._inside: dict[int, set[int]] = {}
        self._running: list[tuple[object, int]] = []
        self._asleep: object | None = None

    @property
    def asleep(self) -> bool:
        """Whether nothing is looked at now."""
        return self._asleep is not None

    @property
    def shortened(self) -> str:
        """Empty if no loop ended early; else a text that two runs share if the same loops did, after as many turns."""
        return self._shortened.hexdigest() if self._any_shortened else ""

    def is_enough(self, loop: int, turns: int, statements: int) -> bool:
        """Whether the loop with that number, the innermost, ends here: after so many turns with so many statements."""
        least = max(STATEMENTS_RUN, turns * STATEMENTS_A_TURN)
        enough = self.few and turns >= TURNS_RUN and statements >= least
        enough = enough and not any(self._keeps(around) for _, around in self._running)
        if enough:
            self._any_shortened = True
            self._shortened.update(f"{loop}:{turns};".encode())
        return enough

    def turn(self, loop: int, running: object) -> None:
        """Another turn of the loop with that number begins; `running` stands for this execution of it."""
        if (running, loop) not in self._running:
            self._running.append((running, loop))
        if self._asleep is None and not self.always:
            self._turns[loop] = self._turns.get(loop, 0) + 1
            if self._turns[loop] > MOST_TURNS and not self._keeps(loop):
                self._asleep = running
                self.slept = True

    def _keeps(self, loop: int) -> bool:
        """Whether something is kept or shared in a loop, and not everything else happens there as well."""
        inside = self._inside.get(loop, set())
        return any(self._keeping[mark] for mark in inside) and len(inside) < len(self._keeping)

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
