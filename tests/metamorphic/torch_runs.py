"""What programs do under torch, several programs in one process that is forked for them."""

from __future__ import annotations

import atexit
import json
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from running.runner import Outcome, Raised, Runner

from .programs import Variant

# The script that executes programs is `__main__` in its own process. Each program starts from the same states there.
_DRIVER = """\
import __main__
import json

print(json.dumps([__main__.execute_here(code, 0, False) for code in json.loads({programs!r})]))
"""


class Died(Exception):
    """The process that executed the programs died."""


class Effect(NamedTuple):
    """What a program did, in rows and names of the original one."""

    printed: str
    warnings: tuple[tuple[str, str], ...]
    raised: tuple[str, int, str] | None


@cache
def _runner() -> Runner:
    """One interpreter with torch in it for all tests, started when the first asks."""
    runner = Runner()
    atexit.register(runner.__exit__, None, None, None)
    return runner


def printed(code: str) -> str:
    """What a program prints. Raises `Died`."""
    return _outcomes([code])[0].printed


def effects(*variants: Variant) -> list[Effect]:
    """What each variant does. Raises `Died` when one of them ends the process."""
    outcomes = _outcomes([variant.code for variant in variants])
    return [_effect(variant, outcome) for variant, outcome in zip(variants, outcomes, strict=True)]


def runs(codes: Sequence[str]) -> list[tuple[object, ...]]:
    """What each program prints and warns of, and how it ends, but for the row. Raises `Died`."""
    return [
        (one.printed, one.warnings, one.raised and (one.raised.kind, one.raised.message)) for one in _outcomes(codes)
    ]


def _outcomes(codes: Sequence[str]) -> list[Outcome]:
    answer = _runner().run(_DRIVER.format(programs=json.dumps(codes)))
    if answer.raised:
        raise Died(f"{answer.raised.kind}: {answer.raised.message}")
    return [
        Outcome(
            printed=one["printed"],
            warnings=tuple((category, text) for category, text in one["warnings"]),
            raised=Raised(*one["raised"]) if one["raised"] else None,
        )
        for one in json.loads(answer.printed)
    ]


def _effect(variant: Variant, outcome: Outcome) -> Effect:
    def say(text: str) -> str:
        # Only a representation tells where a class was defined.
        return variant.original_words(text).replace("main.<locals>.", "")

    raised = outcome.raised
    return Effect(
        say(outcome.printed),
        tuple((category, say(text)) for category, text in outcome.warnings),
        (raised.kind, variant.origin(raised.line), say(raised.message)) if raised else None,
    )
