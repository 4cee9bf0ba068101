"""Whether what keeps a graph is handed back to somebody in the file who runs backward over what is computed of it."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator

from torchcopylint.verify.slicing.source import FunctionNode, Scope, names_in, nodes_of, walked

_OF_OBJECTS = frozenset({"__call__", "forward"})


def is_run_back(
    tree: ast.Module, scopes: Iterable[tuple[Scope, ...]], rows: Collection[int], returning: Collection[int]
) -> bool:
    """Whether a function keeps something in a loop, in one of the `rows`, and gives it back, in one of those that are
    `returning`, and whoever calls it runs backward over something that comes of that: the graph is kept to be used."""
    for chain in scopes:
        function = chain[-1] if chain else None
        if not isinstance(function, FunctionNode):
            continue
        loops = [node for node in walked(function) if isinstance(node, ast.For | ast.While)]
        if not any(_holds(function, row) for row in returning) or not any(
            _holds(x, row) for x in loops for row in rows
        ):
            continue
        of_object = function.name in _OF_OBJECTS and len(chain) > 1
        name = chain[-2].name if of_object else function.name
        for other in nodes_of(tree):
            if (
                isinstance(other, FunctionNode)
                and other is not function
                and _runs_back(other, name, of_object=of_object)
            ):
                return True
    return False


def _holds(node: ast.stmt, row: int) -> bool:
    return node.lineno <= row <= (node.end_lineno or row)


def _runs_back(caller: FunctionNode, name: str, *, of_object: bool) -> bool:
    """Whether a function calls another one by name, or an object that it makes of a class, and runs backward over
    what comes of it."""
    assigned = [node for node in walked(caller) if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign)]
    called = {name}
    if of_object:
        called = {bound for node in assigned if _calls(node.value, {name}) for bound in _bound(node)}
    coming: set[str] = set()
    before = -1
    while len(coming) > before:
        before = len(coming)
        for node in assigned:
            if node.value is not None and (_calls(node.value, called) or coming & set(names_in(node.value))):
                coming.update(_bound(node))
    calls = (node.func for node in walked(caller) if isinstance(node, ast.Call))
    back = (func.value for func in calls if isinstance(func, ast.Attribute) and func.attr == "backward")
    return any(coming & set(names_in(value)) or _calls(value, called) for value in back)


def _bound(node: ast.Assign | ast.AugAssign | ast.AnnAssign) -> Iterator[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    for target in targets:
        yield from (part.id for part in walked(target) if isinstance(part, ast.Name) and part.id != "self")


def _calls(node: ast.expr | None, names: Collection[str]) -> bool:
    """Whether something by one of these names is called in an expression."""
    for part in walked(node) if node is not None else ():
        func = part.func if isinstance(part, ast.Call) else None
        called = func.id if isinstance(func, ast.Name) else func.attr if isinstance(func, ast.Attribute) else ""
        if called in names:
            return True
    return False
