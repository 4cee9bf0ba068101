"""What several processes tell one another of the files that they follow: each file is followed by one of them.

A worker asks before it follows a file. If another one is at it, the worker waits; unless that one waits for this one
in turn, which files in a circle can bring about: then it follows the file as well. Whoever is done first is believed,
and the other takes over what that one found; the files of a circle are told at once, so that it is one worker that is
believed.

That makes findings independent of who follows what: a worker finishes a file only when it knows all that the file uses,
from others or by itself, so it knows every circle that the file is in.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import TypeAlias

from torchcopylint.analysis import Limits

Worker: TypeAlias = object
"""What stands for a worker; only its identity counts."""


LOST = ""
"""What is known of a file over which a worker died: it is not followed again, whoever uses it."""


def key_of(root: str, limits: Limits, path: str) -> str:
    """What stands for a file among those of all projects of a run."""
    return "\0".join((path, root, repr(limits)))


def path_of(key: str) -> str:
    """The path of the file that a key stands for."""
    return key.partition("\0")[0]


class Exchange:
    """What the workers of a run know. What they found out is text that only they understand."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._owners: dict[str, Worker] = {}
        self._waiting: dict[Worker, str] = {}
        self._changed = threading.Condition()
        self._over = False

    def begin(self, worker: Worker, key: str) -> None:
        """A worker is asked to examine a file, and will follow it."""
        with self._changed:
            self._owners.setdefault(key, worker)

    def ask(self, worker: Worker, key: str) -> str | None:
        """What is known of a file, or `None` if the worker is to follow it. Waits for another one that is at it."""
        with self._changed:
            while not self._over and key not in self._known:
                owner = self._owners.get(key)
                if owner is None:
                    self._owners[key] = worker
                    return None
                if self._waits_for(owner, worker):
                    return None
                self._waiting[worker] = key
                self._changed.wait()
                del self._waiting[worker]
            return self._known.get(key)

    def tell(self, worker: Worker, key: str, known: str) -> str | None:
        """Take down what a worker found out; what another one told before, if there is something."""
        return self.tell_all(worker, [(key, known)])[0]

    def tell_all(self, worker: Worker, items: Iterable[tuple[str, str]]) -> list[str | None]:
        """The same of several files, the keys and what is known, at once: who knows one of them knows them all."""
        with self._changed:
            earlier = [(self._known.setdefault(key, known), known) for key, known in items]
            self._changed.notify_all()
            return [before if before != known else None for before, known in earlier]

    def lose(self, key: str) -> None:
        """A worker died over a file."""
        with self._changed:
            self._known.setdefault(key, LOST)
            self._changed.notify_all()

    def done(self, worker: Worker) -> None:
        """A worker is done with its file, or has died: what it has not told it will not tell."""
        with self._changed:
            for key in [key for key, owner in self._owners.items() if owner is worker]:
                del self._owners[key]
            self._changed.notify_all()

    def end(self) -> None:
        """Nobody waits any more."""
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def _waits_for(self, one: Worker, other: Worker) -> bool:
        """Whether a worker is another one, or waits for it through others."""
        while one is not other:
            key = self._waiting.get(one)
            if key is None or key in self._known or key not in self._owners:
                return False
            one = self._owners[key]
        return True
