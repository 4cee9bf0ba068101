"""Whether a file writes in place what a finding says is shared, where the finding itself names no write."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Collection, Iterator

from torchcopylint.verify.slicing.source import nodes_of, walked

_COMMON = frozenset({"self", "data", "weight", "bias", "grad", "parameters", "state_dict", "torch", "nn", "Parameter"})
"""Names that say nothing of what it is that is shared."""
_BY_LAYERS = frozenset({"running_mean", "running_var", "num_batches_tracked"})
"""What layers write by themselves whenever they are run in training."""
_WRITING_CALLS = frozenset({"batch_norm", "instance_norm"})

_OPTIMIZERS = frozenset({"SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "Adadelta", "Adamax", "NAdam", "RAdam", "LBFGS"})


def is_written(tree: ast.Module, rows: Collection[int]) -> bool:
    """Whether anything in a file writes, or may write, into something that the statements on some rows name.

    What gets another tensor (`p.data = ...`) is not written. True where the names say nothing.
    """
    shared = frozenset(_names_at(tree, rows)) - _turning(tree, rows) - _COMMON - vars(builtins).keys()
    if not shared or shared & _BY_LAYERS:
        return True
    # What comes from other files, with rows below zero, has names of its own.
    own = (node for top in tree.body if top.lineno > 0 for node in walked(top))
    return any(shared & names for node in own for names in _written(node))


def _names_at(tree: ast.Module, rows: Collection[int]) -> Iterator[str]:
    """The names in statements on some rows, and in what the loops around them go through."""
    for node in nodes_of(tree):
        if isinstance(node, ast.For) and any(node.lineno < row <= (node.end_lineno or row) for row in rows):
            yield from _names(node.iter)
        elif isinstance(node, ast.stmt) and node.lineno in rows and not hasattr(node, "body"):
            yield from _names(node)


def _turning(tree: ast.Module, rows: Collection[int]) -> set[str]:
    """The names that loops around some rows go by."""
    loops = (node for node in nodes_of(tree) if isinstance(node, ast.For))
    around = [node for node in loops if any(node.lineno < row <= (node.end_lineno or row) for row in rows)]
    return set[str]().union(*(_names(node.target) for node in around))


def _names(node: ast.AST) -> set[str]:
    inside = list(walked(node))
    found = {part.id for part in inside if isinstance(part, ast.Name)}
    return found | {part.attr for part in inside if isinstance(part, ast.Attribute)}


def _written(node: ast.AST) -> Iterator[set[str]]:
    """The names that a node of a tree writes in place, if it does."""
    if isinstance(node, ast.AugAssign):
        yield _names(node.target)
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Subscript):
                yield _names(target.value)
    elif isinstance(node, ast.Call):
        called = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
        in_place = isinstance(node.func, ast.Attribute) and called.endswith("_") and not called.endswith("__")
        made = "optim" in ast.unparse(node.func).lower() or called in _OPTIMIZERS
        if in_place or made or called in _WRITING_CALLS:
            yield _names(node)
        for word in node.keywords:
            if word.arg == "out":
                yield _names(word.value)
