"""Functions, lambdas and classes: each body becomes a unit of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.lower import expressions, statements
from torchcopylint.flow.lower.annotations import lower_annotation
from torchcopylint.flow.lower.builder import NO_SITE, UnitBuilder
from torchcopylint.flow.lower.node import Node, kind

if TYPE_CHECKING:
    from collections.abc import Iterator


def lower_function(b: UnitBuilder, node: Node, owner: int) -> int:
    """Lower `def`; returns the register that holds the function. `owner` is the class it is a method of, or -1."""
    decorators = tuple(expressions.lower_expression(b, d.decorator) for d in node.decorators)
    defaults = _defaults(b, node.params)
    unit = b.nested(node.name.value, "function", owner)
    site = b.site(node.name)
    _parameters_and_body(unit, node.name.value, node.params, lower_annotation(_returns(node)), node.body, site)
    return b.define(t.Function, node.name, unit.index, defaults, decorators)


def lower_lambda(b: UnitBuilder, node: Node) -> int:
    """Lower a lambda; returns the register that holds the function."""
    defaults = _defaults(b, node.params)
    unit = b.nested("<lambda>", "lambda", -1)
    _parameters_and_body(unit, "<lambda>", node.params, None, node.body, b.site(node))
    return b.define(t.Function, node, unit.index, defaults, ())


def lower_class(b: UnitBuilder, node: Node) -> int:
    """Lower `class`; returns the register that holds the class."""
    decorators = tuple(expressions.lower_expression(b, d.decorator) for d in node.decorators)
    bases = tuple(expressions.lower_expression(b, base.value) for base in node.bases)
    index = b.file.reserve_class()
    body = b.nested(node.name.value, "class", index)
    body.owner = index
    methods: dict[str, int] = {}
    fields: dict[str, t.Annotation] = {}
    statements.lower_class_body(body, node, index, methods, fields)
    site = b.site(node.name)
    body.finish(node.name.value, (), None, site)
    named = tuple(a for base in node.bases if (a := lower_annotation(base.value)) is not None)
    b.file.classes[index] = t.ClassInfo(index, node.name.value, body.qualname, named, body.index, methods, fields, site)
    return b.define(t.Class, node.name, index, bases, decorators)


def _returns(node: Node) -> Node:
    return node.returns.annotation if node.returns is not None else None


def _all_parameters(params: Node) -> Iterator[tuple[Node, str, bool]]:
    """Each parameter, its kind, and whether it is passed by its name alone."""
    for param in (*params.posonly_params, *params.params):
        yield param, "plain", False
    if kind(params.star_arg) == "Param":
        yield params.star_arg, "star", False
    for param in params.kwonly_params:
        yield param, "plain", True
    if params.star_kwarg is not None:
        yield params.star_kwarg, "stars", False


def _defaults(b: UnitBuilder, params: Node) -> tuple[tuple[str, int], ...]:
    return tuple(
        [
            (param.name.value, expressions.lower_expression(b, param.default))
            for param, _, _ in _all_parameters(params)
            if param.default is not None
        ]
    )


def _parameters_and_body(
    unit: UnitBuilder,
    name: str,
    params: Node,
    returns: t.Annotation | None,
    body: Node,
    site: int,
) -> None:
    parameters = []
    for param, sort, by_name in _all_parameters(params):
        annotation = lower_annotation(param.annotation.annotation if param.annotation is not None else None)
        parameters.append(t.Parameter(param.name.value, sort, annotation, param.default is not None, by_name))
        unit.bound.add(param.name.value)
        unit.binding[param.name.value] = param.name.value
    if kind(body) in ("IndentedBlock", "SimpleStatementSuite"):
        statements.lower_body(unit, body)
    else:
        unit.statement = NO_SITE
        value = expressions.lower_expression(unit, body)
        unit.emit(t.Return(value, unit.site(body)))
    unit.finish(name, tuple(parameters), returns, site)
