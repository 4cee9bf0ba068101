"""`__post_init__` of a dataclass: with the fields that the call sets before it, it is what `__init__` is to others."""

from __future__ import annotations

from typing import NamedTuple

from torchcopylint.flow import tape as t
from torchcopylint.flow.lower import statements
from torchcopylint.flow.lower.annotations import lower_annotation
from torchcopylint.flow.lower.builder import NO_SITE, UnitBuilder
from torchcopylint.flow.lower.node import Node, kind

NAME = "__post_init__"
_BARE = frozenset({"object", "ABC"})


class Field(NamedTuple):
    """A field that a call sets, as it is written in the class body."""

    name: str
    annotation: Node
    default: Node | None


def fields_of(node: Node) -> list[Field] | None:
    """The fields of a dataclass whose `__post_init__` takes nothing but its object; `None` of any other class.

    Of what a class inherits, its own body does not say which fields come first.
    """
    if not any(_is_dataclass(one.decorator) for one in node.decorators):
        return None
    if any(kind(base.value) != "Name" or base.value.value not in _BARE for base in node.bases):
        return None
    functions = {one.name.value: one for one in node.body.body if kind(one) == "FunctionDef"}
    begun = functions.get(NAME)
    if begun is None or "__init__" in functions or _takes_more(begun.params):
        return None
    lines = [one for one in node.body.body if kind(one) == "SimpleStatementLine"]
    set_here = [one for line in lines for one in line.body if kind(one) == "AnnAssign" and kind(one.target) == "Name"]
    found = [Field(one.target.value, one.annotation.annotation, one.value) for one in set_here]
    return [field for field in found if _is_set_by_call(field)]


def _is_dataclass(node: Node) -> bool:
    node = node.func if kind(node) == "Call" else node
    return (kind(node) == "Name" and node.value == "dataclass") or (
        kind(node) == "Attribute" and node.attr.value == "dataclass"
    )


def _takes_more(params: Node) -> bool:
    several = len((*params.posonly_params, *params.params)) != 1 or bool(params.kwonly_params)
    return several or kind(params.star_arg) == "Param" or params.star_kwarg is not None


def _is_set_by_call(field: Field) -> bool:
    declared = lower_annotation(field.annotation)
    if declared is not None and declared.name.rpartition(".")[2] in ("ClassVar", "InitVar", "KW_ONLY"):
        return False
    if field.default is None or kind(field.default) != "Call":
        return True
    told = [one for one in field.default.args if one.keyword is not None and one.keyword.value == "init"]
    return not any(kind(one.value) == "Name" and one.value.value == "False" for one in told)


def lower_post_init(b: UnitBuilder, node: Node, owner: int, fields: list[Field]) -> int:
    """Lower it; returns the register that holds the function."""
    unit = b.nested(NAME, "function", owner)
    site = b.site(node.name)
    own = (*node.params.posonly_params, *node.params.params)[0].name.value
    parameters = [t.Parameter(own, "plain", None, False)]
    parameters += [t.Parameter(f.name, "plain", lower_annotation(f.annotation), f.default is not None) for f in fields]
    for parameter in parameters:
        unit.bound.add(parameter.name)
        unit.binding[parameter.name] = parameter.name
    unit.statement = NO_SITE
    for field in fields:
        value, base = unit.load(field.name, node.name), unit.load(own, node.name)
        unit.emit(t.StoreAttribute(base, field.name, value, False, unit.site(node.name)))
    statements.lower_body(unit, node.body)
    unit.finish("__init__", tuple(parameters), None, site)
    return b.define(t.Function, node.name, unit.index, (), ())
