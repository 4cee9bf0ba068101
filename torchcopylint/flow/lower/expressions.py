"""Expressions to events. Each function returns the register that holds the expression's value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torchcopylint.flow import tape as t
from torchcopylint.flow.lower import evidence, functions
from torchcopylint.flow.lower.annotations import dotted_name
from torchcopylint.flow.lower.builder import Frame, UnitBuilder
from torchcopylint.flow.lower.literals import text_of, value_of
from torchcopylint.flow.lower.node import Node, kind
from torchcopylint.knowledge import arity, table

BINARY_SYMBOLS: dict[str, str] = {
    "Add": "+",
    "Subtract": "-",
    "Multiply": "*",
    "Divide": "/",
    "FloorDivide": "//",
    "Modulo": "%",
    "Power": "**",
    "MatrixMultiply": "@",
    "BitAnd": "&",
    "BitOr": "|",
    "BitXor": "^",
    "LeftShift": "<<",
    "RightShift": ">>",
}
UNARY_SYMBOLS: dict[str, str] = {"Minus": "-", "Plus": "+", "BitInvert": "~", "Not": "not"}
COMPARISON_SYMBOLS: dict[str, str] = {
    "LessThan": "<",
    "LessThanEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanEqual": ">=",
    "Equal": "==",
    "NotEqual": "!=",
}
LOGIC_SYMBOLS: dict[str, str] = {
    "Is": "is",
    "IsNot": "is not",
    "In": "in",
    "NotIn": "not in",
}


def lower_expression(b: UnitBuilder, node: Node) -> int:
    """Lower any expression; what is not known becomes a constant without a value."""
    handler = _HANDLERS.get(type(node).__name__)
    return handler(b, node) if handler else b.define(t.Const, node, None)


def lower_target(b: UnitBuilder, target: Node, value: int, annotation: t.Annotation | None = None) -> None:
    """Store a register into an assignment target: a name, an attribute, an item, or a nest of targets."""
    if kind(target) == "Name":
        b.bind(target.value, value, target, annotation)
    elif kind(target) == "Attribute":
        base = lower_expression(b, target.value)
        b.emit(t.StoreAttribute(base, target.attr.value, value, False, b.site(target)))
    elif kind(target) == "Subscript":
        base = lower_expression(b, target.value)
        index = lower_index(b, target.slice)
        b.emit(t.StoreItem(base, index, value, False, b.site(target)))
    elif kind(target) in ("Tuple", "List"):
        star = next((i for i, e in enumerate(target.elements) if kind(e) == "StarredElement"), -1)
        for position, element in enumerate(target.elements):
            known = position if star < 0 or position < star else -1
            part = b.define(t.Unpack, element.value, known, value)
            if position == star:
                # A starred target is a list of its own, whatever it is unpacked from.
                part = b.define(t.Make, element.value, "list", (), (part,), (False,))
            lower_target(b, element.value, part)
    elif kind(target) == "StarredElement":
        lower_target(b, target.value, value)


def lower_index(b: UnitBuilder, elements: Sequence[Node]) -> t.Index:
    """Lower what stands in square brackets, one entry per dimension."""
    index: list[int | t.Slice] = []
    for element in elements:
        part = element.slice
        if kind(part) == "Slice":
            bounds = (
                lower_expression(b, bound) if bound is not None else t.NO_REGISTER
                for bound in (part.lower, part.upper, part.step)
            )
            index.append(t.Slice(*list(bounds)))
        elif kind(part) == "Index":
            value = part.value
            if kind(value) == "Tuple" and len(elements) == 1 and value.elements:
                # `x[(a, b)]` and `x[a, b]` are the same thing.
                index.extend(lower_expression(b, item.value) for item in value.elements)
            else:
                index.append(lower_expression(b, value))
    return tuple(index)


_NAMED_CONSTANTS = {"True": True, "False": False, "None": None}


def _name(b: UnitBuilder, node: Node) -> int:
    name = node.value
    if name in _NAMED_CONSTANTS:
        return b.define(t.Const, node, _NAMED_CONSTANTS[name])
    return b.load(name, node)


def _number(b: UnitBuilder, node: Node) -> int:
    value = value_of(node)
    # Nobody indexes with a number of many digits.
    known = isinstance(value, float | complex) or (isinstance(value, int) and value.bit_length() <= 128)
    return b.define(t.Const, node, value if known else 0)


def _string(b: UnitBuilder, node: Node) -> int:
    value = text_of(node)
    if value is None:
        return _format(b, node)
    return b.define(t.Const, node, value)


def _format(b: UnitBuilder, node: Node) -> int:
    return b.define(t.Text, node, tuple(_format_parts(b, node)))


def _format_parts(b: UnitBuilder, node: Node) -> list[int]:
    registers: list[int] = []
    while kind(node) == "ConcatenatedString":
        registers.extend(_format_parts(b, node.left))
        node = node.right
    for part in getattr(node, "parts", ()):
        expression = getattr(part, "expression", None)
        if expression is not None:
            registers.append(lower_expression(b, expression))
            for inner in part.format_spec or ():
                if getattr(inner, "expression", None) is not None:
                    registers.append(lower_expression(b, inner.expression))
    return registers


def _attribute(b: UnitBuilder, node: Node) -> int:
    base = lower_expression(b, node.value)
    if kind(node.value) == "Name":
        b.use(node.value.value, node.attr.value)
    return b.define(t.Attribute, node, base, node.attr.value)


def _subscript(b: UnitBuilder, node: Node) -> int:
    base = lower_expression(b, node.value)
    return b.define(t.Item, node, base, lower_index(b, node.slice))


_WHOLE_NUMBERS = frozenset({"Integer", "UnaryOperation"})


def _call(b: UnitBuilder, node: Node) -> int:
    function = node.func
    # `isinstance` of LibCST's abstract classes runs Python code wherever the answer is no.
    if kind(function) == "Attribute":
        base = lower_expression(b, function.value)
        if kind(function.value) == "Name":
            more = function.attr.value in arity.BARE and any(not one.keyword and not one.star for one in node.args)
            # No tensor runs backward over something else.
            more = more or (function.attr.value in _BACKWARD and _is_loss(node.args))
            b.use(function.value.value, t.HANDED_TO + t.WITH_MORE if more else f"{function.attr.value}()")
            if any(one.keyword and one.keyword.value == t.KEEPDIM for one in node.args):
                b.use(function.value.value, t.HANDED_TO + t.KEEPDIM)
            if function.attr.value == "size" and node.args and kind(node.args[0].value) in _WHOLE_NUMBERS:
                # `x.size(0)`: others have a size, but none that takes a dimension, except what holds a tensor.
                b.use(function.value.value, t.HANDED_TO + t.OF_TENSOR)
        if function.attr.value == t.FROM_NUMPY and node.args:
            _make_tensor_of(b, node.args[0].value)
        _hand(b, node)
        evidence.of_difference(b, node)
        evidence.of_put(b, node)
        _run_backward(b, node)
        arguments = lower_arguments(b, node.args)
        return b.define(t.Invoke, node, base, function.attr.value, arguments)
    if kind(function) == "Name" and function.value == "map" and _are_plain(node.args) and "map" not in b.bound:
        return _map(b, node)
    callee = lower_expression(b, function)
    _hand(b, node)
    return b.define(t.Call, node, callee, lower_arguments(b, node.args))


_SAME_TYPE = frozenset({"copy", "astype", "swapaxes"})
"""Methods that hand back an array only if they are an array's: those of numbers, tables and lists make their like."""


