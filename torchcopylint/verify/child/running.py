"""Runs one script, observed and guarded, in this process. Returns the answer as a line of JSON."""

from __future__ import annotations

import ast
import builtins
import contextlib
import gc
import io
import json
import os
import random
import sys
import warnings
from collections.abc import Callable
from typing import Any

import torch

from . import altered, altering, blank, chains, clock, compiled, drawn, guard, kernel
from .observe import EVERYTHING, Observer, Writes

try:
    import numpy
except ImportError:
    numpy = None  # type: ignore[assignment]
try:
    import resource
except ImportError:  # there are no such limits under Windows
    resource = None  # type: ignore[assignment]

MAY_BE_IMPORTED = frozenset(
    [
        "torch",
        "torchvision",
        "numpy",
        "copy",
        "math",
        "random",
        "collections",
        "functools",
        "itertools",
        "typing",
        "dataclasses",
        "contextlib",
        "time",
        "io",
        "__future__",
        "abc",
        "enum",
        "operator",
        "statistics",
        "string",
        "re",
        "json",
        "warnings",
        "types",
        "numbers",
        "datetime",
        "heapq",
        "bisect",
        "textwrap",
        "typing_extensions",
        "cmath",
        "fractions",
        "decimal",
        "uuid",
        "array",
        "inspect",
        "weakref",
        "pprint",
    ]
)
"""Top names a script may import. This is for tidiness, not safety: `torch.os` is one attribute away."""
MAY_NOT = ("torch.multiprocessing", "torch.distributed", "torch.hub", "torch.utils.cpp_extension", "torch.package")
WARMING = """\
import copy
import torch
from torch import nn, optim
torch.manual_seed(0)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(8, 2))
        self.drop = nn.Dropout(0.1)
    def forward(self, x):
        return self.drop(self.layers(x))
net = Net()
optimizers = [optim.SGD(net.parameters(), lr=0.1, momentum=0.9), optim.Adam(net.parameters(), lr=0.1)]
data = torch.utils.data.TensorDataset(torch.randn(4, 1, 4, 4), torch.arange(4) % 2)
kept = []
for x, y in torch.utils.data.DataLoader(data, batch_size=2, shuffle=True):
    for optimizer in optimizers:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y) + nn.functional.mse_loss(net(x)[:, 0], torch.zeros(2))
        loss.backward()
        optimizer.step()
    print(f"{loss.item():.2f}")
    kept.append(loss.detach())
with torch.no_grad():
    best = copy.deepcopy(net.state_dict())
"""
"""What scripts do, done once before they are forked: much is imported, compiled or looked up when it is first used."""
_WITH_GPU = ("loss.backward()", "optimizer.step()")
"""Of these, what would ask a GPU, or begin autograd's thread for it: no fork could use either again (torch 2.11)."""
MOST_PRINTED = 20000
THRESHOLDS = (20000, 10, 10)
"""Of the collector of cycles: most scripts end before it would find anything."""
_MUCH = 1 << 16
"""So many more kilobytes may stay behind scripts before they are collected."""
MOST_SECONDS = 4
"""Scripts that share a process may take so many times the processor time of one, all together."""


def _exercise(*, gpu: bool) -> None:
    """Run what scripts do, as it is and altered. Should it fail, forks begin cold, and nothing is lost."""
    lines = [line for line in WARMING.splitlines() if not (gpu and line.strip() in _WITH_GPU)]
    last = len(lines)
    mark = {"row": last, "end_row": last, "column": 0, "end_column": 0, "keeps": True}
    told = {
        "script": "\n".join(lines),
        "marks": [mark],
        "seed": 0,
        "device": "cpu",
        "quiet": False,
        "few": True,
        "within": [],
    }
    for kind in ("", "copies"):
        request = {**told, "alter": {"kind": kind, "marks": [0]}, "looks": sorted(EVERYTHING)}
        _run(request, lambda: (guard.Guard((), ""), []))
    sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__
    if gpu:
        torch.set_default_device("cpu")
        torch.set_default_device(None)


def _only_processor(device: str) -> bool:
    """Whether scripts run on the processor, and torch sees nothing else here. Does not ask for what they will use:
    what asks the driver keeps its forks from using it."""
    return device == "cpu" and not any(kind.is_available() for kind in (torch.cuda, torch.xpu, torch.backends.mps))


