"""A progress bar on the terminal, for runs that last."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import TextIO

from torchcopylint.report.terminal import clean

PATIENCE = 0.5
"""Seconds before a bar appears."""
PAUSE = 0.1
"""Seconds between two drawings."""
_WIDTH = 24


class Progress:
    """Counts files and draws how far the run is; the bar is gone when the run is over."""

    def __init__(self, stream: TextIO, total: int, now: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._total = total
        self._now = now
        self._due = now() + PATIENCE
        self._done = 0
        self._drawn = False

    def __call__(self, path: str) -> None:
        """A file is about to be checked."""
        if self._now() >= self._due:
            filled = _WIDTH * self._done // self._total
            bar = "#" * filled + "-" * (_WIDTH - filled)
            name = clean(os.path.basename(path))[:40]
            self._stream.write(f"\r\x1b[K[{bar}] {self._done}/{self._total} {name}")
            self._stream.flush()
            self._drawn = True
            self._due = self._now() + PAUSE
        self._done += 1

    def clear(self) -> None:
        """Take the bar away."""
        if self._drawn:
            self._stream.write("\r\x1b[K")
            self._stream.flush()


def progress(total: int, quiet: bool, environment: Mapping[str, str]) -> Progress | None:
    """A bar on standard error, or `None` where nobody looks at one."""
    if quiet or not sys.stderr.isatty() or environment.get("TERM") == "dumb":
        return None
    return Progress(sys.stderr, total)
