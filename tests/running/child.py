"""Executes programs that arrive on standard input, one JSON object a line, and answers with one JSON object a line.

A script of its own, and the only place in the page tests that imports torch: it does so once, then forks a process
for each program, so that a grad mode, a warning filter or a random state that one program leaves behind never
reaches the next. Where there is no `os.fork`, it executes the programs one after the other and puts those states back.

Request: `{"code": "...", "seed": 0, "cuda": false}`; without `cuda`, a GPU is hidden from the program.
Answer: `{"printed": "...", "warnings": [[category, text], ...], "raised": null}` where `raised` may be
`[type, line, text]`; `line` is the innermost line of the program itself, or 0.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import traceback
import warnings
from typing import Any

import numpy as np
import torch

FILENAME = "<example>"
SECONDS_BEFORE_KILL = 60
"""A guard against programs that hang; no example comes near it."""


def warm() -> None:
    """Make torch import what it imports lazily, and let it use one thread, since only one survives a fork.

    Nothing more where there is a GPU: autograd begins a thread for it with the first backward, and is lost to forks.
    """
    torch.set_num_threads(1)
    if torch.cuda.is_available():
        return
    layer = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    layer(torch.from_numpy(np.zeros((1, 2), dtype=np.float32))).sum().backward()
    optimizer.step()
    repr(layer.weight)


def execute(code: str, seed: int, cuda: bool) -> dict[str, Any]:
    """Run one program as `__main__` and return the answer described above."""
    if not cuda:
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    printed = io.StringIO()
    raised: list[object] | None = None
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(printed):
        warnings.simplefilter("always")
        torch.manual_seed(seed)
        np.random.seed(seed)
        try:
            exec(compile(code, FILENAME, "exec"), {"__name__": "__main__"})
        except Exception as error:  # whatever a program raises is the answer
            frames = traceback.extract_tb(error.__traceback__)
            lines = [frame.lineno or 0 for frame in frames if frame.filename == FILENAME]
            raised = [type(error).__name__, lines[-1] if lines else 0, str(error)]
    distinct = dict.fromkeys((warning.category.__name__, str(warning.message)) for warning in caught)
    return {"printed": printed.getvalue(), "warnings": [list(pair) for pair in distinct], "raised": raised}


def execute_forked(code: str, seed: int, cuda: bool) -> dict[str, Any]:
    """`execute` in a process of its own. A process that dies is an answer too: it raised `Died`."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        import signal

        signal.alarm(SECONDS_BEFORE_KILL)
        os.close(reader)
        with os.fdopen(writer, "w", encoding="utf-8") as pipe:
            json.dump(execute(code, seed, cuda), pipe)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.waitstatus_to_exitcode(status) != 0 or not text:
        return {"printed": "", "warnings": [], "raised": ["Died", 0, f"exit status {status}"]}
    answer: dict[str, Any] = json.loads(text)
    return answer


def execute_here(code: str, seed: int, cuda: bool) -> dict[str, Any]:
    """`execute` in this process, with the global states of torch that a program can change put back afterwards."""
    torch.set_warn_always(True)
    dtype = torch.get_default_dtype()
    try:
        return execute(code, seed, cuda)
    finally:
        torch.set_grad_enabled(True)
        torch.set_default_dtype(dtype)


def main() -> None:
    """Answer every request until standard input ends. `--here` forbids forking."""
    warm()
    run = execute_forked if hasattr(os, "fork") and "--here" not in sys.argv else execute_here
    print(json.dumps({"torch": torch.__version__, "cuda": torch.cuda.is_available()}), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(run(request["code"], request["seed"], request["cuda"])), flush=True)


if __name__ == "__main__":
    main()