def warm(device: str, *, forks: bool) -> dict[str, Any]:
    """Import what torch imports lazily, and use one thread, as only one survives a fork. Returns the hello.

    `forks`: this process runs many scripts, each in a fork, and what one of them would do first is done here. Where
    there is a GPU, without backward: autograd has a thread for each, which begins with the first backward and is not
    there in a fork (torch 2.11 with a GPU: backward after a fork raises, and so does whatever asks for the GPU).
    """
    torch.set_num_threads(1)
    blank.memory()
    alone = _only_processor(device)
    if alone:
        _seed_one_kind()
    if forks:
        _exercise(gpu=not alone)
    if numpy is not None:
        torch.from_numpy(numpy.zeros(2)).sum()
        numpy.random.seed(0)
    guard.readable_roots()
    kernel.warm()
    # A collection in a fork would touch, and so copy, every page of what is loaded.
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    return {"torch": str(torch.__version__), "python": sys.version.split()[0]}


class Printed(io.StringIO):
    """Standard output of a script, up to a length."""

    def write(self, text: str) -> int:
        """Keep what still fits; the answer is as if all of it had been written."""
        if self.tell() < MOST_PRINTED:
            super().write(text[:MOST_PRINTED])
        return len(text)


def _seed(device: str, seed: int) -> None:
    """Set the seeds of whatever draws numbers there."""
    # `torch.manual_seed` also asks every kind of device.
    (torch.default_generator if device == "cpu" else torch).manual_seed(seed)
    random.seed(seed)
    if numpy is not None:
        numpy.random.seed(seed)


def _seed_one_kind() -> None:
    """Where there is only the processor, no seed is kept for other devices: that would take down where it was set."""
    torch.cuda.manual_seed_all = torch.xpu.manual_seed_all = _nothing  # type: ignore[assignment]


def _nothing(*_: Any) -> None:
    pass


def _steady() -> None:
    """Make the same of what a script could find otherwise in each run: the time, and what nobody has written."""
    clock.Clock().install()
    blank.arrays()
    drawn.install()


