"""Puts a script together and finds the steps of the witness in it again."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence

from torchcopylint.base.finding import Finding, Span
from torchcopylint.verify.model import Mark
from torchcopylint.verify.slicing.source import span_of

_NAMES = re.compile(r"`([^`]+)`")
_PRELUDE = """\
from __future__ import annotations

import random
import types

import numpy as np
import torch

random.seed({seed})
np.random.seed({seed})
torch.manual_seed({seed})
"""


def names_spoken(text: str) -> list[str]:
    """The user's names that a message speaks of."""
    found: list[str] = _NAMES.findall(text)
    return found


def prelude(seed: int) -> str:
    """The first lines of every script."""
    return _PRELUDE.format(seed=seed)


def assemble(before: str, kept: Sequence[ast.stmt], after: str, lines: tuple[str, ...]) -> tuple[str, list[Placed]]:
    """The text of a script: what stands before the user's statements, those, and what drives them.

    Also gives where each node of the user's file stands in the script.
    """
    module = ast.Module(list(kept), [])
    body = ast.unparse(module)
    head = before.rstrip("\n") + "\n\n\n"
    text = f"{head}{body}\n\n\n{after}" if after else f"{head}{body}\n"
    again = ast.parse(body)
    offset = head.count("\n")
    return text, list(_placed(module, again, lines, tuple(body.split("\n")), offset))


class Placed:
    """A node's span in the user's file and in the script."""

    __slots__ = ("here", "there")

    def __init__(self, there: Span, here: Span) -> None:
        self.there = there
        self.here = here


def _placed(
    old: ast.AST, new: ast.AST, lines: tuple[str, ...], written: tuple[str, ...], offset: int
) -> Iterator[Placed]:
    """Walks two trees of one shape side by side. Where the shapes part, what is below is left out."""
    pending = [(old, new)]
    while pending:
        one, two = pending.pop()
        if type(one) is not type(two):
            continue
        there, here = span_of(one, lines), span_of(two, written)
        if there is not None and here is not None:
            yield Placed(there, _moved(here, offset))
        parts, others = list(ast.iter_child_nodes(one)), list(ast.iter_child_nodes(two))
        if len(parts) == len(others):
            pending.extend(zip(parts, others, strict=True))


def _moved(span: Span, rows: int) -> Span:
    start, end = span.start, span.end
    return Span(type(start)(start.row + rows, start.column), type(end)(end.row + rows, end.column))


def marks_of(finding: Finding, placed: Sequence[Placed]) -> tuple[Mark, ...] | None:
    """The steps of a finding, in the script; `None` if one of them is not in it."""
    steps = [(step.role, step.message, step.span) for step in finding.steps if step.filename == finding.filename]
    if not steps:
        from torchcopylint.base.finding import Role

        steps = [(Role.HERE, finding.message, finding.span)]
    marks = []
    for role, message, span in steps:
        found = _at(span, placed)
        if found is None:
            return None
        names = tuple(dict.fromkeys(names_spoken(message)))
        marks.append(
            Mark(role, found.start.row, found.end.row, found.start.column, found.end.column, span.start.row, names)
        )
    return tuple(marks)


def _at(span: Span, placed: Sequence[Placed]) -> Span | None:
    """Where the smallest node that covers a span stands in the script."""
    best: Placed | None = None
    for item in placed:
        covers = item.there.start <= span.start and span.end <= item.there.end
        if covers and (best is None or _smaller(item.there, best.there)):
            best = item
    return best.here if best is not None else None


def _smaller(one: Span, two: Span) -> bool:
    return two.start <= one.start and one.end <= two.end and one != two
