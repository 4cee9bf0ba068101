"""Examining files in several processes at once.

Each worker is asked for one file at a time, so that it is known which file a worker was at when it died: that file is
reported, another worker takes the place, and the rest is examined. A thread waits for each worker; the thread that
asked for all of it collects the answers, and ends the workers whatever happens to itself. Files that others use come
first, and what one worker finds out about them the others are told (`project.exchange`).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from queue import Empty, SimpleQueue
from typing import Any

from torchcopylint.base.plain import from_plain, to_plain
from torchcopylint.pages import Page
from torchcopylint.project.dependencies import Used
from torchcopylint.project.engine import Advanced, one_by_one, size_of
from torchcopylint.project.examined import Examined, Request, Seen, Shelves, died
from torchcopylint.project.exchange import Exchange, key_of, path_of
from torchcopylint.project.order import levels
from torchcopylint.project.shelf import Summarised
from torchcopylint.project.worker import ASK, READY, TELL

_PATIENCE = 5
"""Seconds for a process that has closed its output to end by itself, so that it is known how."""
_PACKAGE_PARENT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Without -P the directory in which the linter is started would be searched first, with whatever lies there.
_PROGRAM = "import sys; sys.path.append(sys.argv[1]); from torchcopylint.project.worker import main; main()"
COMMAND = ("-P", "-c", _PROGRAM)
"""The arguments for Python that start a worker."""


class CannotStart(Exception):
    """A worker did not come to life."""


class Died(Exception):
    """A worker ended in the middle of a file; the message says how."""


class Processes:
    """An engine with a number of worker processes."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs

    def __call__(
        self,
        requests: Sequence[Request],
        pages: Mapping[str, Page],
        advanced: Advanced,
        shelves: Shelves | None = None,
    ) -> Iterator[tuple[int, Seen]]:
        """Examine files, in any order. What no worker could be started for is examined in this process."""
        # Of those that none is waiting for the largest first, so that none of them is left for the end.
        height = levels(requests)
        todo = deque(sorted(range(len(requests)), key=lambda number: (height[number], -size_of(requests[number]))))
        answers: SimpleQueue[tuple[int, Seen] | None] = SimpleQueue()
        exchange = Exchange()
        workers = [_Worker(COMMAND, exchange) for _ in range(self._jobs)]
        threads = [
            threading.Thread(target=_ask_all, args=(worker, todo, requests, pages, answers), daemon=True)
            for worker in workers
        ]
        try:
            for thread in threads:
                thread.start()
            waiting = len(threads)
            while waiting:
                answer = _next(answers)
                if answer is None:
                    waiting -= 1
                    continue
                advanced(requests[answer[0]].path)
                yield answer
        finally:
            # Also when Ctrl-C, or whoever takes the answers, ends this in the middle.
            left = list(todo)
            todo.clear()
            exchange.end()
            for worker in workers:
                worker.end()
            for thread in threads:
                thread.join()
        for number, seen in one_by_one([requests[number] for number in left], pages, advanced, shelves):
            yield left[number], seen


def _next(answers: SimpleQueue[tuple[int, Seen] | None]) -> tuple[int, Seen] | None:
    """Wait for the next answer. It is waited for in pieces, since on Windows Ctrl-C does not end a wait."""
    while True:
        try:
            return answers.get(timeout=0.5)
        except Empty:
            continue


def _ask_all(
    worker: _Worker,
    todo: deque[int],
    requests: Sequence[Request],
    pages: Mapping[str, Page],
    answers: SimpleQueue[tuple[int, Seen] | None],
) -> None:
    """What a thread does: ask a worker for one file after the other, until none is left or it does not start."""
    try:
        while True:
            try:
                number = todo.popleft()
            except IndexError:
                return
            try:
                answers.put((number, worker.ask(requests[number])))
            except CannotStart:
                todo.append(number)
                return
            except Died as error:
                answers.put((number, Seen(died(requests[number], str(error), pages))))
    finally:
        worker.end()
        answers.put(None)


class _Worker:
    """A worker process, started when it is first asked and again after it has died."""

    def __init__(self, command: Sequence[str], exchange: Exchange) -> None:
        self._command = command
        self._exchange = exchange
        self._process: subprocess.Popen[bytes] | None = None
        self._over = False
        self._lock = threading.Lock()

    def ask(self, request: Request) -> Seen:
        """What a file came to. Raises `CannotStart` and `Died`."""
        key = key_of(request.root, request.limits, request.path)
        # Before there is a process: who uses the file waits for it, however long that takes to start.
        self._exchange.begin(self, key)
        try:
            return self._examined(self._process or self._start(), request, key)
        finally:
            self._exchange.done(self)

    def _examined(self, process: subprocess.Popen[bytes], request: Request, key: str) -> Seen:
        try:
            _write(process, to_plain(request))
            return self._answer(process)
        except (OSError, ValueError, TypeError, LookupError):
            self._process = None
            self._exchange.lose(key)
            raise Died(_ending(process)) from None

    def _answer(self, process: subprocess.Popen[bytes]) -> Seen:
        """Talk with the process until it answers. Raises many things if it does not, or talks nonsense."""
        assert process.stdout is not None
        told: list[Summarised] = []
        while True:
            kind, *what = json.loads(process.stdout.readline())
            if kind == ASK:
                _write(process, self._exchange.ask(self, *what))
            elif kind == TELL:
                _write(process, self._exchange.tell_all(self, [(key, known) for key, known in what[0]]))
                told += [Summarised(path_of(key), known.partition(" ")[2]) for key, known in what[0]]
            else:
                examined, used = what
                return Seen(from_plain(Examined, examined), None, from_plain(tuple[Used, ...], used), tuple(told))

    def end(self) -> None:
        """End the process, for good."""
        with self._lock:
            self._over = True
            if self._process is not None:
                self._process.kill()
                self._process.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._over:
                raise CannotStart
            try:
                process = subprocess.Popen(
                    [sys.executable, *self._command, _PACKAGE_PARENT],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    # Ctrl-C is for the process that was started by the user; it ends this one.
                    start_new_session=True,
                )
            except OSError:
                raise CannotStart from None
            self._process = process
        assert process.stdout is not None
        if process.stdout.readline() != READY:
            process.kill()
            process.wait()
            raise CannotStart
        return process


def _write(process: subprocess.Popen[bytes], what: Any) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps(what).encode() + b"\n")
    process.stdin.flush()


def _ending(process: subprocess.Popen[bytes]) -> str:
    """How a process ended that does not answer any more."""
    try:
        code = process.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        code = process.wait()
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"signal {signal.Signals(-code).name}"
    except ValueError:
        return f"signal {-code}"
