"""What the analysis could not see, and why. Gaps are counted, never reported as findings."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Gap:
    """Something the analysis gave up on: `reason` is a short stable phrase, `row` the 1-based line or 0."""

    reason: str
    filename: str
    row: int
