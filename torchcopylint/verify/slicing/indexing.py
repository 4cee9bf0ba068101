"""What an index along the second dimension says of the tensor that it was made of."""

from __future__ import annotations

import ast

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
