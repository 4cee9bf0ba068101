"""Type annotations and base classes, as dotted names with arguments."""

from __future__ import annotations

import libcst as cst

from torchcopylint.flow.tape import UNION, Annotation


def dotted_name(node: cst.BaseExpression) -> str:
    """`a.b.c` as written; empty if the expression is anything else."""
    parts: list[str] = []
    while type(node) is cst.Attribute:
        parts.append(node.attr.value)
        node = node.value
    if type(node) is not cst.Name:
        return ""
    parts.append(node.value)
    return ".".join(reversed(parts))


def lower_annotation(node: cst.BaseExpression | None) -> Annotation | None:
    """An annotation; `None` if there is none or it is of no form that says something of a type."""
    if node is None:
        return None
    if type(node) in (cst.Name, cst.Attribute):
        name = dotted_name(node)
        return Annotation(name) if name else None
    if isinstance(node, cst.SimpleString):
        text = node.evaluated_value
        try:
            return lower_annotation(cst.parse_expression(text)) if isinstance(text, str) else None
        except (cst.ParserSyntaxError, SyntaxError, ValueError):
            return None
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.BitOr):
        return _union(node)
    if isinstance(node, cst.Subscript):
        name = dotted_name(node.value)
        if not name:
            return None
        arguments = tuple(
            argument
            for element in node.slice
            if isinstance(element.slice, cst.Index) and (argument := lower_annotation(element.slice.value)) is not None
        )
        return Annotation(UNION if name.rpartition(".")[2] in ("Union", "Optional") else name, arguments)
    return None


def _union(node: cst.BinaryOperation) -> Annotation:
    sides: list[Annotation] = []
    current: cst.BaseExpression = node
    while isinstance(current, cst.BinaryOperation) and isinstance(current.operator, cst.BitOr):
        right = lower_annotation(current.right)
        if right is not None:
            sides.append(right)
        current = current.left
    left = lower_annotation(current)
    if left is not None:
        sides.append(left)
    return Annotation(UNION, tuple(reversed(sides)))
