"""What lowering sees of a syntax tree."""

from __future__ import annotations

from typing import Any, TypeAlias

Node: TypeAlias = Any
"""A node of LibCST's tree, or its twin of the same name in a light tree (`flow.light`)."""


def kind(node: Node) -> str:
    """What a node is: the name of its class."""
    return type(node).__name__