def _make_tensor_of(b: UnitBuilder, given: Node) -> None:
    """`torch.from_numpy(x)`, and `torch.from_numpy(x.astype("float32").copy())`: `x` is an array."""
    while kind(given) == "Call" and kind(given.func) == "Attribute" and given.func.attr.value in _SAME_TYPE:
        given = given.func.value
    if kind(given) == "Name":
        b.use(given.value, t.HANDED_TO + t.FROM_NUMPY)


def _hand(b: UnitBuilder, node: Node) -> None:
    """Note what takes a name as its first argument, if that says something of what it holds."""
    first = node.args[0] if node.args else None
    if first is None or first.star or first.keyword:
        return
    root, dot, rest = dotted_name(node.func).partition(".")
    if f"{b.file.imported.get(root, root)}{dot}{rest}" in evidence.JOINING:
        evidence.of_joined(b, first.value)
    if kind(first.value) != "Name":
        return
    if root == "self" and rest and "." not in rest:
        b.use(first.value.value, t.HANDED_TO + t.OF_FIELD + rest)
    dotted = f"{b.file.imported.get(root, root)}{dot}{rest}"
    if dotted == "isinstance" or dotted.startswith(("torch.is_", "numpy.")):
        b.use(first.value.value, t.HANDED_TO + t.ASKED)
    elif dotted.startswith("torch.") and table.refuses_others(table.canonical(dotted)):
        b.use(first.value.value, t.HANDED_TO + t.OF_TENSOR)


_BACKWARD = frozenset({"backward", "manual_backward"})


def _run_backward(b: UnitBuilder, node: Node) -> None:
    """`accelerator.backward(loss)`, `scaler.scale(loss).backward()`: backward runs over what is called a loss."""
    if node.func.attr.value not in _BACKWARD:
        return
    behind = node.func.value
    scaled = kind(behind) == "Call" and kind(behind.func) == "Attribute" and behind.func.attr.value == "scale"
    given = behind.args if scaled and not node.args else node.args
    if _is_loss(given):
        b.use(given[0].value.value, "backward()")


