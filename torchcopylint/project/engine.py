"""What examines the files of a run. This one does it here and now; others use processes or other machines."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol, TypeAlias

from torchcopylint.base.collecting import rare_collections
from torchcopylint.pages import Page
from torchcopylint.project.examined import Projects, Request, Seen, Shelves, examine_file
from torchcopylint.project.order import best_order

Advanced: TypeAlias = Callable[[str], None]
"""Called with the path of each file when its turn comes."""


class Engine(Protocol):
    """From requests to what each came to, by its number among them, in any order; every request is answered once."""

    def __call__(
        self,
        requests: Sequence[Request],
        pages: Mapping[str, Page],
        advanced: Advanced,
        shelves: Shelves | None = None,
        /,
    ) -> Iterator[tuple[int, Seen]]:
        """`shelves` know summaries of earlier runs; where it is told, those of this one are handed out."""


ChooseEngine: TypeAlias = Callable[[Sequence[Request]], Engine]
"""Says what is to examine these files."""


class EngineError(Exception):
    """The files cannot be examined in the way that was asked for; the message says why."""


WORTH = 500_000
"""Bytes of source below which the time that processes take to start is longer than the time they save (measured on two
cores: a worker starts in the time of 80,000 bytes)."""


def one_by_one(
    requests: Sequence[Request], pages: Mapping[str, Page], advanced: Advanced, shelves: Shelves | None = None
) -> Iterator[tuple[int, Seen]]:
    """Examine one file after the other in this process, those first that others use: so few are open at a time."""
    projects = Projects(requests, shelves=shelves)
    with rare_collections():
        for number in best_order(requests):
            advanced(requests[number].path)
            yield number, examine_file(requests[number], pages, projects)


def serial(requests: Sequence[Request]) -> Engine:
    """Choose `one_by_one`, whatever there is to do."""
    return one_by_one


def engine_for(jobs: int | None, requests: Sequence[Request]) -> Engine:
    """What examines these files with at most `jobs` processes; `None` decides by what there is to do, and with what."""
    if jobs is None:
        jobs = available() if _worth_it(requests) else 1
    jobs = min(jobs, len(requests))
    if jobs < 2 or not sys.executable:
        return one_by_one
    from torchcopylint.project.processes import Processes  # not needed by runs of few files

    return Processes(jobs)


def available() -> int:
    """How many processors this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def _worth_it(requests: Sequence[Request]) -> bool:
    total = 0
    for request in requests:
        total += size_of(request)
        if total >= WORTH:
            return True
    return False


def size_of(request: Request) -> int:
    """The size of a file in bytes; 0 for one that is skipped, or cannot be looked at."""
    try:
        size = os.stat(request.path).st_size
    except (OSError, ValueError):
        return 0
    return size if size <= request.limits.max_file_size else 0
