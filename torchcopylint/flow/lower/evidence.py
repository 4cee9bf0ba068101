"""What an expression shows of the names in it, beside the methods that are called on them."""

from __future__ import annotations

from torchcopylint.flow import tape as t
from torchcopylint.flow.lower.builder import UnitBuilder
from torchcopylint.flow.lower.node import Node, kind

JOINING = frozenset(
    f"torch.{name}" for name in ("cat", "concat", "concatenate", "stack", "hstack", "vstack", "dstack", "column_stack")
)
_DISPLAYS = frozenset({"List", "Tuple"})
_NUMBERS = frozenset({"Integer", "Float"})


def of_joined(b: UnitBuilder, display: Node) -> None:
    """What torch joins are tensors: `torch.cat([x, y])`, and what a list holds that it joins."""
    if kind(display) == "Name":
        b.join_all_of(display.value)
    for element in display.elements if kind(display) in _DISPLAYS else ():
        if kind(element) == "Element" and kind(element.value) == "Name":
            b.use(element.value.value, t.HANDED_TO + t.OF_TENSOR)


def of_put(b: UnitBuilder, node: Node) -> None:
    """What is put into a list may be joined with what else stands in that: `rows.append(x)`."""
    named = kind(node.func.value) == "Name" and len(node.args) == 1 and kind(node.args[0].value) == "Name"
    if named and node.func.attr.value == "append":
        b.put_into(node.func.value.value, node.args[0].value.value)


def of_difference(b: UnitBuilder, node: Node) -> None:
    """A method of the difference of a name and a number, or of two names for one thing, is one of that as well:
    `(x - 0.5).abs()`, and `(x - start).norm()` where `start = x`."""
    method, receiver = node.func.attr.value, node.func.value
    while kind(receiver) == "Call" and kind(receiver.func) == "Attribute":
        receiver = receiver.func.value
    if kind(receiver) != "BinaryOperation" or kind(receiver.operator) != "Subtract":
        return
    sides = (receiver.left, receiver.right)
    names = [side.value for side in sides if kind(side) == "Name"]
    if len(names) + sum(kind(side) in _NUMBERS for side in sides) == 2 and b.are_one(names):
        for name in names:
            b.use(name, f"{method}()")
