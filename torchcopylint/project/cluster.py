"""Examining files on a Dask cluster, through its futures.

The sources travel with the tasks, so that the workers need this linter and nothing of the file system. A task whose
worker is lost is done again elsewhere, by Dask. The files of one over which several workers were lost are tried one by
one in the end, so that it is known which of them ends workers.
"""

from __future__ import annotations

import json
import logging
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

from torchcopylint.base.plain import from_plain, to_plain
from torchcopylint.pages import Page, load_pages
from torchcopylint.project.dependencies import Used
from torchcopylint.project.engine import Advanced, EngineError
from torchcopylint.project.examined import Examined, Projects, Request, Seen, Shelves, content, died, examine_bytes
from torchcopylint.project.order import best_order
from torchcopylint.project.store import edition

BATCH = 300_000
"""Bytes of source in one task: about two seconds of work, beside which the cost of a task is nothing."""
_AHEAD = 4
"""Tasks handed out for each thread of the cluster, so that none waits and few sources are on the way at once."""
_PATIENCE = "10s"
_LOST = "the cluster lost its workers over it"


def examine_batch(batch: list[tuple[Any, bytes]], wanted: str) -> list[str]:
    """What runs on a worker: requests with the contents of their files in, what they came to as JSON out.

    Raises `EngineError` if the worker's linter is not the `wanted` edition.
    """
    here = edition()
    if here != wanted:
        raise EngineError(
            f"the workers have torchcopylint {here}, and here it is {wanted}; install the same everywhere"
        )
    pages = load_pages()
    requests: list[Request] = [from_plain(Request, request) for request, _ in batch]
    projects = Projects(requests)
    contents = [data for _, data in batch]
    seen = {n: examine_bytes(contents[n], requests[n], pages, projects) for n in best_order(requests)}
    return [
        json.dumps([to_plain(seen[number].examined), to_plain(seen[number].used)], separators=(",", ":"))
        for number in range(len(batch))
    ]


class Cluster:
    """An engine on the cluster whose scheduler has this address."""

    def __init__(self, address: str) -> None:
        self._address = address

    def __call__(
        self,
        requests: Sequence[Request],
        pages: Mapping[str, Page],
        advanced: Advanced,
        shelves: Shelves | None = None,
    ) -> Iterator[tuple[int, Seen]]:
        """Examine files, in any order. Summaries stay where they are made. Raises `EngineError`."""
        if not requests:
            return
        distributed = _distributed()
        client = self._connect(distributed)
        try:
            yield from _Run(client, distributed, requests, pages).answers(advanced)
        finally:
            client.close(timeout=1)

    def _connect(self, distributed: Any) -> Any:
        try:
            return distributed.Client(self._address, timeout=_PATIENCE, set_as_default=False)
        except (OSError, ValueError) as error:
            raise EngineError(f"no Dask scheduler answers at {self._address}: {error}") from None


def _distributed() -> Any:
    try:
        distributed = import_module("distributed")
    except ImportError:
        raise EngineError("--scheduler needs Dask: pip install 'torchcopylint[dask]'") from None
    # What it has to say of lost workers is in the result.
    logging.getLogger("distributed").setLevel(logging.CRITICAL + 1)
    return distributed


class _Run:
    """The files of one run on a cluster."""

    def __init__(self, client: Any, distributed: Any, requests: Sequence[Request], pages: Mapping[str, Page]) -> None:
        self._client = client
        self._distributed = distributed
        self._requests = requests
        self._pages = pages
        self._edition = edition()
        self._waiting = deque(range(len(requests)))
        # Files whose tasks have lost workers. Dask blames all tasks that a lost worker had, also those that only waited
        # there, so each is tried again with nothing else under way.
        self._suspects: deque[int] = deque()
        self._batches: dict[Any, list[int]] = {}

    def answers(self, advanced: Advanced) -> Iterator[tuple[int, Seen]]:
        """What each file came to, as the answers come in."""
        done = self._distributed.as_completed(loop=self._client.loop)
        room = max(sum(self._client.nthreads().values()), 1) * _AHEAD
        while self._waiting or self._suspects or self._batches:
            while len(self._batches) < room and self._waiting:
                yield from self._hand_out(self._waiting, BATCH, done, advanced)
            if not self._batches and self._suspects:
                yield from self._hand_out(self._suspects, 1, done, advanced)
            if self._batches:
                for number, seen in self._answers_of(next(done)):
                    advanced(self._requests[number].path)
                    yield number, seen

    def _hand_out(self, source: deque[int], most: int, done: Any, advanced: Advanced) -> Iterator[tuple[int, Seen]]:
        """Hand out the next files, up to about `most` bytes, and answer for those that cannot be read."""
        batch: list[tuple[int, bytes]] = []
        size = 0
        while source and size < most:
            number = source.popleft()
            data = content(self._requests[number], self._pages)
            if isinstance(data, Seen):
                advanced(self._requests[number].path)
                yield number, data
            else:
                batch.append((number, data))
                size += len(data) + 1
        if batch:
            future = self._submit(batch)
            self._batches[future.key] = [number for number, _ in batch]
            done.add(future)

    def _submit(self, batch: list[tuple[int, bytes]]) -> Any:
        tasks = [(to_plain(self._requests[number]), data) for number, data in batch]
        return self._client.submit(examine_batch, tasks, self._edition, pure=False)

    def _answers_of(self, future: Any) -> list[tuple[int, Seen]]:
        """What the files of a task came to; none if they are to be handed out again."""
        numbers = self._batches.pop(future.key)
        if future.status == "finished":
            answers = [json.loads(line) for line in future.result()]
            return [
                (number, Seen(from_plain(Examined, examined), None, from_plain(tuple[Used, ...], used)))
                for number, (examined, used) in zip(numbers, answers, strict=True)
            ]
        error = future.exception() if future.status == "error" else None
        if isinstance(error, EngineError):
            raise error
        if not isinstance(error, self._distributed.KilledWorker):
            raise EngineError(f"the cluster failed: {error or f'the task is {future.status}'}")
        if self._alone(numbers):
            return [(number, Seen(died(self._requests[number], _LOST, self._pages))) for number in numbers]
        self._suspects.extend(numbers)
        return []

    def _alone(self, numbers: list[int]) -> bool:
        """Whether these were one file, tried with nothing else under way."""
        return len(numbers) == 1 and not self._batches and not self._waiting
