"""Expressions of a light tree, from Python's."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from types import SimpleNamespace as Node
from typing import Any

from torchcopylint.flow.light import shapes as s


def expression(node: ast.AST) -> Node:
    """The node of an expression. Raises `ValueError` for what is newer than this code."""
    handler = _EXPRESSIONS.get(type(node))
    if handler is None:
        raise ValueError(type(node).__name__)
    found = handler(node)
    found.at = node
    return found


def optional(node: ast.AST | None) -> Node | None:
    """The node of an expression that may be missing."""
    return None if node is None else expression(node)


def _name(node: ast.Name) -> Node:
    return s.Name(value=node.id)


def _constant(node: ast.Constant) -> Node:
    value = node.value
    if isinstance(value, str | bytes):
        return s.SimpleString(evaluated_value=value)
    if value is None or isinstance(value, bool):
        return s.Name(value=repr(value))
    if value is ...:
        return s.Ellipsis()
    return s.Integer(evaluated_value=value) if isinstance(value, int) else s.Float(evaluated_value=value)


def _joined(node: ast.JoinedStr) -> Node:
    parts = []
    for value in node.values:
        if isinstance(value, ast.FormattedValue):
            inner = value.format_spec.values if isinstance(value.format_spec, ast.JoinedStr) else ()
            spec = [
                s.FormattedStringExpression(expression=expression(part.value))
                for part in inner
                if isinstance(part, ast.FormattedValue)
            ]
            parts.append(s.FormattedStringExpression(expression=expression(value.value), format_spec=spec))
    return s.FormattedString(parts=parts)


def _attribute(node: ast.Attribute) -> Node:
    return s.Attribute(value=expression(node.value), attr=s.Name(value=node.attr))


def _subscript(node: ast.Subscript) -> Node:
    index = node.slice
    parts = index.elts if isinstance(index, ast.Tuple) and index.elts else (index,)
    return s.Subscript(value=expression(node.value), slice=[s.SubscriptElement(slice=_index(part)) for part in parts])


def _index(node: ast.expr) -> Node:
    if isinstance(node, ast.Slice):
        return s.Slice(lower=optional(node.lower), upper=optional(node.upper), step=optional(node.step))
    return s.Index(value=expression(node.value if isinstance(node, ast.Starred) else node))


def _call(node: ast.Call) -> Node:
    return s.Call(func=expression(node.func), args=arguments(node.args, node.keywords))


def arguments(positional: Sequence[ast.expr], keywords: Sequence[ast.keyword]) -> list[Node]:
    """The arguments of a call, or the bases of a class, in source order."""
    found = [
        s.Arg(value=expression(node.value), keyword=None, star="*")
        if isinstance(node, ast.Starred)
        else s.Arg(value=expression(node), keyword=None, star="")
        for node in positional
    ]
    named = [
        s.Arg(value=expression(node.value), keyword=s.Name(value=node.arg), star="")
        if node.arg is not None
        else s.Arg(value=expression(node.value), keyword=None, star="**")
        for node in keywords
    ]
    if not named or not positional or _place(positional[-1]) < _place(keywords[0]):
        return found + named
    # A starred argument may stand behind one with a keyword.
    places = [*map(_place, positional), *map(_place, keywords)]
    return [argument for _, argument in sorted(zip(places, found + named, strict=True), key=lambda pair: pair[0])]


def _place(node: ast.expr | ast.keyword) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _binary(node: ast.BinOp) -> Node:
    left, operator = expression(node.left), _OPERATORS[type(node.op)]
    return s.BinaryOperation(left=left, operator=operator, right=expression(node.right))


def _unary(node: ast.UnaryOp) -> Node:
    return s.UnaryOperation(operator=_UNARY[type(node.op)], expression=expression(node.operand))


def _boolean(node: ast.BoolOp) -> Node:
    operator = _AND if isinstance(node.op, ast.And) else _OR
    left = expression(node.values[0])
    for value in node.values[1:]:
        left = s.BooleanOperation(left=left, operator=operator, right=expression(value))
    return left


def _comparison(node: ast.Compare) -> Node:
    targets = [
        s.ComparisonTarget(operator=_COMPARISONS[type(op)], comparator=expression(comparator))
        for op, comparator in zip(node.ops, node.comparators, strict=True)
    ]
    return s.Comparison(left=expression(node.left), comparisons=targets)


def _conditional(node: ast.IfExp) -> Node:
    return s.IfExp(test=expression(node.test), body=expression(node.body), orelse=expression(node.orelse))


def elements(nodes: Sequence[ast.expr]) -> list[Node]:
    """What a tuple, list or set is written of."""
    return [
        s.StarredElement(value=expression(node.value))
        if isinstance(node, ast.Starred)
        else s.Element(value=expression(node))
        for node in nodes
    ]


def _tuple(node: ast.Tuple) -> Node:
    return s.Tuple(elements=elements(node.elts))


def _list(node: ast.List) -> Node:
    return s.List(elements=elements(node.elts))


def _set(node: ast.Set) -> Node:
    return s.Set(elements=elements(node.elts))


def _dict(node: ast.Dict) -> Node:
    return s.Dict(
        elements=[
            s.DictElement(key=expression(key), value=expression(value))
            if key is not None
            else s.StarredDictElement(value=expression(value))
            for key, value in zip(node.keys, node.values, strict=True)
        ]
    )


def _generators(nodes: Sequence[ast.comprehension]) -> Node:
    inner = None
    for node in reversed(nodes):
        ifs = [s.CompIf(test=expression(test)) for test in node.ifs]
        inner = s.CompFor(target=expression(node.target), iter=expression(node.iter), ifs=ifs, inner_for_in=inner)
    assert inner is not None
    return inner


def _list_comprehension(node: ast.ListComp) -> Node:
    return s.ListComp(elt=expression(node.elt), for_in=_generators(node.generators))


def _set_comprehension(node: ast.SetComp) -> Node:
    return s.SetComp(elt=expression(node.elt), for_in=_generators(node.generators))


def _generator(node: ast.GeneratorExp) -> Node:
    return s.GeneratorExp(elt=expression(node.elt), for_in=_generators(node.generators))


def _dict_comprehension(node: ast.DictComp) -> Node:
    key, value = expression(node.key), expression(node.value)
    return s.DictComp(key=key, value=value, for_in=_generators(node.generators))


def _walrus(node: ast.NamedExpr) -> Node:
    return s.NamedExpr(target=expression(node.target), value=expression(node.value))


def _lambda(node: ast.Lambda) -> Node:
    return s.Lambda(params=parameters(node.args), body=expression(node.body))


def _await(node: ast.Await) -> Node:
    return s.Await(expression=expression(node.value))


def _yield(node: ast.Yield) -> Node:
    return s.Yield(value=optional(node.value))


def _yield_from(node: ast.YieldFrom) -> Node:
    return s.Yield(value=s.From(item=expression(node.value)))


def parameters(node: ast.arguments) -> Node:
    """The parameters of a function or lambda."""
    plain = [*node.posonlyargs, *node.args]
    defaults = [None] * (len(plain) - len(node.defaults)) + list(map(expression, node.defaults))
    return s.Parameters(
        posonly_params=(),
        params=[_parameter(arg, default) for arg, default in zip(plain, defaults, strict=True)],
        star_arg=_parameter(node.vararg, None) if node.vararg is not None else None,
        kwonly_params=[
            _parameter(arg, optional(default)) for arg, default in zip(node.kwonlyargs, node.kw_defaults, strict=True)
        ],
        star_kwarg=_parameter(node.kwarg, None) if node.kwarg is not None else None,
    )


def _parameter(node: ast.arg, default: Node | None) -> Node:
    return s.Param(name=s.Name(value=node.arg), annotation=annotation(node.annotation), default=default)


def annotation(node: ast.expr | None) -> Node | None:
    """The node of an annotation that may be missing."""
    return s.Annotation(annotation=expression(node)) if node is not None else None


_OPERATORS: dict[type[ast.operator], Node] = {
    ast.Add: s.Add(),
    ast.Sub: s.Subtract(),
    ast.Mult: s.Multiply(),
    ast.Div: s.Divide(),
    ast.FloorDiv: s.FloorDivide(),
    ast.Mod: s.Modulo(),
    ast.Pow: s.Power(),
    ast.MatMult: s.MatrixMultiply(),
    ast.BitAnd: s.BitAnd(),
    ast.BitOr: s.BitOr(),
    ast.BitXor: s.BitXor(),
    ast.LShift: s.LeftShift(),
    ast.RShift: s.RightShift(),
}
_UNARY: dict[type[ast.unaryop], Node] = {
    ast.USub: s.Minus(),
    ast.UAdd: s.Plus(),
    ast.Invert: s.BitInvert(),
    ast.Not: s.Not(),
}
_COMPARISONS: dict[type[ast.cmpop], Node] = {
    ast.Lt: s.LessThan(),
    ast.LtE: s.LessThanEqual(),
    ast.Gt: s.GreaterThan(),
    ast.GtE: s.GreaterThanEqual(),
    ast.Eq: s.Equal(),
    ast.NotEq: s.NotEqual(),
    ast.Is: s.Is(),
    ast.IsNot: s.IsNot(),
    ast.In: s.In(),
    ast.NotIn: s.NotIn(),
}
_AND, _OR = s.And(), s.Or()

_EXPRESSIONS: dict[type[ast.AST], Callable[[Any], Node]] = {
    ast.Name: _name,
    ast.Constant: _constant,
    ast.JoinedStr: _joined,
    ast.Attribute: _attribute,
    ast.Subscript: _subscript,
    ast.Call: _call,
    ast.BinOp: _binary,
    ast.UnaryOp: _unary,
    ast.BoolOp: _boolean,
    ast.Compare: _comparison,
    ast.IfExp: _conditional,
    ast.Tuple: _tuple,
    ast.List: _list,
    ast.Set: _set,
    ast.Dict: _dict,
    ast.ListComp: _list_comprehension,
    ast.SetComp: _set_comprehension,
    ast.GeneratorExp: _generator,
    ast.DictComp: _dict_comprehension,
    ast.NamedExpr: _walrus,
    ast.Lambda: _lambda,
    ast.Await: _await,
    ast.Yield: _yield,
    ast.YieldFrom: _yield_from,
}
