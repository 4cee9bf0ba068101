"""What running the flagged code showed, as data. Formats render it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """What came of running a slice.

    `confirmed`: the effect was observed. `refuted`: every step happened and the effect did not. `not-triggered`: the
    steps were not all reached. `inconclusive`: it differs between inputs or seeds, timed out, rests on a guess, or the
    answer was no answer. `unsupported`: it needs what this machine or this slicer lacks. `unavailable`: no torch.
    """

    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    NOT_TRIGGERED = "not-triggered"
    INCONCLUSIVE = "inconclusive"
    UNSUPPORTED = "unsupported"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One thing that was seen, or that had to be assumed to see it.

    `kind` is a word for machines ("two-names-change", "raises", "assumed", "stand-in", "protection", "blocked", ...),
    `text` a sentence for people, `row` the 1-based row of the user's file that it is about, or `None`.
    """

    kind: str
    text: str
    row: int | None = None


@dataclass(frozen=True, slots=True)
class Verification:
    """The verdict on one finding, with what it rests on.

    `torch_version`, `device` and `seeds` say where it ran; empty where nothing ran. `reproducer` is the path of the
    stand-alone script that was written for it, or `None`.
    """

    verdict: Verdict
    evidence: tuple[Evidence, ...] = ()
    torch_version: str = ""
    device: str = ""
    seeds: tuple[int, ...] = ()
    reproducer: str | None = None
