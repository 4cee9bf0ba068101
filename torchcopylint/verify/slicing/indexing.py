"""What an index along the second dimension, or a refusal of all others, says of the dimensions of a tensor."""

from __future__ import annotations

import ast
from collections.abc import Iterator

_TAKING = frozenset({"gather", "scatter", "scatter_", "scatter_add", "scatter_add_"})
_SAME = frozenset({"long", "data", "detach", "to", "cuda", "cpu", "type", "int", "contiguous", "clone"})
"""Methods and attributes that change nothing about the dimensions."""


def widened(call: ast.Call) -> ast.expr | None:
    """What has one dimension if the rows of a matrix are asked for one item each: `labels`, in
    `scores.gather(1, labels.unsqueeze(1))` and `out.scatter_(1, labels.view(-1, 1), 1)`."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    of_module = isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == "torch"
    given = [*call.args[of_module:], *(word.value for word in call.keywords if word.arg in ("dim", "index"))][:2]
    if name not in _TAKING or len(given) < 2 or not _is_one(given[0]):
        return None
    node = _without_same(given[1])
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        numbers = [ast.unparse(argument) for argument in node.args]
        if (node.func.attr, numbers) in (("unsqueeze", ["1"]), ("view", ["-1", "1"]), ("reshape", ["-1", "1"])):
            return _without_same(node.func.value)
    if isinstance(node, ast.Subscript) and ast.unparse(node.slice) == "(:, None)":
        return _without_same(node.value)
    return None


def _is_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value == 1


def _without_same(node: ast.expr) -> ast.expr:
    while True:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SAME:
            node = node.func.value
        elif isinstance(node, ast.Attribute) and node.attr in _SAME:
            node = node.value
        else:
            return node


def dimensions_told(test: ast.expr, *, met: bool) -> Iterator[tuple[ast.expr, int]]:
    """What has to have so many dimensions for a condition to be met, or not to be: `x`, in `x.dim() == 2`."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from dimensions_told(test.operand, met=not met)
    elif isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) == met:
        for part in test.values:
            yield from dimensions_told(part, met=met)
    elif isinstance(test, ast.Compare) and len(test.ops) == 1:
        operator, other = test.ops[0], test.comparators[0]
        whole = _counted(test.left)
        if isinstance(operator, ast.In | ast.NotIn):
            other = next(iter(getattr(other, "elts", ())), other)
        same = isinstance(operator, ast.Eq | ast.In) == met and isinstance(
            operator, ast.Eq | ast.NotEq | ast.In | ast.NotIn
        )
        if same and whole is not None and isinstance(other, ast.Constant) and type(other.value) is int:
            yield whole, other.value


def _counted(node: ast.expr) -> ast.expr | None:
    """What an expression tells the number of dimensions of."""
    if isinstance(node, ast.Attribute) and node.attr == "ndim":
        return node.value
    if not isinstance(node, ast.Call):
        return None
    if isinstance(node.func, ast.Attribute) and node.func.attr in ("dim", "ndimension") and not node.args:
        return node.func.value
    if isinstance(node.func, ast.Name) and node.func.id == "len" and len(node.args) == 1:
        shape = node.args[0]
        if isinstance(shape, ast.Call) and isinstance(shape.func, ast.Attribute) and not shape.args:
            return shape.func.value if shape.func.attr == "size" else None
        return shape.value if isinstance(shape, ast.Attribute) and shape.attr == "shape" else None
    return None
