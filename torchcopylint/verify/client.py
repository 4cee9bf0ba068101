"""The parent's end of the child: starts it, asks it, ends it. Whatever it answers is text."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROGRAM = Path(__file__).resolve().parent / "child" / "__main__.py"
SECONDS_TO_START = 120.0
"""Importing torch takes seconds; on a busy machine with a cold disk, many."""
MOST_ANSWERED = 16 << 20
Besides = Callable[[], Iterable[dict[str, Any]]]
"""Makes requests that are likely to come next."""


@dataclass(frozen=True, slots=True)
class Hello:
    """What the child has. `torch` is a version, or empty, and `reason` says why; `forks` whether it serves many."""

    torch: str
    forks: bool
    reason: str


class ChildEnded(Exception):
    """The child is gone, or does not answer in time; the message says which."""


class Child:
    """One warm process with torch in it, in a process group of its own. `end` leaves nothing behind.

    `device` is what its scripts are going to run on: `cpu`, or `cuda`.
    """

    def __init__(self, python: str, *, device: str = "cpu", fork: bool = True) -> None:
        self._directory = tempfile.mkdtemp(prefix="torchcopylint-")
        # Without forks, it is the child itself that is guarded, so it cannot tidy up after a script.
        here = [] if fork and hasattr(os, "fork") else ["--here", self._directory]
        self._process = subprocess.Popen(
            [python, "-I", str(PROGRAM), "--device", device, *here],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=_environment(self._directory, device),
            cwd=self._directory,
            start_new_session=True,
        )
        self._parts: queue.Queue[bytes] = queue.Queue()
        # A thread, because pipes cannot be waited for with a time limit everywhere.
        threading.Thread(target=self._read, daemon=True).start()
        self._buffer = b""
        answer = self._answer(SECONDS_TO_START)
        self.hello = Hello(
            str(answer.get("torch", "")),
            answer.get("forks") is True,
            str(answer.get("reason", "")),
        )

    @property
    def process_id(self) -> int:
        """The number of the process, which is that of its group."""
        return self._process.pid

    def ask(self, request: dict[str, Any], seconds: float, meanwhile: Besides | None = None) -> tuple[str, str]:
        """How the script's process ended, and what it wrote. Raises `ChildEnded`. `seconds` is the script's time.

        `meanwhile` is called while the script runs, and says what is likely to be asked next: that is begun beside it.
        """
        self._send(request)
        if meanwhile is not None and self.hello.forks:
            for other in meanwhile():
                self._send({**other, "beside": True})
        answer = self._answer(seconds + 10)
        return str(answer.get("end", "")), str(answer.get("text", ""))

    def ahead(self, seconds: float, memory: int, device: str) -> None:
        """Have it make a process for what is going to be asked. Raises `ChildEnded`."""
        if self.hello.forks:
            self._send({"ahead": True, "seconds": seconds, "memory": memory, "device": device})

    def rest(self) -> None:
        """Kill every process of a script, when a finding is done with. Raises `ChildEnded`."""
        if self.hello.forks:
            self.ask({"rest": True}, 0.0)

    def _send(self, request: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request).encode("utf-8") + b"\n")
            self._process.stdin.flush()
        except OSError:
            raise ChildEnded("the process that runs scripts has ended") from None

    def _read(self) -> None:
        assert self._process.stdout is not None
        part = b"-"
        while part:
            try:
                part = os.read(self._process.stdout.fileno(), 1 << 16)
            except (OSError, ValueError):
                part = b""
            self._parts.put(part)

    def _answer(self, seconds: float) -> dict[str, Any]:
        deadline = time.monotonic() + seconds
        while b"\n" not in self._buffer:
            try:
                part = self._parts.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                self.end()
                raise ChildEnded("no answer in time") from None
            if not part or len(self._buffer) > MOST_ANSWERED:
                self.end()
                raise ChildEnded("the process that runs scripts has ended")
            self._buffer += part
        line, _, self._buffer = self._buffer.partition(b"\n")
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            self.end()
            raise ChildEnded("the process that runs scripts answered nonsense")
        return answer

    def end(self) -> None:
        """End the process and everything that it started."""
        process = self._process
        if process.stdin is not None and not process.stdin.closed:
            with contextlib.suppress(OSError):
                process.stdin.close()
        try:
            process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            _kill(process)
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
        shutil.rmtree(self._directory, ignore_errors=True)


def _kill(process: subprocess.Popen[bytes]) -> None:
    if hasattr(os, "killpg"):
        try:
            os.killpg(process.pid, signal.SIGKILL)
            return
        except (ProcessLookupError, PermissionError):
            pass
    process.kill()


def _environment(directory: str, device: str) -> dict[str, str]:
    """Nothing of ours but what the system needs to start a program and find its libraries."""
    kept = ("LD_LIBRARY_PATH", "SYSTEMROOT", "CUDA_VISIBLE_DEVICES", "DYLD_LIBRARY_PATH")
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    if device == "cpu":
        # Autograd begins a thread for each GPU that it sees, with the first backward: after that, no fork has autograd.
        environment["CUDA_VISIBLE_DEVICES"] = ""
    # Asking the driver whether there is a GPU would keep forks from using it.
    environment["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
    # A fork is made for each finding: in larger pages, what torch has takes less time to share and to give back.
    environment["GLIBC_TUNABLES"] = "glibc.malloc.hugetlb=1"
    environment.update({"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "LC_ALL": "C.UTF-8"})
    environment.update({"HOME": directory, "PATH": os.defpath, "TMPDIR": directory, "TEMP": directory})
    return environment


def default_python() -> str:
    """The interpreter that runs scripts: this one, whose packages are then torch's."""
    return sys.executable
