"""Whether whoever in a file makes what the steps stand in has no parameter of it trained."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from torchcopylint.verify.slicing.source import FunctionNode, Scope, walked
from torchcopylint.verify.slicing.switches import frozen

_OF_SELF = frozenset({"parameters", "self"})
"""What `frozen` tells of `for p in self.parameters(): p.requires_grad = False`, and of `self.requires_grad_(False)`."""


def is_made_frozen(tree: ast.Module, scopes: Iterable[tuple[Scope, ...]]) -> bool:
    """Whether the steps stand in a class that the file only names in classes whose constructors freeze all that their
    objects hold, or in others of which that holds as well."""
    classes = {chain[0] for chain in scopes if chain}
    return bool(classes) and all(isinstance(node, ast.ClassDef) and _is_frozen(node, tree, set()) for node in classes)


def _is_frozen(node: ast.ClassDef, tree: ast.Module, seen: set[str]) -> bool:
    users = [other for other in tree.body if other is not node and _names(other, node.name)]
    if not users or node.name in seen:
        return False
    seen = {*seen, node.name}
    return all(isinstance(user, ast.ClassDef) and (_freezes(user) or _is_frozen(user, tree, seen)) for user in users)


def _names(statement: ast.stmt, name: str) -> bool:
    return any(isinstance(part, ast.Name) and part.id == name for part in walked(statement))


def _freezes(node: ast.ClassDef) -> bool:
    """Whether the constructor of a class freezes all that an object has by then."""
    made = (item for item in node.body if isinstance(item, FunctionNode) and item.name == "__init__")
    return any(not _OF_SELF.isdisjoint(frozen(item.body)) for item in made)
