"""A clock of the script's own: two runs of the same code read the same times, and nothing waits.

What a run and its altered twin are compared by must differ by what was altered, and not by when they ran.
"""

from __future__ import annotations

import datetime
import time
from typing import Any

_START = 1_700_000_000.0
_TICK = 1 / 1024
"""Seconds between two looks at the clock: one that can be added up without rounding."""
_MONOTONIC = ("monotonic", "perf_counter", "process_time", "thread_time")


class Clock:
    """Seconds that pass by being asked for."""

    def __init__(self) -> None:
        self._passed = 0.0
        self._local, self._utc, self._written = time.localtime, time.gmtime, time.strftime

    def install(self) -> None:
        """Take the place of the clocks that Python's own modules have."""
        for name in ("time", *_MONOTONIC):
            start = _START if name == "time" else 0.0
            setattr(time, name, lambda start=start: start + self._tick())
            setattr(time, f"{name}_ns", lambda start=start: int((start + self._tick()) * 1e9))
        time.sleep = self._sleep
        time.localtime = lambda seconds=None: self._local(self._now(seconds))
        time.gmtime = lambda seconds=None: self._utc(self._now(seconds))
        time.strftime = lambda form, *given: self._written(form, *(given or (time.localtime(),)))
        time.ctime = lambda seconds=None: time.asctime(time.localtime(seconds))
        datetime.datetime = _dated(self)  # type: ignore[misc]

    def _tick(self) -> float:
        self._passed += _TICK
        return self._passed

    def _now(self, seconds: Any) -> float:
        return _START + self._tick() if seconds is None else float(seconds)

    def _sleep(self, seconds: Any) -> None:
        self._passed += max(float(seconds), 0.0)


def _dated(clock: Clock) -> Any:
    """The class `datetime.datetime` with the times of a clock."""
    base = datetime.datetime

    class Dated(base):  # type: ignore[misc, valid-type]
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return cls.fromtimestamp(clock._now(None), tz)

        @classmethod
        def utcnow(cls) -> Any:
            return cls.fromtimestamp(clock._now(None), datetime.UTC).replace(tzinfo=None)

        @classmethod
        def today(cls) -> Any:
            return cls.fromtimestamp(clock._now(None))

    Dated.__name__ = Dated.__qualname__ = "datetime"
    return Dated