class _Resident:
    """The kilobytes that this process has in memory; where the system does not tell, the most that it ever had."""

    def __init__(self) -> None:
        self._told = -1
        with contextlib.suppress(OSError):
            # Before the guard: nothing is opened after it.
            self._told = os.open("/proc/self/statm", os.O_RDONLY)

    def now(self) -> int:
        """As of now. A script may have closed what tells."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            return int(os.pread(self._told, 100, 0).split()[1]) * (os.sysconf("SC_PAGE_SIZE") // 1024)
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss if resource is not None else 0


def _protect(directory: str, seconds: float, request: dict[str, Any]) -> tuple[guard.Guard, list[str]]:
    """`guard.protect`, after a GPU that scripts may use has been reached: that loads libraries and sets variables."""
    if request["device"] != "cpu" and torch.cuda.is_available():
        torch.cuda.init()  # type: ignore[no-untyped-call]
        torch.cuda.device_count()
    return guard.protect(directory, seconds, int(request["memory"]), device=request["device"])


def run(request: dict[str, Any], directory: str) -> str:
    """Instrument, guard and execute. The result is one JSON object; its `failed` says why there are no observations."""

    def protected() -> tuple[guard.Guard, list[str]]:
        _steady()
        return _protect(directory, float(request["seconds"]), request)

    return _run(request, protected)


def series(directory: str) -> Callable[[dict[str, Any]], str]:
    """The same for scripts one after the other in one process, which is guarded when the first one comes.

    A request with `ahead` runs nothing, has the process guarded before that, and is answered by nothing.
    """
    guarded: list[tuple[guard.Guard, list[str]]] = []
    resident = _Resident()
    kept = [resident.now()]

    def protected(request: dict[str, Any]) -> tuple[guard.Guard, list[str]]:
        if not guarded:
            guarded.append(_protect(directory, float(request["seconds"]) * MOST_SECONDS, request))
        return guarded[0]

    def protected_anew(request: dict[str, Any]) -> tuple[guard.Guard, list[str]]:
        protection, in_force = protected(request)
        protection.blocked = []
        _steady()
        guard.alarm(float(request["seconds"]))
        guard.bound(float(request["processor"]))
        return protection, in_force

    def one(request: dict[str, Any]) -> str:
        if request.get("ahead"):
            protected(request)
            guard.alarm(0)
            return ""
        torch.set_grad_enabled(True)
        torch.set_default_dtype(torch.float32)
        torch.set_default_device(None)
        try:
            return _run(request, lambda: protected_anew(request))
        finally:
            guard.alarm(0)
            guard.bound(0)
            if resident.now() - kept[-1] > _MUCH:
                gc.collect()  # the next ones have the same memory to use
                kept.append(resident.now())

    return one


def _run(request: dict[str, Any], protect: Callable[[], tuple[guard.Guard, list[str]]]) -> str:
    try:
        head, numbered = compiled.parsed(request["script"], int(request.get("fixed", 0)))
        marks = request["marks"]
        marked = [numbered.numbers(mark) for mark in marks]
        kind, at = request["alter"]["kind"], [marks[index] for index in request["alter"]["marks"]]
        # Before anything is rewritten: what the marked statements name.
        named = {n: chains.chains_of(numbered.statements[n]) for numbers in marked for n in numbers}
        replaced = altering.alter(numbered, kind, at)
        codes = compiled.code_of(head, numbered, request["script"], kind, at, replaced)
    except (SyntaxError, ValueError, RecursionError, altering.CannotAlter) as refused:
        return json.dumps({"failed": f"{type(refused).__name__}: {refused}"[:300]})
    if request["device"].startswith("cuda") and not torch.cuda.is_available():
        return json.dumps({"failed": "no CUDA device"})
    rows = [(mark["row"], mark["end_row"]) for mark in marks]
    observer = Observer(marked, rows, [bool(mark["keeps"]) for mark in marks])
    for passes, numbers in zip(observer.passes, marked, strict=True):
        if numbers and all(map(numbered.is_made_first, numbers)):
            passes.append(0)
    observer.looks, observer.within = frozenset(request["looks"]), frozenset(request["within"])
    observer.quiet = bool(request["quiet"])
    observer.retains = kind == "retain"
    observer.attention.few = bool(request["few"])
    observer.attention.always = observer.retains or not observer.attention.few
    observer.chains = named
    observer.assignments = {
        number: statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        for number, statement in enumerate(numbered.statements)
        if isinstance(statement, (ast.Assign, ast.AugAssign, ast.AnnAssign))
    }
    _seed(request["device"], int(request["seed"]))
    dumps = json.dumps  # the script may patch the module
    protection, in_force = protect()
    if observer.quiet:
        altered.spoil_pinned()
    printed = Printed()
    names = {"__name__": "__main__", "__builtins__": _builtins(protection), "_tcl_": observer}
    error: BaseException | None = None
    sys.stdout, sys.stderr = printed, io.StringIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with altered.around(kind), Writes(observer) if "writes" in observer.looks else contextlib.nullcontext():
                for code in codes:
                    exec(code, names)
        except BaseException as caught:  # a script may raise anything, SystemExit included
            error = caught
        answer = observer.finish(error, names)
    answer["printed"] = printed.getvalue()
    answer["ended"] = type(error).__name__ if error is not None else ""
    answer["blocked"] = protection.blocked
    answer["protections"] = in_force
    answer["marked"] = [bool(numbers) for numbers in marked]
    return dumps(answer)


def _builtins(protection: guard.Guard) -> dict[str, Any]:
    """Builtins whose `import` asks the list, when a script asks; modules that it imports have the usual one."""
    importing = builtins.__import__

    def allowed(name: str, *rest: Any, **named: Any) -> Any:
        top = name.partition(".")[0]
        if top not in MAY_BE_IMPORTED or name.startswith(MAY_NOT):
            protection.blocked.append(f"import {name}"[:80])
            raise guard.Blocked(f"refused by the sandbox: import {name}")
        return importing(name, *rest, **named)

    return {**vars(builtins), "__import__": allowed, "input": _no_input, "breakpoint": _no_input}


def _no_input(*_: Any) -> str:
    raise EOFError("there is nobody to ask")
