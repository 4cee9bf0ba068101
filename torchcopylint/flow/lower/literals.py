"""What literals say."""

from __future__ import annotations

from torchcopylint.flow.lower.node import Node, kind

LONGEST = 200
"""Of a text with more characters nobody asks what it says."""


def value_of(node: Node) -> object:
    """The value of a number or a string; `None` for what only looks like one."""
    try:
        value: object = node.evaluated_value
    except (ValueError, SyntaxError):
        return None
    return value


def text_of(node: Node) -> str | bytes | None:
    """What a string says, or several behind one another that Python takes for one; `None` for any other node.

    Nobody asks what a long text says, so it is empty.
    """
    parts: list[Node] = []
    while kind(node) == "ConcatenatedString":
        parts.append(node.left)
        node = node.right
    parts.append(node)
    if any(kind(part) != "SimpleString" for part in parts):
        return None
    values = [value_of(part) for part in parts]
    whole: str | bytes = "".join(value for value in values if isinstance(value, str))
    if isinstance(values[0], bytes):
        whole = b"".join(value for value in values if isinstance(value, bytes))
    return whole if len(whole) <= LONGEST else whole[:0]
