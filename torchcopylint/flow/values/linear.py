"""Bounds of slices as sums of names and numbers, so that `x[1:n]` and `x[: n - 1]` can be compared."""

from __future__ import annotations

import ast
from collections import Counter

from torchcopylint.flow.model import Part

_SIZE = ":"
"""Stands for the size of the dimension, from which negative bounds are counted."""
MAX_SHIFT = 8
"""A length that has a name is more than so many."""


def shift(one: Part, two: Part) -> int | None:
    """How far behind a slice another one begins, where both are equally long, and overlap without being the same.

    `None` where that is not so, or not known. A length that is told by names is taken for more than a small shift.
    """
    bounds = [_terms(part.value, 0) for part in (one, two)] + [_terms(part.upper, None) for part in (one, two)]
    if any(bound is None for bound in bounds):
        return None
    starts, others, ends, other_ends = (bound or {} for bound in bounds)
    apart, length = _minus(others, starts), _minus(ends, starts)
    if set(apart) != {""} or _minus(other_ends, others) != length:
        return None
    distance, known = apart[""], set(length) <= {""}
    most = length.get("", 0) - 1 if known else MAX_SHIFT
    return distance if abs(distance) <= most else None


def _terms(bound: object, default: int | None) -> dict[str, int] | None:
    """A bound as a number (by an empty name) and how often each name is in it; `None` if it is untold."""
    if bound is None:
        return {_SIZE: 1} if default is None else {}
    if isinstance(bound, int):
        return _minus({_SIZE: int(bound < 0), "": bound}, {})
    if not isinstance(bound, str):
        return None
    try:
        found = _sum(ast.parse(bound, mode="eval").body)
    except (SyntaxError, ValueError, RecursionError):
        return None
    return _minus(found, {_SIZE: -1} if bound.startswith("-") else {})


def _sum(node: ast.expr) -> dict[str, int]:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return {"": int(node.value)}
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return _minus({}, _sum(node.operand))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        left, right = _sum(node.left), _sum(node.right)
        return _minus(left, right if isinstance(node.op, ast.Sub) else _minus({}, right))
    return {ast.unparse(node): 1}


def _minus(left: dict[str, int], right: dict[str, int]) -> dict[str, int]:
    """The difference of two sums, without what is in it no times."""
    found = Counter(left)
    found.subtract(right)
    return {name: times for name, times in found.items() if times}