def _is_loss(arguments: Sequence[Node]) -> bool:
    named = len(arguments) == 1 and kind(arguments[0].value) == "Name" and not arguments[0].keyword
    return named and "loss" in arguments[0].value.value.lower()


def _are_plain(arguments: Sequence[Node]) -> bool:
    return len(arguments) > 1 and not any(one.keyword or one.star for one in arguments)


def _map(b: UnitBuilder, node: Node) -> int:
    """`map(f, xs)` is `(f(x) for x in xs)`: what `f` makes of one item is not what it makes of another. Of several
    things to go through it takes an item each; `map(self.f, xs)` calls a method."""
    function, *items = (one.value for one in node.args)
    of_object = kind(function) == "Attribute"
    callee = lower_expression(b, function.value if of_object else function)
    if of_object and kind(function.value) == "Name":
        b.use(function.value.value, f"{function.attr.value}()")
    container = b.define(t.Make, node, "iterator", (), (), ())
    iterables = [lower_expression(b, one) for one in items]
    with b.block() as body, b.inside(Frame(True, t.NO_REGISTER)):
        elements = [b.define(t.Iterate, one, iterable) for one, iterable in zip(items, iterables, strict=True)]
        given = tuple(t.Argument(element, "", 0) for element in elements)
        if of_object:
            called = b.define(t.Invoke, function, callee, function.attr.value, given)
        else:
            called = b.define(t.Call, function, callee, given)
        b.emit(t.Collect(container, t.NO_REGISTER, called, b.site(function)))
    b.emit(t.Loop((), tuple(body), (), False, b.site(node)))
    return container


def lower_arguments(b: UnitBuilder, nodes: Sequence[Node]) -> tuple[t.Argument, ...]:
    """Lower the arguments of a call, in source order."""
    return tuple(
        [
            t.Argument(lower_expression(b, node.value), node.keyword.value if node.keyword else "", len(node.star))
            for node in nodes
        ]
    )


def _binary(b: UnitBuilder, node: Node) -> int:
    left = lower_expression(b, node.left)
    right = lower_expression(b, node.right)
    for side in (node.left, node.right):
        if kind(side) == "Name":
            b.use(side.value, t.HANDED_TO + t.OPERAND)
    return b.define(t.Operate, node, BINARY_SYMBOLS[kind(node.operator)], (left, right))


def _unary(b: UnitBuilder, node: Node) -> int:
    operand = lower_expression(b, node.expression)
    symbol = UNARY_SYMBOLS[kind(node.operator)]
    return b.define(t.Logic if symbol == "not" else t.Operate, node, symbol, (operand,))


def _boolean(b: UnitBuilder, node: Node) -> int:
    # A long chain nests to the left; it is walked, not recursed into. The operands after the first run only sometimes,
    # but they rarely write anything, so they are lowered as if they always ran.
    symbol = "and" if kind(node.operator) == "And" else "or"
    operands: list[Node] = []
    current: Node = node
    while kind(current) == "BooleanOperation" and kind(current.operator) == kind(node.operator):
        operands.append(current.right)
        current = current.left
    operands.append(current)
    registers = tuple([lower_expression(b, operand) for operand in reversed(operands)])
    return b.define(t.Logic, node, symbol, registers)


def _comparison(b: UnitBuilder, node: Node) -> int:
    left = lower_expression(b, node.left)
    result = left
    for target in node.comparisons:
        right = lower_expression(b, target.comparator)
        symbol = COMPARISON_SYMBOLS.get(kind(target.operator))
        if symbol is not None:
            result = b.define(t.Operate, node, symbol, (left, right))
        else:
            result = b.define(t.Logic, node, LOGIC_SYMBOLS[kind(target.operator)], (left, right))
        left = right
    return result


def _conditional(b: UnitBuilder, node: Node) -> int:
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


def _sequence(b: UnitBuilder, node: Node) -> int:
    made = {"Tuple": "tuple", "List": "list", "Set": "set"}[kind(node)]
    items = tuple([lower_expression(b, element.value) for element in node.elements])
    stars = tuple([kind(element) == "StarredElement" for element in node.elements])
    return b.define(t.Make, node, made, (), items, stars)


def _dict(b: UnitBuilder, node: Node) -> int:
    keys: list[int] = []
    items: list[int] = []
    for element in node.elements:
        keys.append(lower_expression(b, element.key) if kind(element) == "DictElement" else t.NO_REGISTER)
        items.append(lower_expression(b, element.value))
    stars = tuple([key == t.NO_REGISTER for key in keys])
    return b.define(t.Make, node, "dict", tuple(keys), tuple(items), stars)


