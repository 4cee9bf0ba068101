"""Expressions to events. Each function returns the register that holds the expression's value."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import libcst as cst

from torchcopylint.flow import tape as t
from torchcopylint.flow.lower import functions
from torchcopylint.flow.lower.builder import Frame, UnitBuilder

BINARY_SYMBOLS: dict[type[cst.CSTNode], str] = {
    cst.Add: "+",
    cst.Subtract: "-",
    cst.Multiply: "*",
    cst.Divide: "/",
    cst.FloorDivide: "//",
    cst.Modulo: "%",
    cst.Power: "**",
    cst.MatrixMultiply: "@",
    cst.BitAnd: "&",
    cst.BitOr: "|",
    cst.BitXor: "^",
    cst.LeftShift: "<<",
    cst.RightShift: ">>",
}
UNARY_SYMBOLS: dict[type[cst.CSTNode], str] = {cst.Minus: "-", cst.Plus: "+", cst.BitInvert: "~", cst.Not: "not"}
COMPARISON_SYMBOLS: dict[type[cst.CSTNode], str] = {
    cst.LessThan: "<",
    cst.LessThanEqual: "<=",
    cst.GreaterThan: ">",
    cst.GreaterThanEqual: ">=",
    cst.Equal: "==",
    cst.NotEqual: "!=",
}
LOGIC_SYMBOLS: dict[type[cst.CSTNode], str] = {
    cst.Is: "is",
    cst.IsNot: "is not",
    cst.In: "in",
    cst.NotIn: "not in",
}


def lower_expression(b: UnitBuilder, node: cst.CSTNode) -> int:
    """Lower any expression; what is not known becomes a constant without a value."""
    handler = _HANDLERS.get(type(node))
    return handler(b, node) if handler else b.define(t.Const, node, None)


def lower_target(b: UnitBuilder, target: cst.CSTNode, value: int, annotation: t.Annotation | None = None) -> None:
    """Store a register into an assignment target: a name, an attribute, an item, or a nest of targets."""
    if type(target) is cst.Name:
        b.bind(target.value, value, target, annotation)
    elif type(target) is cst.Attribute:
        base = lower_expression(b, target.value)
        b.emit(t.StoreAttribute(base, target.attr.value, value, False, b.site(target)))
    elif isinstance(target, cst.Subscript):
        base = lower_expression(b, target.value)
        index = lower_index(b, target.slice)
        b.emit(t.StoreItem(base, index, value, False, b.site(target)))
    elif isinstance(target, cst.Tuple | cst.List):
        star = next((i for i, e in enumerate(target.elements) if isinstance(e, cst.StarredElement)), -1)
        for position, element in enumerate(target.elements):
            known = position if star < 0 or position < star else -1
            part = b.define(t.Unpack, element.value, known, value)
            if position == star:
                # A starred target is a list of its own, whatever it is unpacked from.
                part = b.define(t.Make, element.value, "list", (), (part,), (False,))
            lower_target(b, element.value, part)
    elif isinstance(target, cst.StarredElement):
        lower_target(b, target.value, value)


def lower_index(b: UnitBuilder, elements: Sequence[cst.SubscriptElement]) -> t.Index:
    """Lower what stands in square brackets, one entry per dimension."""
    index: list[int | t.Slice] = []
    for element in elements:
        part = element.slice
        if type(part) is cst.Slice:
            bounds = (
                lower_expression(b, bound) if bound is not None else t.NO_REGISTER
                for bound in (part.lower, part.upper, part.step)
            )
            index.append(t.Slice(*list(bounds)))
        elif isinstance(part, cst.Index):
            value = part.value
            if isinstance(value, cst.Tuple) and len(elements) == 1 and value.elements:
                # `x[(a, b)]` and `x[a, b]` are the same thing.
                index.extend(lower_expression(b, item.value) for item in value.elements)
            else:
                index.append(lower_expression(b, value))
    return tuple(index)


_NAMED_CONSTANTS = {"True": True, "False": False, "None": None}


@lru_cache(maxsize=4096)
def _literal(text: str) -> object:
    """The value of a number or a string as written. Raises `ValueError` or `SyntaxError`."""
    return ast.literal_eval(text)


def _name(b: UnitBuilder, node: cst.Name) -> int:
    name = node.value
    if name in _NAMED_CONSTANTS:
        return b.define(t.Const, node, _NAMED_CONSTANTS[name])
    return b.load(name, node)


def _number(b: UnitBuilder, node: cst.Integer | cst.Float | cst.Imaginary) -> int:
    try:
        value = _literal(node.value) if len(node.value) < 40 else 0
    except (ValueError, SyntaxError):
        value = 0
    return b.define(t.Const, node, value)


def _string(b: UnitBuilder, node: cst.SimpleString) -> int:
    if len(node.value) > 200:
        # Nobody indexes with such a text; a docstring must not be evaluated for nothing.
        return b.define(t.Const, node, "" if "b" not in node.prefix.lower() else b"")
    try:
        value = _literal(node.value)
    except (ValueError, SyntaxError):
        value = ""
    return b.define(t.Const, node, value)


def _concatenated(b: UnitBuilder, node: cst.ConcatenatedString) -> int:
    parts: list[int] = []
    current: cst.BaseExpression = node
    while isinstance(current, cst.ConcatenatedString):
        parts.extend(_format_parts(b, current.left))
        current = current.right
    parts.extend(_format_parts(b, current))
    return b.define(t.Text, node, tuple(parts))


def _format(b: UnitBuilder, node: cst.CSTNode) -> int:
    return b.define(t.Text, node, tuple(_format_parts(b, node)))


def _format_parts(b: UnitBuilder, node: cst.CSTNode) -> list[int]:
    registers: list[int] = []
    for part in getattr(node, "parts", ()):
        expression = getattr(part, "expression", None)
        if expression is not None:
            registers.append(lower_expression(b, expression))
            for inner in part.format_spec or ():
                if getattr(inner, "expression", None) is not None:
                    registers.append(lower_expression(b, inner.expression))
    return registers


def _attribute(b: UnitBuilder, node: cst.Attribute) -> int:
    base = lower_expression(b, node.value)
    if type(node.value) is cst.Name:
        b.use(node.value.value, node.attr.value)
    return b.define(t.Attribute, node, base, node.attr.value)


def _subscript(b: UnitBuilder, node: cst.Subscript) -> int:
    base = lower_expression(b, node.value)
    return b.define(t.Item, node, base, lower_index(b, node.slice))


def _call(b: UnitBuilder, node: cst.Call) -> int:
    function = node.func
    # `isinstance` of LibCST's abstract classes runs Python code wherever the answer is no.
    if type(function) is cst.Attribute:
        base = lower_expression(b, function.value)
        if type(function.value) is cst.Name:
            b.use(function.value.value, f"{function.attr.value}()")
        arguments = lower_arguments(b, node.args)
        return b.define(t.Invoke, node, base, function.attr.value, arguments)
    callee = lower_expression(b, function)
    return b.define(t.Call, node, callee, lower_arguments(b, node.args))


def lower_arguments(b: UnitBuilder, nodes: Sequence[cst.Arg]) -> tuple[t.Argument, ...]:
    """Lower the arguments of a call, in source order."""
    return tuple(
        [
            t.Argument(lower_expression(b, node.value), node.keyword.value if node.keyword else "", len(node.star))
            for node in nodes
        ]
    )


def _binary(b: UnitBuilder, node: cst.BinaryOperation) -> int:
    left = lower_expression(b, node.left)
    right = lower_expression(b, node.right)
    return b.define(t.Operate, node, BINARY_SYMBOLS[type(node.operator)], (left, right))


def _unary(b: UnitBuilder, node: cst.UnaryOperation) -> int:
    operand = lower_expression(b, node.expression)
    symbol = UNARY_SYMBOLS[type(node.operator)]
    return b.define(t.Logic if symbol == "not" else t.Operate, node, symbol, (operand,))


def _boolean(b: UnitBuilder, node: cst.BooleanOperation) -> int:
    # A long chain nests to the left; it is walked, not recursed into. The operands after the first run only sometimes,
    # but they rarely write anything, so they are lowered as if they always ran.
    symbol = "and" if isinstance(node.operator, cst.And) else "or"
    operands: list[cst.BaseExpression] = []
    current: cst.BaseExpression = node
    while isinstance(current, cst.BooleanOperation) and isinstance(current.operator, type(node.operator)):
        operands.append(current.right)
        current = current.left
    operands.append(current)
    registers = tuple([lower_expression(b, operand) for operand in reversed(operands)])
    return b.define(t.Logic, node, symbol, registers)


def _comparison(b: UnitBuilder, node: cst.Comparison) -> int:
    left = lower_expression(b, node.left)
    result = left
    for target in node.comparisons:
        right = lower_expression(b, target.comparator)
        symbol = COMPARISON_SYMBOLS.get(type(target.operator))
        if symbol is not None:
            result = b.define(t.Operate, node, symbol, (left, right))
        else:
            result = b.define(t.Logic, node, LOGIC_SYMBOLS[type(target.operator)], (left, right))
        left = right
    return result


def _conditional(b: UnitBuilder, node: cst.IfExp) -> int:
    test = lower_expression(b, node.test)
    b.emit(t.Test(test, b.site(node.test)))
    name = b.hidden()
    arms = []
    for truth, arm in ((True, node.body), (False, node.orelse)):
        with b.block() as tape:
            b.emit(t.Assume(test, truth, b.site(node.test)))
            b.bind(name, lower_expression(b, arm), arm)
        arms.append(tuple(tape))
    b.emit(t.Branch(tuple(arms), b.site(node)))
    return b.load(name, node)


def _sequence(b: UnitBuilder, node: cst.Tuple | cst.List | cst.Set) -> int:
    kind = {cst.Tuple: "tuple", cst.List: "list", cst.Set: "set"}[type(node)]
    items = tuple([lower_expression(b, element.value) for element in node.elements])
    stars = tuple([isinstance(element, cst.StarredElement) for element in node.elements])
    return b.define(t.Make, node, kind, (), items, stars)


def _dict(b: UnitBuilder, node: cst.Dict) -> int:
    keys: list[int] = []
    items: list[int] = []
    for element in node.elements:
        keys.append(lower_expression(b, element.key) if isinstance(element, cst.DictElement) else t.NO_REGISTER)
        items.append(lower_expression(b, element.value))
    stars = tuple([key == t.NO_REGISTER for key in keys])
    return b.define(t.Make, node, "dict", tuple(keys), tuple(items), stars)


def _comprehension(b: UnitBuilder, node: cst.ListComp | cst.SetComp | cst.GeneratorExp | cst.DictComp) -> int:
    kinds = {cst.ListComp: "list", cst.SetComp: "set", cst.GeneratorExp: "iterator", cst.DictComp: "dict"}
    container = b.define(t.Make, node, kinds[type(node)], (), (), ())
    renamed = dict(b.renamed)
    try:
        _comprehension_loop(b, node, node.for_in, container)
    finally:
        b.renamed = renamed
    return container


def _comprehension_loop(b: UnitBuilder, node: cst.BaseComp, loop: cst.CompFor, container: int) -> None:
    iterable = lower_expression(b, loop.iter)
    with b.block() as body, b.inside(Frame(True, t.NO_REGISTER)):
        element = b.define(t.Iterate, loop.target, iterable)
        for name in _target_names(loop.target):
            b.renamed[name] = f"{name}#{len(b.file.nodes)}"
        lower_target(b, loop.target, element)
        for condition in loop.ifs:
            test = lower_expression(b, condition.test)
            b.emit(t.Test(test, b.site(condition.test)))
            b.emit(t.Assume(test, True, b.site(condition.test)))
        if loop.inner_for_in is not None:
            _comprehension_loop(b, node, loop.inner_for_in, container)
        else:
            key = lower_expression(b, node.key) if isinstance(node, cst.DictComp) else t.NO_REGISTER
            item = node.value if isinstance(node, cst.DictComp) else node.elt  # type: ignore[attr-defined]
            b.emit(t.Collect(container, key, lower_expression(b, item), b.site(item)))
    b.emit(t.Loop((), tuple(body), (), False, b.site(loop)))


def _target_names(target: cst.CSTNode) -> list[str]:
    if isinstance(target, cst.Name):
        return [target.value]
    if isinstance(target, cst.Tuple | cst.List):
        return [name for element in target.elements for name in _target_names(element.value)]
    if isinstance(target, cst.StarredElement):
        return _target_names(target.value)
    return []


def _walrus(b: UnitBuilder, node: cst.NamedExpr) -> int:
    value = lower_expression(b, node.value)
    if isinstance(node.target, cst.Name):
        # A walrus inside a comprehension binds in the function's own scope.
        renamed = b.renamed.pop(node.target.value, None)
        b.bind(node.target.value, value, node.target)
        loaded = b.load(node.target.value, node)
        if renamed is not None:
            b.renamed[node.target.value] = renamed
        return loaded
    return value


def _lambda(b: UnitBuilder, node: cst.Lambda) -> int:
    return functions.lower_lambda(b, node)


def _await(b: UnitBuilder, node: cst.Await) -> int:
    return lower_expression(b, node.expression)


def _yield(b: UnitBuilder, node: cst.Yield) -> int:
    b.is_generator = True
    if node.value is None:
        value = t.NO_REGISTER
    elif isinstance(node.value, cst.From):
        iterable = lower_expression(b, node.value.item)
        value = b.define(t.Iterate, node, iterable)
    else:
        value = lower_expression(b, node.value)
    return b.define(t.Yield, node, value)


def _ellipsis(b: UnitBuilder, node: cst.Ellipsis) -> int:
    return b.define(t.Const, node, ...)


_HANDLERS: dict[type[cst.CSTNode], Callable[[UnitBuilder, Any], int]] = {
    cst.Name: _name,
    cst.Integer: _number,
    cst.Float: _number,
    cst.Imaginary: _number,
    cst.SimpleString: _string,
    cst.ConcatenatedString: _concatenated,
    cst.FormattedString: _format,
    cst.Attribute: _attribute,
    cst.Subscript: _subscript,
    cst.Call: _call,
    cst.BinaryOperation: _binary,
    cst.UnaryOperation: _unary,
    cst.BooleanOperation: _boolean,
    cst.Comparison: _comparison,
    cst.IfExp: _conditional,
    cst.Tuple: _sequence,
    cst.List: _sequence,
    cst.Set: _sequence,
    cst.Dict: _dict,
    cst.ListComp: _comprehension,
    cst.SetComp: _comprehension,
    cst.GeneratorExp: _comprehension,
    cst.DictComp: _comprehension,
    cst.NamedExpr: _walrus,
    cst.Lambda: _lambda,
    cst.Await: _await,
    cst.Yield: _yield,
    cst.Ellipsis: _ellipsis,
}
_TEMPLATED = getattr(cst, "TemplatedString", None)
if _TEMPLATED is not None:
    _HANDLERS[_TEMPLATED] = _format
