"""What statements name: chains of names and attributes, and which of them a scope binds itself."""

from __future__ import annotations

import ast

from .instrument import Numbered


def chains_in(statement: ast.AST) -> list[ast.Name | ast.Attribute]:
    """The longest chains of names and attributes in a statement that are not called themselves, each once."""
    found: dict[str, ast.Name | ast.Attribute] = {}
    header: list[ast.AST] = [statement.iter] if isinstance(statement, ast.For) else [statement]
    if isinstance(statement, ast.Lambda):
        header = [statement.body]
    while header:
        node = header.pop()
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            header += [node.func.value, *node.args, *(keyword.value for keyword in node.keywords)]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            header += [*node.args, *(keyword.value for keyword in node.keywords)]
        elif isinstance(node, ast.Attribute) and node.attr in ("data", "T", "mT", "grad", "real", "imag"):
            header.append(node.value)
            if node.attr == "grad":
                found[ast.dump(node)] = node
        elif isinstance(node, (ast.Name, ast.Attribute)) and _is_chain(node):
            if isinstance(node.ctx, ast.Load) or isinstance(statement, ast.AugAssign):
                found.setdefault(ast.unparse(node), node)
        elif not isinstance(node, (ast.Lambda, ast.FunctionDef)):
            header += list(ast.iter_child_nodes(node))
    return list(found.values())


def chains_of(statement: ast.stmt) -> tuple[str, ...]:
    """The names and attributes that a statement reads, as texts; of a compound one, those of its header."""
    header: ast.AST = statement
    if isinstance(statement, (ast.If, ast.While)):
        header = statement.test
    elif hasattr(statement, "body") and not isinstance(statement, ast.For):
        return ()
    called = [n.func for n in ast.walk(header) if isinstance(n, ast.Call) and _is_chain(n.func)]
    return tuple(dict.fromkeys(ast.unparse(chain) for chain in [*chains_in(header), *called]))


def _is_chain(node: ast.AST) -> bool:
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def local_names(numbered: Numbered, statement: ast.stmt) -> set[str]:
    """The names that the scope around a statement binds itself (parameters too)."""
    scope: ast.AST = numbered.tree
    for candidate in numbered.statements:
        if isinstance(candidate, ast.FunctionDef) and any(node is statement for node in ast.walk(candidate)):
            scope = candidate
    names = {node.id for node in ast.walk(scope) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    if isinstance(scope, ast.FunctionDef):
        arguments = scope.args
        names |= {a.arg for a in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]}
    return names
