"""What a command costs: processor time and wall time in seconds, peak memory in megabytes, with all its children."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple


class Cost(NamedTuple):
    """What one run of a command took. `peak` is that of its largest process."""

    cpu: float
    wall: float
    peak: float


_CHILD = """
import resource, subprocess, sys, time
start = time.perf_counter()
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
wall = time.perf_counter() - start
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, wall, used.ru_maxrss)
"""


def cost(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Cost:
    """Run a command once. It runs below a process of its own, since peaks are told of all children together."""
    whole = [sys.executable, "-S", "-c", _CHILD, *command]
    answer = subprocess.check_output(whole, text=True, env={**os.environ, **(environment or {})})
    cpu, wall, peak = (float(part) for part in answer.split())
    return Cost(cpu, wall, peak / (1024 * 1024 if sys.platform == "darwin" else 1024))


def side_by_side(commands: Mapping[str, Sequence[str]], rounds: int) -> dict[str, Cost]:
    """The median cost of each command over a number of rounds, in each of which all run once, one after the other, so
    that what else the machine does meets all of them."""
    runs: dict[str, list[Cost]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            runs[name].append(cost(command))
    return {name: Cost(*(median(values) for values in zip(*each, strict=True))) for name, each in runs.items()}
