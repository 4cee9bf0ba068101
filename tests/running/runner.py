"""Starts the child that executes examples, and turns what it answers into the text of an `observed` block."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any

CHILD = Path(__file__).parent / "child.py"
LONGEST = 110
"""Characters of a message that an `observed` block keeps."""

_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{4,}\b")
_INSTALLED_PATH = re.compile(r"(?<!\S)[^\s'\"]*[/\\]site-packages[/\\]")


@dataclass(frozen=True, slots=True)
class Raised:
    """How a program ended. `line` is the innermost line of the program itself, 1-based, or 0 if there is none."""

    kind: str
    line: int
    message: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one program did: what it printed, its distinct warnings as (category, message), and how it ended."""

    printed: str
    warnings: tuple[tuple[str, str], ...]
    raised: Raised | None


class Runner:
    """A warm interpreter with torch in it. Use it as a context manager; `run` executes one program.

    What programs save goes to a directory of its own, which is gone afterwards.
    `fork` False asks the child to execute the programs in one process, as it does where there is no `os.fork`.
    """

    def __init__(self, *, fork: bool = True) -> None:
        # Asking the driver whether there is a GPU would keep forks from using it.
        environment = {**os.environ, "PYTORCH_NVML_BASED_CUDA_CHECK": "1"}
        command = [sys.executable, "-u", str(CHILD), *([] if fork else ["--here"])]
        self._place = TemporaryDirectory()
        self._child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            cwd=self._place.name,
            env=environment,
        )
        hello = self._answer()
        self.torch_version = str(hello["torch"]).partition("+")[0]
        # Programs that are run here may open sockets and start processes: nothing is walled in.
        self._has = {"cuda": bool(hello["cuda"]), "processes": True}

    def __enter__(self) -> Runner:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._child.stdin is not None
        self._child.stdin.close()
        self._child.wait()
        self._place.cleanup()

    def lacks(self, needs: str) -> str:
        """The first of the things that a page `needs` (words, as in its front matter) and that are not here, or ""."""
        return next((need for need in needs.replace(",", " ").split() if not self._has[need]), "")

    def run(self, code: str, *, seed: int = 0, needs: str = "") -> Outcome:
        """Execute `code` and say what it did. Raises `RuntimeError` when the child itself has ended.

        `seed` is what the generators of torch and NumPy start from; an example that is deterministic ignores it.
        `needs` is what its page needs: no other program sees a GPU.
        """
        assert self._child.stdin is not None
        self._child.stdin.write(json.dumps({"code": code, "seed": seed, "cuda": "cuda" in needs}) + "\n")
        self._child.stdin.flush()
        answer = self._answer()
        raised = Raised(*answer["raised"]) if answer["raised"] else None
        warnings = tuple((category, text) for category, text in answer["warnings"])
        return Outcome(printed=answer["printed"], warnings=warnings, raised=raised)

    def _answer(self) -> dict[str, Any]:
        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        if not line:
            raise RuntimeError(f"the child that executes examples ended with status {self._child.wait()}")
        answer: dict[str, Any] = json.loads(line)
        return answer


NOT_RUN = "not run: needs "
"""How an `observed` block begins that says what its example waits for."""


def observed_text(outcome: Outcome) -> str:
    """The text of an `observed` block: what was printed, then `warns ...` lines, then one `raises ... on line N: ...`.

    Messages are cut to their first line and `LONGEST` characters; addresses and installed paths are made neutral.
    """
    lines = [line.rstrip() for line in outcome.printed.splitlines()]
    lines += [f"warns {category}: {_short(text)}" for category, text in outcome.warnings]
    if outcome.raised:
        raised = outcome.raised
        lines.append(f"raises {raised.kind} on line {raised.line}: {_short(raised.message)}")
    return _neutral("\n".join(lines))


def disagreements(observed: str, outcome: Outcome, *, same_torch: bool) -> list[str]:
    """What of an `observed` block is not what happened, one line each; empty where they agree.

    Messages of warnings and exceptions agree when the actual one begins with what the block kept of it, because other
    versions of Python append to them. Where torch is another than the block's (`same_torch` False) they are free.
    """
    expected, actual = observed.splitlines(), observed_text(outcome).splitlines()
    wrong = [
        f"observed {then!r}, now {now!r}"
        for then, now in zip(expected, actual, strict=False)
        if not _agree(then, now, same_torch=same_torch)
    ]
    wrong += [f"no longer seen: {line!r}" for line in expected[len(actual) :]]
    return wrong + [f"not in the observed block: {line!r}" for line in actual[len(expected) :]]


def _agree(then: str, now: str, *, same_torch: bool) -> bool:
    if then == now or not then.startswith(("warns ", "raises ")):
        return then == now
    head, _, message = then.partition(": ")
    actual_head, _, actual_message = now.partition(": ")
    return head == actual_head and (not same_torch or actual_message.startswith(message.removesuffix("...")))


def _short(message: str) -> str:
    first = message.strip().splitlines()[0] if message.strip() else ""
    return first if len(first) <= LONGEST else first[:LONGEST].rstrip() + "..."


def _neutral(text: str) -> str:
    return _INSTALLED_PATH.sub("", _ADDRESS.sub("0x...", text))
