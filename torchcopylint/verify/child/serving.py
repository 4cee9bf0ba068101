"""The child's loop: one request a line, one answer a line, a process of its own for every script.

Request: {"script": str, "marks": [{row, end_row, column, end_column}], "alter": {"kind": str, "marks": [int]},
"seed": int, "seconds": float, "memory": int, "device": str, "quiet": bool, "few": bool, "looks": [str],
"within": [int], "scout": bool, "processor": float, "fixed": int}, where `seconds` are those of the wall, and
`processor` those of the processor, 0 for no bound, and `fixed` rows of the script stand before all that is a user's.
Answer: {"end": str, "text": str}, where `end` says how the script's process ended and `text`
is what it wrote, untouched: only the parent decides whether it is well formed. {"rest": true} is answered when every
process of a script has been killed. {"ahead": true, "seconds": float, "memory": int, "device": str} gets no
answer: a process is forked and guarded for what comes next. Nor does a request with {"beside": true}, which may come
while another one runs: it is begun in a second process, and is answered when it is asked without that word.

All scripts of a finding share a process: those that are only tried, to see which inputs get how far, with `scout`, what
is to be judged, which runs again, and its altered twins; unless a script may leave something behind. One that is judged
then runs in a process of its own, as do its twins, and those that are tried share another one.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

from . import kernel
from .traces import leaves_traces

Run = Callable[[dict[str, Any], str], str]
"""Runs a request in a directory and returns its answer."""
Series = Callable[[str], Callable[[dict[str, Any]], str]]
"""Of a directory, makes what runs requests one after the other there."""
Meanwhile = Callable[[], bool]
"""Is told that something comes while a script runs, and says whether to go on."""
MOST_ANSWERED = 4 << 20
"""Bytes of an answer; more is no answer."""


def main(arguments: list[str]) -> int:
    """Say hello, then answer requests until standard input ends. `arguments`: `--device`, `cpu` or `cuda`, and, where
    this process is to run one script itself, `--here` and a directory."""
    kernel.die_with_parent()
    # What torch prints while it is imported must not be taken for an answer.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    forks = hasattr(os, "fork") and "--here" not in arguments
    try:
        # Here, so that what has no torch can say so.
        from . import running

        hello = running.warm(arguments[arguments.index("--device") + 1], forks=forks)
    except ImportError as error:
        _say(out, {"torch": "", "reason": str(error)})
        return 0
    _say(out, {**hello, "forks": forks})
    served = _Served(running)
    try:
        for request in served.requests():
            if request.get("ahead"):
                served.ahead(request)
                continue
            if not forks:
                _say(out, _here(request, running.run, arguments[-1]))
                return 0
            _say(out, served.rest() if request.get("rest") else served.answer(request))
    finally:
        served.end()
    return 0


_SOON = 0.005
"""Seconds after which it is looked again whether a process has vanished."""
_MOST_DYING = 4
"""So many processes that were killed may still be vanishing before it is waited for one."""
_MOST_AHEAD = 1 << 15
"""Bytes of requests that a process is sent before it has answered another one. They fit into its pipe, so that nobody
waits for it."""


class _Served:
    """Which process runs which request. One process at a time that runs more than one script, and a second one for what
    is begun beside it."""

    def __init__(self, running: Any) -> None:
        self._running = running
        self._waiting = b""
        self._shared: Shared | None = None
        self._second: Shared | None = None
        self._begun: list[dict[str, Any]] = []
        self._kind = ""
        self._judged: tuple[str, int] = ("", 0)
        self._killed: list[Shared] = []

    def requests(self) -> Iterator[dict[str, Any]]:
        """What comes through standard input, until it ends, but for what is begun beside. While nothing comes, what was
        killed is buried: a process that has torch takes milliseconds to vanish."""
        while True:
            while (request := self._next()) is None:
                if self._killed and not select.select([0], [], [], _SOON)[0]:
                    self._bury()
                elif not self._listen():
                    return
            yield request

    def _listen(self) -> bool:
        """Read what has come, and begin what is to run beside. False if there will be no more."""
        part = os.read(0, 1 << 16)
        self._waiting += part
        return bool(part)

    def _next(self) -> dict[str, Any] | None:
        """The next request that has come whole, but for what is begun beside."""
        while b"\n" in self._waiting:
            line, _, self._waiting = self._waiting.partition(b"\n")
            request: dict[str, Any] = json.loads(line)
            if not request.pop("beside", False):
                return request
            self._begin(request)
        return None

    def _meanwhile(self) -> bool:
        """Something comes while a script runs: what is to run beside it, or the end. Whether to go on."""
        going_on = self._listen()
        request = self._next()
        # The parent asks for nothing else while it waits.
        return going_on and request is None

    def _begin(self, request: dict[str, Any]) -> None:
        """Begin a script, or the altered twin of the one that was begun before, in a second process."""
        if request["alter"]["kind"]:
            ahead = sum(len(other["script"]) for other in self._begun[1:]) + len(request["script"])
            if self._second is None or not self._begun or ahead > _MOST_AHEAD:
                return
        elif leaves_traces(request["script"], int(request.get("fixed", 0))):
            return
        else:
            self._forget()
            self._second = Shared(self._running.series)
        self._second.send(request)
        self._begun.append(request)

    def _forget(self) -> None:
        """Nobody asks for what was begun."""
        if self._begun and self._second is None:
            self._kill_shared()
        if self._second is not None:
            self._second.kill()
            self._killed.append(self._second)
        self._second, self._begun = None, []

    def _answer_begun(self, request: dict[str, Any]) -> dict[str, str] | None:
        """The answer to what was begun before it was asked for, if it was."""
        if not self._begun:
            return None
        if request != self._begun[0]:
            # Its answer would come first.
            if self._second is None or request["seed"] == self._begun[0]["seed"]:
                self._forget()
            return None
        if self._second is not None:
            # From here on, it is the only one.
            self._kill_shared()
            self._shared, self._second, self._kind = self._second, None, "judged"
        assert self._shared is not None
        del self._begun[0]
        if not request["alter"]["kind"]:
            self._judged = (request["script"], request["seed"])
        answer = self._shared.receive(float(request["seconds"]), self._meanwhile, more=bool(self._begun))
        if self._shared.ended:
            self._begun = []
        return answer if answer["end"] in ("answered", "timed out") else None

    def ahead(self, request: dict[str, Any]) -> None:
        """Have a process for what comes next, if none runs."""
        if self._shared is None:
            self._shared = Shared(self._running.series)
            self._shared.send(request)

    def answer(self, request: dict[str, Any]) -> dict[str, str]:
        """Run one script. What dies where others ran before it runs again in a process of its own, but for scouts."""
        begun = self._answer_begun(request)
        if begun is not None:
            return begun
        script = (request["script"], request["seed"])
        twin = bool(request["alter"]["kind"]) and not request["scout"]
        traces = not twin and leaves_traces(request["script"], int(request.get("fixed", 0)))
        alone = script != self._judged if twin else not request["scout"] and traces
        kind = "scouts" if request["scout"] and (traces or self._kind == "scouts") else "judged"
        if alone or self._kind not in ("", kind):
            self.rest()
        if not request["scout"] and not twin:
            self._judged = ("", 0) if alone else script
        if alone:
            return _served(request, self._running.run, self._meanwhile)
        first = not self._kind or self._shared is None or self._shared.ended
        if self._shared is None or self._shared.ended:
            self._shared = Shared(self._running.series)
        self._kind = kind
        self._shared.send(request)
        answer = self._shared.receive(float(request["seconds"]), self._meanwhile)
        if first or request["scout"] or answer["end"] in ("answered", "timed out"):
            return answer
        return _served(request, self._running.run, self._meanwhile)

    def rest(self) -> dict[str, str]:
        """Kill what still runs."""
        self._forget()
        self._kill_shared()
        while len(self._killed) > _MOST_DYING:
            self._killed.pop(0).end()
        return {"end": "answered"}

    def _kill_shared(self) -> None:
        if self._shared is not None:
            self._shared.kill()
            self._killed.append(self._shared)
        self._shared, self._kind = None, ""

    def _bury(self) -> None:
        """Remove what was written by processes that have vanished."""
        self._killed = [shared for shared in self._killed if not shared.has_vanished()]

    def end(self) -> None:
        """Kill what runs, and wait for all that was killed."""
        self.rest()
        for shared in self._killed:
            shared.end()


def _say(out: Any, answer: dict[str, Any]) -> None:
    out.write(json.dumps(answer) + "\n")
    out.flush()


def _here(request: dict[str, Any], run: Run, directory: str) -> dict[str, str]:
    """Where there is no fork, this process runs one script and ends. The parent removes the directory."""
    return {"end": "answered", "text": run(request, directory)}


def _served(request: dict[str, Any], run: Run, meanwhile: Meanwhile) -> dict[str, str]:
    """Run a script in a fork, and end its whole process group when it answered, or when its time is up."""
    directory = tempfile.mkdtemp(prefix="torchcopylint-")
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        _be_the_fork(request, run, directory, reader, writer)
    os.close(writer)
    try:
        text, end = _read(reader, float(request["seconds"]), meanwhile)
    finally:
        os.close(reader)
        status = _end(child)
        shutil.rmtree(directory, ignore_errors=True)
    if end == "answered" and not text:
        return {"end": _death(status), "text": ""}
    return {"end": end, "text": text.decode("utf-8", "replace") if end == "answered" else ""}


class Shared:
    """A fork that runs one script after the other. `ended` says that it runs no more."""

    def __init__(self, series: Series) -> None:
        self.ended = False
        self._status = 0
        self._answers = b""
        self._directory = tempfile.mkdtemp(prefix="torchcopylint-")
        asked, self._writer = os.pipe()
        self._reader, answering = os.pipe()
        self._child = os.fork()
        if self._child == 0:
            _be_the_shared(series, self._directory, asked, answering)
        os.close(asked)
        os.close(answering)

    def has_vanished(self) -> bool:
        """Whether a killed process is gone; what it wrote is removed then."""
        if not self.ended:
            gone, self._status = os.waitpid(self._child, os.WNOHANG)
            if not gone:
                return False
            self._bury()
        return True

    def send(self, request: dict[str, Any]) -> None:
        """Ask something. If there is no process any more, there will be no answer."""
        with contextlib.suppress(BrokenPipeError):
            _write(self._writer, json.dumps(request).encode("utf-8") + b"\n")

    def receive(self, seconds: float, meanwhile: Meanwhile, *, more: bool = False) -> dict[str, str]:
        """The answer to what was sent. If there is none in time, or no process any more, this was the last.

        `more`: something else was sent behind it.
        """
        end = ""
        if b"\n" not in self._answers:
            part, end = _read(self._reader, seconds, meanwhile, line=True)
            self._answers += part
        text = b""
        if b"\n" in self._answers:
            # Of several scripts that were sent, several answers may have come; of one, what else came is nonsense.
            text, _, rest = self._answers.partition(b"\n")
            text, self._answers = (text, rest) if more else (self._answers, b"")
        if text:
            return {"end": "answered", "text": text.decode("utf-8", "replace")}
        status = self.end()
        if end == "answered" and _ran_out(status):
            end = "timed out"
        return {"end": _death(status) if end == "answered" else end, "text": ""}

    def kill(self) -> None:
        """Have it run no further. `end` is still to be called."""
        if not self.ended:
            _kill(self._child)

    def end(self) -> int:
        """End the process, and remove what it wrote. Returns its status, 0 if it had ended before."""
        if self.ended:
            return 0
        self._status = _end(self._child)
        self._bury()
        return self._status

    def _bury(self) -> None:
        self.ended = True
        os.close(self._reader)
        os.close(self._writer)
        shutil.rmtree(self._directory, ignore_errors=True)


def _be_the_shared(series: Series, directory: str, asked: int, answering: int) -> None:
    try:
        _close_others(asked, answering)
        run = series(directory)
        waiting = b""
        while True:
            while b"\n" not in waiting:
                part = os.read(asked, 1 << 16)
                if not part:
                    return
                waiting += part
            line, _, waiting = waiting.partition(b"\n")
            answer = run(json.loads(line))
            if answer:
                _write(answering, answer.encode("utf-8") + b"\n")
    finally:
        os._exit(1)


def _be_the_fork(request: dict[str, Any], run: Run, directory: str, reader: int, writer: int) -> None:
    status = 1
    try:
        os.close(reader)
        _close_others(writer)
        _write(writer, run(request, directory).encode("utf-8"))
        status = 0
    finally:
        os._exit(status)


def _close_others(*kept: int) -> None:
    """In a fork: a process group of its own, and no descriptor but these."""
    os.setsid()
    kernel.die_with_parent()
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    for descriptor in _open_descriptors():
        if descriptor > 2 and descriptor not in kept:
            with contextlib.suppress(OSError):
                os.close(descriptor)


def _write(descriptor: int, content: bytes) -> None:
    while content:
        content = content[os.write(descriptor, content) :]


def _open_descriptors() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:
        return list(range(3, 64))


def _read(reader: int, seconds: float, meanwhile: Meanwhile, *, line: bool = False) -> tuple[bytes, str]:
    """What the fork wrote, and how reading ended: `answered`, `timed out`, `too much` or `stopped`. `line`: it goes on
    after one line; without that line there is no answer. `meanwhile` is told when something comes from the parent."""
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
                return b"" if line else b"".join(parts), "answered"
            parts.append(part)
            size += len(part)
            if line and b"\n" in part:
                return b"".join(parts), "answered"
            if size > MOST_ANSWERED:
                return b"", "too much"
        elif 0 in ready and not meanwhile():
            return b"", "stopped"


def _kill(child: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)


def _end(child: int) -> int:
    _kill(child)
    return os.waitpid(child, 0)[1]


def _ran_out(status: int) -> bool:
    """Whether a process was ended by the bound of its processor time."""
    bound = getattr(signal, "SIGPROF", None)
    return bound is not None and os.waitstatus_to_exitcode(status) == -bound


def _death(status: int) -> str:
    """How a process ended that gave no answer."""
    code = os.waitstatus_to_exitcode(status)
    return f"died of {_signal_name(-code)}" if code < 0 else f"ended with status {code}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
