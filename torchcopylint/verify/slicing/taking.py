"""Whether anything holds what a generator of the file gives for longer than a turn."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable

from torchcopylint.verify.slicing.source import FunctionNode, Scope, nodes_of, walked

_ADVANCING = frozenset({"__next__", "send", "close", "throw"})


def is_taken_singly(tree: ast.Module, scopes: Iterable[tuple[Scope, ...]], rows: Collection[int]) -> bool:
    """Whether a step hands something out of a generator which the file uses, and nobody there goes through that:
    everybody asks for one thing after the other, under a name that the next one gets as well."""
    handing = {
        scope.name
        for chain in scopes
        for scope in chain[-1:]
        if isinstance(scope, FunctionNode)
        and any(isinstance(node, ast.Yield) and node.lineno in rows for node in walked(scope))
    }
    taken = [_is_taken(tree, name) for name in sorted(handing)]
    return bool(taken) and all(taken)


def _is_taken(tree: ast.Module, name: str) -> bool:
    """Whether all that a generator by this name is used for is to bind it, and to bind the next of what it gives."""
    advanced = {id(call.args[0]) for call in _calls(tree) if _name(call.func) == "next" and call.args}
    advanced |= {
        id(call.func.value)
        for call in _calls(tree)
        if isinstance(call.func, ast.Attribute) and call.func.attr in _ADVANCING
    }
    assigned = [node for node in nodes_of(tree) if isinstance(node, ast.Assign | ast.AnnAssign)]
    held = {id(node.value): node for node in assigned if node.value is not None}
    statements = {id(node.value) for node in nodes_of(tree) if isinstance(node, ast.Expr)}
    for call in _calls(tree):
        # What is asked for at once, as in `kept.append(next(it))`, is kept beside what comes after it.
        asks = _name(call.func) == "next" or (isinstance(call.func, ast.Attribute) and call.func.attr in _ADVANCING)
        if asks and id(call) not in held and id(call) not in statements:
            return False
    made = [call for call in _calls(tree) if _name(call.func) == name]
    names = {_name(target) for call in made if id(call) in held for target in _targets(held[id(call)])}
    if not made or "" in names or any(id(call) not in held for call in made):
        return False
    reads = [node for node in nodes_of(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)]
    called = {id(call.func) for call in made}
    return all(id(node) in advanced for node in reads if node.id in names) and all(
        id(node) in called for node in reads if node.id == name
    )


def _calls(tree: ast.Module) -> list[ast.Call]:
    return [node for node in nodes_of(tree) if isinstance(node, ast.Call)]


def _targets(node: ast.stmt) -> list[ast.expr]:
    return node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""
