"""Programs that nobody wrote and that run: tensors, views, writes in place, helpers, loops, backward.

They are put together statement by statement, and each statement is executed at once: most of those that torch refuses
are left out again, and some end the program. So they are long enough to mean something, and what really happened is
known. Left out are the few forms in which what the engine says is known to be less than exact: conversions that return
the very object (`x.contiguous()`), of which a later `requires_grad_()` speaks, `detach_()`, and views that are made
while grad mode is off, which torch calls leaves that require grad, though no gradient reaches them.
"""

from __future__ import annotations

import contextlib
import io
import warnings
from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

import torch

HEADER = """import torch
import torch.nn.functional as F
from torch import nn
def act(x):
    return x.exp()
def bump(x):
    x.add_(1)
    return x
def turned(x):
    return x.t()
lin = nn.Linear(3, 3)
opt = torch.optim.SGD(lin.parameters(), lr=0.1)
lin(torch.rand(2, 3)).sum().backward()
"""
NEW = (
    *("{a}.exp()", "{a} * {b}", "{a} + {b}", "{a} @ {b}", "{a}.sigmoid()", "torch.relu({a})", "F.softmax({a}, dim=-1)"),
    *("{a} / ({b} + 2)", "{a} ** 2", "{a}.clone()", "{a}.tanh()", "{a} * 2", "{a} + 1", "lin({a})", "{a}.abs()"),
    *("torch.where({a} > 0.5, {a}, {b})", "torch.cat([{a}[:1], {b}[1:]])", "torch.stack([{a}[0], {b}[1], {a}[2]])"),
    *("{a}.detach().clone()", "F.relu({a})", "{a}.clamp(min=0.1)", "{a}.mul({b})", "{a} - {a}.mean()", "-{a}"),
    *("act({a})",),
)
SQUARES = (
    *NEW,
    *("{a}.detach()", "{a}.t()", "{a}.view(3, 3)", "{a}[:]", "bump({a})", "turned({a})", "[{a}, {b}][0]"),
)
ROWS = (
    *("{a}[0]", "{a}[:, 1]", "{a}.sum(0)", "{a}.diagonal()", "{a}.mean(dim=1)", "{a}[1].clone()", "{a}.select(0, 2)"),
    *("{a}.max(0).values", "{a}.norm(dim=0)"),
)
WRITES = (
    *("{t}.add_(1)", "{t}.mul_(0.5)", "{t} += 1", "{t} *= 2", "{a}.add_({b})", "{a}.mul_({b})", "{a} += {b}"),
    *("{a}[0] = 0", "{a}[0] = {v}", "{t}.zero_()", "{t}.relu_()", "{t}.sigmoid_()", "{a}.sub_({b})"),
    *("{t}.clamp_(0, 1)", "F.relu({a}, inplace=True)", "{a}[:, 0] += 1"),
)
LOSSES = (
    *("{a}.sum()", "{a}.mean()", "({a} * {b}).sum()", "F.mse_loss({a}, {b})", "{a}.pow(2).mean()", "{a}.exp().sum()"),
)
MADE = ("torch.rand(3, 3)", "torch.rand(3, 3, requires_grad=True)", "nn.Parameter(torch.rand(3, 3))")
COMMON = ("leaf Variable", "does not require grad")
"""What torch says of what goes wrong so often that hardly any program would get further."""


class Program(NamedTuple):
    """A program, the message and the line (1-based) of what it raised, or none and 0, and its tensors by name."""

    text: str
    message: str
    line: int
    tensors: dict[str, torch.Tensor]


