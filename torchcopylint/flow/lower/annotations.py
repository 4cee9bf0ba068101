"""Type annotations and base classes, as dotted names with arguments."""

from __future__ import annotations

from functools import lru_cache

from torchcopylint.flow.light import read_expression
from torchcopylint.flow.lower.literals import text_of
from torchcopylint.flow.lower.node import Node, kind
from torchcopylint.flow.tape import UNION, Annotation


def dotted_name(node: Node) -> str:
    """`a.b.c` as written; empty if the expression is anything else."""
    parts: list[str] = []
    while kind(node) == "Attribute":
        parts.append(node.attr.value)
        node = node.value
    if kind(node) != "Name":
        return ""
    parts.append(node.value)
    return ".".join(reversed(parts))


def lower_annotation(node: Node) -> Annotation | None:
    """An annotation; `None` if there is none or it is of no form that says something of a type."""
    if node is None:
        return None
    if kind(node) in ("Name", "Attribute"):
        name = dotted_name(node)
        return Annotation(name) if name else None
    quoted = text_of(node)
    if isinstance(quoted, str):
        return _quoted(quoted)
    if kind(node) == "BinaryOperation" and kind(node.operator) == "BitOr":
        return _union(node)
    if kind(node) == "Subscript":
        name = dotted_name(node.value)
        if not name:
            return None
        arguments = tuple(
            argument
            for element in node.slice
            if kind(element.slice) == "Index" and (argument := lower_annotation(element.slice.value)) is not None
        )
        return Annotation(UNION if name.rpartition(".")[2] in ("Union", "Optional") else name, arguments)
    return None


@lru_cache(maxsize=1024)
def _quoted(text: str) -> Annotation | None:
    """What an annotation says that is written as a text. The same ones come often."""
    return lower_annotation(read_expression(text))


def _union(node: Node) -> Annotation:
    sides: list[Annotation] = []
    current: Node = node
    while kind(current) == "BinaryOperation" and kind(current.operator) == "BitOr":
        right = lower_annotation(current.right)
        if right is not None:
            sides.append(right)
        current = current.left
    left = lower_annotation(current)
    if left is not None:
        sides.append(left)
    return Annotation(UNION, tuple(reversed(sides)))
