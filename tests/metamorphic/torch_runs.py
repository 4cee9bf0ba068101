"""What programs do under torch, several programs in one process that is forked for them."""

from __future__ import annotations

import json
from collections.abc import Sequence

from running.runner import Outcome, Raised, Runner

# The script that executes programs is `__main__` in its own process. Each program starts from the same states there.
_DRIVER = """\
import __main__
import json

print(json.dumps([__main__.execute_here(code, 0) for code in json.loads({programs!r})]))
"""


class Died(Exception):
    """The process that executed the programs died."""


def run_all(runner: Runner, codes: Sequence[str]) -> list[Outcome]:
    """What each program did. Raises `Died` when one of them ended the process."""
    answer = runner.run(_DRIVER.format(programs=json.dumps(list(codes))))
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