class _Writer:
    """Puts one program together."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.squares: list[str] = []
        self.rows: list[str] = []
        self.losses: list[str] = []
        self.count = 0

    def _name(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def _filled(self, templates: tuple[str, ...]) -> str:
        row = self.random.choice(self.rows) if self.rows else f"{self.random.choice(self.squares)}[0]"
        a, b = self.random.choice(self.squares), self.random.choice(self.squares)
        target = row if self.random.random() < 0.25 and "[" not in row else a
        return self.random.choice(templates).format(a=a, b=b, v=row, t=target)

    def made(self) -> str:
        """A statement that makes a new tensor."""
        name = self._name("t")
        statement = f"{name} = {self.random.choice(MADE)}"
        self.squares.append(name)
        return statement

    def _bound(self, prefix: str, templates: tuple[str, ...], names: list[str]) -> str:
        name, expression = self._name(prefix), self._filled(templates)
        names.append(name)
        return f"{name} = {expression}"

    def _backward(self) -> str:
        loss = self.random.choice(self.losses) if self.losses and self.random.random() < 0.7 else self._filled(LOSSES)
        return f"({loss}).backward({'retain_graph=True' if self.random.random() < 0.2 else ''})"

    def _split(self) -> str:
        name = self._name("u")
        statement = f"{name}a, {name}b, {name}c = {self._filled(('{a}.unbind()', '{a}.unbind(1)'))}"
        self.rows += [f"{name}a", f"{name}b", f"{name}c"]
        return statement

    def simple(self) -> str:
        """A statement without a block."""
        drawn = self.random.random()
        if drawn < 0.36:
            return self._bound("t", SQUARES, self.squares)
        if drawn < 0.46:
            return self._bound("v", ROWS, self.rows)
        if drawn < 0.72:
            return self._filled(WRITES)
        if drawn < 0.77:
            return self._bound("s", LOSSES, self.losses)
        if drawn < 0.90:
            return self._backward()
        return self.made() if drawn < 0.96 else "opt.step()"

    def statement(self) -> str:
        """A statement, or a block of one or two."""
        drawn = self.random.random()
        if drawn > 0.14:
            return self.simple()
        if drawn > 0.10:
            return self._split()
        count = range(self.random.randint(1, 2))
        if drawn > 0.05:
            return "\n    ".join(["with torch.no_grad():", *(self._quiet() for _ in count)])
        return "\n    ".join(["for i in range(2):", *(self.simple() for _ in count)])

    def _quiet(self) -> str:
        """A statement for where grad mode is off."""
        return self._filled(WRITES) if self.random.random() < 0.5 else self._bound("t", NEW, self.squares)

    def names(self) -> tuple[list[str], ...]:
        """The names that are bound so far, to go back to."""
        return list(self.squares), list(self.rows), list(self.losses)


def program(seed: int) -> Program:
    """The program of a seed, executed."""
    writer = _Writer(seed)
    torch.manual_seed(seed)
    lines = [*HEADER.splitlines(), writer.made(), writer.made()]
    space: dict[str, Any] = {}
    exec("\n".join(lines), space)
    for _ in range(writer.random.randint(6, 16)):
        before = writer.names()
        statement = writer.statement()
        message, _ = _run(statement, space)
        if message and (any(said in message for said in COMMON) or not _is_of_autograd(message)):
            refused = writer.random.random() < 0.97
        else:
            refused = bool(message) and writer.random.random() < 0.1
        if refused:
            writer.squares, writer.rows, writer.losses = before
            # What it did before it was refused is done: the program is run again as a whole below.
            continue
        lines += statement.splitlines()
        if message:
            break
    return _whole(lines, [*writer.squares, *writer.rows])


def _whole(lines: list[str], names: list[str]) -> Program:
    """A program run from its start, cut off behind the line that raises."""
    space: dict[str, Any] = {}
    text = "\n".join([*lines, f"print({', '.join(names)})", ""])
    message, line = _run(text, space)
    if message:
        text = "".join(text.splitlines(keepends=True)[:line])
    return Program(text, message, line, {n: space[n] for n in names if isinstance(space.get(n), torch.Tensor)})


def _run(text: str, space: dict[str, Any]) -> tuple[str, int]:
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(compile(text, "program", "exec"), space)
        except RuntimeError as error:
            return str(error), max(_lines_of(error))
    return "", 0


def _lines_of(error: BaseException) -> Iterator[int]:
    """The lines of the program itself that an error went through; those of its helpers stand further up."""
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "program" and trace.tb_frame.f_code.co_name == "<module>":
            yield trace.tb_lineno
        trace = trace.tb_next


def _is_of_autograd(message: str) -> bool:
    return any(said in message for said in ("inplace", "second time", "leaf", "view"))