def _comprehension(b: UnitBuilder, node: Node) -> int:
    kinds = {"ListComp": "list", "SetComp": "set", "GeneratorExp": "iterator", "DictComp": "dict"}
    container = b.define(t.Make, node, kinds[kind(node)], (), (), ())
    renamed = dict(b.renamed)
    try:
        _comprehension_loop(b, node, node.for_in, container)
    finally:
        b.renamed = renamed
    return container


def passed_through(iterable: Node) -> Node | None:
    """The generator expression that a loop goes through, if that is what stands there: each turn makes one thing."""
    plain = kind(iterable) == "GeneratorExp" and iterable.for_in.inner_for_in is None
    return iterable if plain else None


def lower_turn(b: UnitBuilder, target: Node, iterable: int, within: Node | None) -> int:
    """What a turn of a loop comes upon: the next element, or what a generator expression makes of the next one."""
    if within is None:
        return b.define(t.Iterate, target, iterable)
    renamed = dict(b.renamed)
    try:
        _take_next(b, within.for_in, b.define(t.Iterate, within.for_in.target, iterable))
        return lower_expression(b, within.elt)
    finally:
        b.renamed = renamed


def _take_next(b: UnitBuilder, loop: Node, element: int) -> None:
    """The names of a comprehension are bound, and its conditions looked at."""
    for name in _target_names(loop.target):
        b.renamed[name] = f"{name}#{len(b.file.nodes)}"
    lower_target(b, loop.target, element)
    for condition in loop.ifs:
        test = lower_expression(b, condition.test)
        b.emit(t.Test(test, b.site(condition.test)))
        b.emit(t.Assume(test, True, b.site(condition.test)))


def _comprehension_loop(b: UnitBuilder, node: Node, loop: Node, container: int) -> None:
    within = passed_through(loop.iter)
    iterable = lower_expression(b, loop.iter if within is None else within.for_in.iter)
    with b.block() as body, b.inside(Frame(True, t.NO_REGISTER)):
        element = lower_turn(b, loop.target, iterable, within)
        _take_next(b, loop, element)
        if loop.inner_for_in is not None:
            _comprehension_loop(b, node, loop.inner_for_in, container)
        else:
            key = lower_expression(b, node.key) if kind(node) == "DictComp" else t.NO_REGISTER
            item = node.value if kind(node) == "DictComp" else node.elt
            b.emit(t.Collect(container, key, lower_expression(b, item), b.site(item)))
    b.emit(t.Loop((), tuple(body), (), False, b.site(loop)))


def _target_names(target: Node) -> list[str]:
    if kind(target) == "Name":
        return [target.value]
    if kind(target) in ("Tuple", "List"):
        return [name for element in target.elements for name in _target_names(element.value)]
    if kind(target) == "StarredElement":
        return _target_names(target.value)
    return []


def _walrus(b: UnitBuilder, node: Node) -> int:
    value = lower_expression(b, node.value)
    if kind(node.target) == "Name":
        # A walrus inside a comprehension binds in the function's own scope.
        renamed = b.renamed.pop(node.target.value, None)
        b.bind(node.target.value, value, node.target)
        loaded = b.load(node.target.value, node)
        if renamed is not None:
            b.renamed[node.target.value] = renamed
        return loaded
    return value


def _lambda(b: UnitBuilder, node: Node) -> int:
    return functions.lower_lambda(b, node)


def _await(b: UnitBuilder, node: Node) -> int:
    return lower_expression(b, node.expression)


def _yield(b: UnitBuilder, node: Node) -> int:
    b.is_generator = True
    if node.value is None:
        value = t.NO_REGISTER
    elif kind(node.value) == "From":
        iterable = lower_expression(b, node.value.item)
        value = b.define(t.Iterate, node, iterable)
    else:
        value = lower_expression(b, node.value)
    return b.define(t.Yield, node, value)


def _ellipsis(b: UnitBuilder, node: Node) -> int:
    return b.define(t.Const, node, ...)


_HANDLERS: dict[str, Callable[[UnitBuilder, Any], int]] = {
    "Name": _name,
    "Integer": _number,
    "Float": _number,
    "Imaginary": _number,
    "SimpleString": _string,
    "ConcatenatedString": _string,
    "FormattedString": _format,
    "TemplatedString": _format,
    "Attribute": _attribute,
    "Subscript": _subscript,
    "Call": _call,
    "BinaryOperation": _binary,
    "UnaryOperation": _unary,
    "BooleanOperation": _boolean,
    "Comparison": _comparison,
    "IfExp": _conditional,
    "Tuple": _sequence,
    "List": _sequence,
    "Set": _sequence,
    "Dict": _dict,
    "ListComp": _comprehension,
    "SetComp": _comprehension,
    "GeneratorExp": _comprehension,
    "DictComp": _comprehension,
    "NamedExpr": _walrus,
    "Lambda": _lambda,
    "Await": _await,
    "Yield": _yield,
    "Ellipsis": _ellipsis,
}
