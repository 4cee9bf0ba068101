"""Small questions of whoever makes values: what a constant may stand for, what comes first, what belongs together."""

from __future__ import annotations

import ast

from torchcopylint.verify.slicing import tables
from torchcopylint.verify.slicing.conditions import Value
from torchcopylint.verify.slicing.source import FunctionNode, walked
from torchcopylint.verify.slicing.things import Thing

_OWN = {
    "optimizer": frozenset(["param_groups", "zero_grad", "add_param_group"]),
    "environment": tables.ENVIRONMENT | {"step"},
}
"""What nothing else is asked for, as far as it is known."""
_HAS = {
    "optimizer": tables.OPTIMIZER | {"state", "state_dict", "load_state_dict", "defaults"},
    "environment": tables.ENVIRONMENT
    | tables.ENVIRONMENT_CALLED
    | {"step", "sample", "close", "spec", "n", "shape", "high", "low"},
}
"""What optimizers and environments have."""


def as_used(kind: str, thing: Thing) -> str:
    """The kind of a thing by what it is asked for; empty if what it is taken for has not all of that."""
    if kind in _HAS and not thing.attributes.keys() <= _HAS[kind] and not thing.attributes.keys() & _OWN[kind]:
        return ""  # settings and meters are called like optimizers, or can be reset like environments
    if kind == "module" and "step" in thing.methods and thing.methods <= _HAS["optimizer"]:
        return "optimizer"
    return kind


def is_plain(thing: Thing, kind: str, value: Value) -> bool:
    """Whether a thing may be a constant like this, for all that is known of it."""
    if thing.attributes or thing.items or thing.element is not None or thing.result is not None:
        return value is None
    if isinstance(value, bool):
        return kind in ("", "bool", "int", "tensor", "number") and not {"tensor", "array"} & thing.votes.keys()
    if isinstance(value, str):
        return kind in ("", "str") or not thing.votes
    return value is None or kind in ("", "int", "float", "number", "size", "index") or not thing.votes


def is_filled(function: FunctionNode, name: str) -> bool:
    """Whether a function has something of its own for a parameter that is `None`."""
    for node in walked(function):
        if isinstance(node, ast.If) and ast.unparse(node.test) == f"{name} is None":
            bound = [part for part in walked(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)]
            if any(part.id == name for part in bound):
                return True
    return False


def is_zero(node: ast.expr) -> bool:
    """Whether an expression is the number zero."""
    return isinstance(node, ast.Constant) and type(node.value) in (int, float) and not node.value


def rank(kind: str) -> int:
    """What is made of other things comes after them."""
    return 2 if kind == "optimizer" else 1 if kind in ("state dict", "dict") else 0


def likeliest(name: str, modules: list[str]) -> str:
    """The module that an optimizer is most likely made for, by the letters of their names."""
    if not modules:
        return ""
    tail = name.lower().rsplit(".", 1)[-1].replace("optimizer", "").replace("optim", "").replace("opt", "").strip("_")

    def score(module: str) -> tuple[int, int]:
        words = module.lower().replace("net", "").split("_")
        fits = any(word and tail and (word.startswith(tail) or tail.startswith(word)) for word in words)
        return (int(fits), -modules.index(module))

    return max(modules, key=score)
