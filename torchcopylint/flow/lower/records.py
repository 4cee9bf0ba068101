"""`Transition = namedtuple("Transition", "state action")`: a class with fields that a call makes, not a statement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.lower.literals import text_of
from torchcopylint.flow.lower.node import Node, kind

if TYPE_CHECKING:
    from torchcopylint.flow.lower.builder import UnitBuilder

_BASE = t.Annotation("typing.NamedTuple")
_ANYTHING = t.Annotation("typing.Any")


def lower_record(b: UnitBuilder, node: Node) -> int | None:
    """Lower a call of `namedtuple` whose fields are written out; returns the register that holds the class, or `None`
    of anything else."""
    names = _field_names(node)
    if not names:
        return None
    name = str(text_of(node.args[0].value))
    index = b.file.reserve_class()
    body = b.nested(name, "class", index)
    site = b.site(node)
    body.finish(name, (), None, site)
    fields = dict.fromkeys(names, _ANYTHING)
    b.file.classes[index] = t.ClassInfo(index, name, body.qualname, (_BASE,), body.index, {}, fields, site)
    return b.define(t.Class, node, index, (), ())


def _field_names(node: Node) -> list[str]:
    if kind(node) != "Call" or len(node.args) != 2 or any(arg.keyword is not None or arg.star for arg in node.args):
        return []
    function = node.func.attr if kind(node.func) == "Attribute" else node.func
    if kind(function) != "Name" or function.value != "namedtuple" or not isinstance(text_of(node.args[0].value), str):
        return []
    fields = node.args[1].value
    if kind(fields) in ("List", "Tuple"):
        found = [text_of(element.value) for element in fields.elements]
        return [one for one in found if isinstance(one, str)] if all(isinstance(one, str) for one in found) else []
    text = text_of(fields)
    return text.replace(",", " ").split() if isinstance(text, str) else []
