"""Whether what a method makes share memory is made anew before each use, so that nobody uses what was written since.

The assumption that somebody writes what is shared, and then uses what was kept of it, is not one that a file makes in
which every method that uses it has called the one that shares first.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence

from torchcopylint.verify.slicing.source import FunctionNode, Scope, walked


def is_refreshed(scopes: Sequence[Sequence[Scope]], rows: Collection[int]) -> bool:
    """Whether the steps on some rows stand in a method that sets a field, or its parts, and all other methods of its
    class that use the field call that method before. `scopes` are those around each step."""
    for chain in scopes:
        methods = [scope for scope in chain if isinstance(scope, FunctionNode)]
        classes = [scope for scope in chain if isinstance(scope, ast.ClassDef)]
        if len(methods) != 1 or len(classes) != 1 or methods[0] not in classes[0].body:
            return False
        fields = _fields_set(methods[0], rows)
        others = [m for m in classes[0].body if isinstance(m, FunctionNode) and m is not methods[0]]
        uses = [use for other in others if other.name != "__init__" for use in _uses(other, methods[0].name, fields)]
        if not uses or not all(uses):
            return False
    return bool(scopes)


def _fields_set(method: FunctionNode, rows: Collection[int]) -> set[str]:
    """The fields of `self` that statements on some rows set, or set something of that a loop takes from them."""
    turning = {name: taken for node in walked(method) if isinstance(node, ast.For) for name, taken in _taken(node)}
    found = set()
    for node in walked(method):
        if isinstance(node, ast.Assign) and node.lineno in rows:
            for target in node.targets:
                root = _root(target)
                if isinstance(root, ast.Name):
                    root = turning.get(root.id, root)
                if isinstance(root, ast.Attribute):
                    found.add(root.attr)
    return found


def _taken(loop: ast.For) -> Iterator[tuple[str, ast.expr]]:
    """The names that a loop goes by, each with what it is taken from: of `zip`, by its place."""
    if isinstance(loop.target, ast.Name):
        yield loop.target.id, _root(loop.iter)
    elif isinstance(loop.target, ast.Tuple) and isinstance(loop.iter, ast.Call) and _is_zip(loop.iter):
        for target, given in zip(loop.target.elts, loop.iter.args, strict=False):
            if isinstance(target, ast.Name):
                yield target.id, _root(given)


def _is_zip(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id == "zip"


def _root(node: ast.expr) -> ast.expr:
    """What an expression begins with: a name, or a field of `self`."""
    while True:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
            return node
        if isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
            node = node.value
        elif isinstance(node, ast.Call):
            node = node.func
        else:
            return node


def _uses(method: FunctionNode, refresher: str, fields: Collection[str]) -> Iterator[bool]:
    """For each statement of a method that uses one of the fields, whether the refreshing method was called before."""

    def block(body: Sequence[ast.stmt], *, fresh: bool) -> Iterator[bool]:
        for statement in body:
            parts = [part for name in _BLOCKS for part in getattr(statement, name, ())]
            inner = {id(node) for part in parts for node in walked(part)}
            own = [node for node in walked(statement) if id(node) not in inner]
            fresh = fresh or (isinstance(statement, ast.Expr) and any(_calls(node, refresher) for node in own))
            if any(_is_field(node, fields) for node in own):
                yield fresh
            for name in _BLOCKS:
                inside = getattr(statement, name, ())
                for part in inside if name == "handlers" else (inside,):
                    yield from block(getattr(part, "body", part), fresh=fresh)

    yield from block(method.body, fresh=False)


_BLOCKS = ("body", "orelse", "finalbody", "handlers")


def _calls(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == name


def _is_field(node: ast.AST, fields: Collection[str]) -> bool:
    if not isinstance(node, ast.Attribute) or node.attr not in fields:
        return False
    return isinstance(node.value, ast.Name) and node.value.id == "self"
