"""Whether a script may change something that the next one in the same process would meet."""

from __future__ import annotations

import ast
import re
from collections.abc import Set
from dataclasses import dataclass
from functools import lru_cache

_SETTERS = ("set_", "use_", "enable_", "disable_", "register_", "manual_", "seterr", "setflags", "setstate", "patch")
"""Beginnings of the names of functions that change how a module behaves. Seeds are set anew for each run."""
_SEEDS = frozenset({"manual_seed", "manual_seed_all", "set_rng_state", "set_grad_enabled", "setattr"})
_REFLECTING = frozenset({"exec", "eval", "delattr", "compile", "__import__"})
_STARTING = frozenset({"Thread", "Timer", "Process", "Pool", "ThreadPoolExecutor", "signal", "atexit", "settrace"})


_HEAD = re.compile(r"(?:import|from|torch\.) ?.*")
"""What of the text before the user's statements is asked for traces: the rest are definitions of ours."""
_BEGINS = re.compile(r"\n(?=[^\s)\]}#])(?!(?:else|elif|except|finally)\b)")
"""Where another statement at module level may begin."""


def leaves_traces(script: str, fixed: int = 0) -> bool:
    """Whether a script assigns to what it imports, or calls what sets something for a whole module.

    What cannot be parsed may do anything. The first `fixed` rows are helpers.
    """
    lines = script.split("\n", fixed)
    head = "\n".join(line for line in lines[:fixed] if _HEAD.match(line))
    try:
        parts = [_read(head), *_parts(lines[-1])]
    except (SyntaxError, ValueError, RecursionError):
        return True
    imported = frozenset[str]().union(*(part.imported for part in parts))
    return any(_traces(node, imported) for part in parts for node in part.suspects)


def _parts(text: str) -> list[_Part]:
    """The statements of a text at module level, which most scripts of one finding share. Raises `SyntaxError`."""
    apart: list[str] = []
    decorates = False
    for part in _BEGINS.split(text):
        # What is decorated, or another decorator.
        apart.append(f"{apart.pop()}\n{part}" if decorates else part)
        decorates = part.startswith("@")
    try:
        return [_read(part) for part in apart]
    except SyntaxError:  # such a line stands inside of a statement
        return [_read(text)]


@dataclass(frozen=True, slots=True)
class _Part:
    """Of a text: what it imports, and the nodes that leave traces if what they name is imported."""

    imported: frozenset[str]
    suspects: tuple[ast.AST, ...]


@lru_cache(maxsize=512)
def _read(text: str) -> _Part:
    nodes = list(ast.walk(ast.parse(text)))
    imported: set[str] = set()
    named: set[str] = {""}
    for node in nodes:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            imported |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.Name):
            named.add(node.id)
    suspects = tuple(node for node in nodes if isinstance(node, _TELLING) and _traces(node, named))
    return _Part(frozenset(imported), suspects)


def _traces(node: ast.AST, imported: Set[str]) -> bool:
    if isinstance(node, ast.Name):
        return node.id in _REFLECTING or node.id in _STARTING or (node.id == "modules" and node.id in imported)
    if isinstance(node, ast.Attribute):
        root = _root(node)
        if node.attr == "__dict__":
            return not _is_own(node.value, imported)
        if root in imported and (node.attr in _REFLECTING or node.attr in _STARTING or node.attr == "modules"):
            return True
        if not isinstance(node.ctx, ast.Load):
            return root in imported
        return root in imported and node.attr.startswith(_SETTERS) and node.attr not in _SEEDS
    if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        return _root(node) in imported
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id == "vars":
            return not all(_is_own(given, imported) for given in node.args)
        if node.func.id == "setattr":
            return bool(node.args) and _root(node.args[0]) in {*imported, ""}
        return node.func.id in imported and node.func.id.startswith(_SETTERS) and node.func.id not in _SEEDS
    return False


_TELLING = (ast.Name, ast.Attribute, ast.Subscript, ast.Call)


def _is_own(node: ast.expr, imported: Set[str]) -> bool:
    """Whether something is a name of the script's own, and not of what it imports."""
    return isinstance(node, ast.Name) and node.id not in imported


def _root(node: ast.expr) -> str:
    """The name that an expression with attributes and items begins with; empty if it does not begin with one."""
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
