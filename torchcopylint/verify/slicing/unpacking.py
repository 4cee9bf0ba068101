"""What a statement takes apart into names, and how what is taken apart is reached: to be made of so many parts."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from torchcopylint.verify.slicing.things import WEAK, Thing, find
from torchcopylint.verify.slicing.world import World

_THROUGH = frozenset({"enumerate", "tqdm", "trange", "list", "iter", "next", "reversed", "sorted", "islice", "cycle"})
"""What gives the items of its first argument."""


class Apart(NamedTuple):
    """What a name holds (`of` is empty), gives in a loop (`each`) or when it is called (`called`) has these parts."""

    name: str
    of: str
    parts: tuple[str, ...]


def taken_apart(node: ast.stmt, count: int) -> Iterator[Apart]:
    """What a statement takes apart into so many names."""
    pairs: list[tuple[ast.expr, ast.expr, bool]] = []
    if isinstance(node, ast.Assign):
        pairs = [(target, node.value, False) for target in node.targets]
    elif isinstance(node, ast.For):
        counted = isinstance(node.iter, ast.Call) and _last(node.iter.func) == "enumerate"
        inner = isinstance(node.target, ast.Tuple) and len(node.target.elts) == 2 and counted
        target = node.target.elts[1] if inner and isinstance(node.target, ast.Tuple) else node.target
        pairs = [(target, node.iter, True)]
    for target, value, looped in pairs:
        if not isinstance(target, ast.Tuple | ast.List) or len(target.elts) != count:
            continue
        if any(isinstance(part, ast.Starred) for part in target.elts):
            continue
        while isinstance(value, ast.Call) and _last(value.func) in _THROUGH and value.args:
            looped = looped or _last(value.func) == "next"
            value = value.args[0]
        called = isinstance(value, ast.Call)
        name = _last(value.func) if isinstance(value, ast.Call) else _last(value)
        if name and not (called and looped):
            yield Apart(name, "called" if called else "each" if looped else "", tuple(map(_last, target.elts)))


def take_apart(world: World, apart: Apart) -> bool:
    """Have what is taken apart made of its parts, each like what it becomes; whether that is new."""
    fresh = False
    for thing in world.things_called(apart.name):
        whole = thing.each() if apart.of == "each" else thing.called() if apart.of == "called" else thing
        if whole.arity == len(apart.parts):
            continue
        fresh = True
        whole.arity, whole.element = len(apart.parts), None
        whole.vote("tuple", WEAK)
        for number, name in enumerate(apart.parts):
            part = whole.item(number)
            part.name = part.name or name
            part.near += [other for other in _alike(world, name) if other is not part and find(other) is not whole]
    return fresh


def _alike(world: World, name: str) -> list[Thing]:
    return world.things_called(name) if name else []


def _last(node: ast.expr) -> str:
    """The name that an expression is, of an attribute the last; empty for others."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
