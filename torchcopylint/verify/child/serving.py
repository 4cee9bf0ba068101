"""The child's loop: one request a line, one answer a line, a process of its own for every script.

Request: {"script": str, "marks": [{row, end_row, column, end_column}], "alter": {"kind": str, "marks": [int]},
"seed": int, "seconds": float, "memory": int, "device": str, "quiet": bool, "looks": [str], "within": [int]}. Answer:
{"end": str, "text": str}, where `end` says how the script's process ended and `text` is what it wrote, untouched: only
the parent decides whether it is well formed.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

from . import kernel

Run = Callable[[dict[str, Any], str], str]
"""Runs a request in a directory and returns its answer."""
MOST_ANSWERED = 4 << 20
"""Bytes of an answer; more is no answer."""


def main(arguments: list[str]) -> int:
    """Say hello, then answer requests until standard input ends."""
    kernel.die_with_parent()
    # What torch prints while it is imported must not be taken for an answer.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    try:
        # Here, so that what has no torch can say so.
        from . import running

        hello = running.warm()
    except ImportError as error:
        _say(out, {"torch": "", "reason": str(error)})
        return 0
    forks = hasattr(os, "fork") and "--here" not in arguments
    _say(out, {**hello, "forks": forks})
    for line in sys.stdin:
        request = json.loads(line)
        _say(out, _served(request, running.run) if forks else _here(request, running.run, arguments[-1]))
        if not forks:
            return 0
    return 0


def _say(out: Any, answer: dict[str, Any]) -> None:
    out.write(json.dumps(answer) + "\n")
    out.flush()


def _here(request: dict[str, Any], run: Run, directory: str) -> dict[str, str]:
    """Where there is no fork, this process runs one script and ends. The parent removes the directory."""
    return {"end": "answered", "text": run(request, directory)}


def _served(request: dict[str, Any], run: Run) -> dict[str, str]:
    """Run a script in a fork, and end its whole process group when it answered, or when its time is up."""
    directory = tempfile.mkdtemp(prefix="torchcopylint-")
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _be_the_fork(request, run, directory, reader, writer)
    os.close(writer)
    try:
        text, end = _read(reader, float(request["seconds"]))
    finally:
        os.close(reader)
        status = _end(child)
        shutil.rmtree(directory, ignore_errors=True)
    if end == "answered" and not text:
        code = os.waitstatus_to_exitcode(status)
        return {"end": f"died of {_signal_name(-code)}" if code < 0 else f"ended with status {code}", "text": ""}
    return {"end": end, "text": text.decode("utf-8", "replace") if end == "answered" else ""}


def _be_the_fork(request: dict[str, Any], run: Run, directory: str, reader: int, writer: int) -> None:
    status = 1
    try:
        os.setsid()
        kernel.die_with_parent()
        os.close(reader)
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nothing, descriptor)
        for descriptor in _open_descriptors():
            if descriptor > 2 and descriptor != writer:
                with contextlib.suppress(OSError):
                    os.close(descriptor)
        answer = run(request, directory).encode("utf-8")
        while answer:
            answer = answer[os.write(writer, answer) :]
        status = 0
    finally:
        os._exit(status)


def _open_descriptors() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:
        return list(range(3, 64))


def _read(reader: int, seconds: float) -> tuple[bytes, str]:
    """What the fork wrote, and how reading ended: `answered`, `timed out`, `too much` or `stopped`."""
    deadline = time.monotonic() + seconds + 0.5
    parts: list[bytes] = []
    size = 0
    watched = [reader, 0]
    while True:
        ready, _, _ = select.select(watched, [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return b"", "timed out"
        if reader in ready:
            part = os.read(reader, 1 << 16)
            if not part:
                return b"".join(parts), "answered"
            parts.append(part)
            size += len(part)
            if size > MOST_ANSWERED:
                return b"", "too much"
        elif 0 in ready:
            # The parent asks for nothing while it waits: its end of the pipe was closed.
            return b"", "stopped"


def _end(child: int) -> int:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
