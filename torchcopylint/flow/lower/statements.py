"""Statements to events and brackets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchcopylint.flow import tape as t
from torchcopylint.flow.lower import expressions, functions, patterns, post_init, records
from torchcopylint.flow.lower.annotations import dotted_name, lower_annotation
from torchcopylint.flow.lower.builder import NO_SITE, Frame, UnitBuilder
from torchcopylint.flow.lower.literals import value_of
from torchcopylint.flow.lower.node import Node, kind

AUGMENTED_SYMBOLS: dict[str, str] = {
    "AddAssign": "+=",
    "SubtractAssign": "-=",
    "MultiplyAssign": "*=",
    "DivideAssign": "/=",
    "FloorDivideAssign": "//=",
    "ModuloAssign": "%=",
    "PowerAssign": "**=",
    "MatrixMultiplyAssign": "@=",
    "BitAndAssign": "&=",
    "BitOrAssign": "|=",
    "BitXorAssign": "^=",
    "LeftShiftAssign": "<<=",
    "RightShiftAssign": ">>=",
}


def lower_body(b: UnitBuilder, body: Node) -> None:
    """Lower the statements of a block or of the whole module."""
    if kind(body) == "SimpleStatementSuite":
        b.statement = b.site(body)
        for small in body.body:
            _lower_small(b, small)
        return
    for statement in body.body:
        if kind(statement) == "SimpleStatementLine":
            b.statement = NO_SITE
            b.statement = b.site(statement)
            for small in statement.body:
                _lower_small(b, small)
        else:
            # The head of a compound statement is the statement of what stands in it; see `_head`.
            b.statement = NO_SITE
            handler = _COMPOUND.get(type(statement).__name__)
            if handler is not None:
                handler(b, statement)


def lower_class_body(
    b: UnitBuilder,
    node: Node,
    index: int,
    methods: dict[str, int],
    fields: dict[str, t.Annotation],
) -> None:
    """Lower the body of a class; fills in its methods' units and its annotated fields."""
    set_by_call = post_init.fields_of(node)
    for statement in node.body.body:
        b.statement = NO_SITE
        if kind(statement) == "FunctionDef":
            begins = set_by_call is not None and statement.name.value == post_init.NAME
            if begins:
                register = post_init.lower_post_init(b, statement, index, set_by_call or [])
            else:
                register = functions.lower_function(b, statement, index)
            function = b.definitions[register]
            if isinstance(function, t.Function):
                methods["__init__" if begins else statement.name.value] = function.unit
            b.bind(statement.name.value, register, statement.name)
        elif kind(statement) == "SimpleStatementLine":
            b.statement = b.site(statement)
            for small in statement.body:
                if kind(small) == "AnnAssign" and kind(small.target) == "Name":
                    annotation = lower_annotation(small.annotation.annotation)
                    if annotation is not None:
                        fields[small.target.value] = annotation
                _lower_small(b, small)
        elif kind(statement) in _SMALL:
            _lower_small(b, statement)
        else:
            handler = _COMPOUND.get(type(statement).__name__)
            if handler is not None:
                handler(b, statement)


def _lower_small(b: UnitBuilder, node: Node) -> None:
    handler = _SMALL.get(type(node).__name__)
    if handler is not None:
        handler(b, node)


def _head(b: UnitBuilder, node: Node) -> None:
    b.statement = NO_SITE
    b.statement = b.site(node)


def _expression(b: UnitBuilder, node: Node) -> None:
    value = expressions.lower_expression(b, node.value)
    b.emit(t.Discard(value, b.site(node.value)))


def _assign(b: UnitBuilder, node: Node) -> None:
    if (pairs := _fields_from_names(node)) is not None:
        values = [expressions.lower_expression(b, item) for _, item in pairs]
        for (target, _), value in zip(pairs, values, strict=True):
            expressions.lower_target(b, target, value)
        return
    record = records.lower_record(b, node.value)
    value = record if record is not None else expressions.lower_expression(b, node.value)
    for target in node.targets:
        expressions.lower_target(b, target.target, value)


def _fields_from_names(node: Node) -> list[tuple[Node, Node]] | None:
    """`self.net, self.target = net, target`: which field gets what which name holds; `None` of any other assignment."""
    target, value = node.targets[0].target, node.value
    if len(node.targets) != 1 or kind(target) != "Tuple" or kind(value) != "Tuple":
        return None
    pairs = list(zip(target.elements, value.elements, strict=False))
    alike = len(target.elements) == len(value.elements) and all(
        kind(one) == "Element" for pair in pairs for one in pair
    )
    if not alike or any(kind(one.value) != "Attribute" or kind(other.value) != "Name" for one, other in pairs):
        return None
    return [(one.value, other.value) for one, other in pairs]


def _annotated(b: UnitBuilder, node: Node) -> None:
    if node.value is not None:
        annotation = lower_annotation(node.annotation.annotation)
        expressions.lower_target(b, node.target, expressions.lower_expression(b, node.value), annotation)


def _augmented(b: UnitBuilder, node: Node) -> None:
    symbol = AUGMENTED_SYMBOLS[kind(node.operator)]
    target = node.target
    if kind(target) == "Attribute":
        base = expressions.lower_expression(b, target.value)
        if kind(target.value) == "Name":
            b.use(target.value.value, target.attr.value)
        old = b.define(t.Attribute, target, base, target.attr.value)
        new = _augment(b, node, symbol, old)
        b.emit(t.StoreAttribute(base, target.attr.value, new, True, b.site(target)))
    elif kind(target) == "Subscript":
        base = expressions.lower_expression(b, target.value)
        index = expressions.lower_index(b, target.slice)
        old = b.define(t.Item, target, base, index)
        new = _augment(b, node, symbol, old)
        b.emit(t.StoreItem(base, index, new, True, b.site(target)))
    elif kind(target) == "Name":
        old = b.load(target.value, target)
        b.use(target.value, t.HANDED_TO + t.OPERAND)
        b.rebind(target.value, _augment(b, node, symbol, old), target)


def _augment(b: UnitBuilder, node: Node, symbol: str, old: int) -> int:
    value = expressions.lower_expression(b, node.value)
    return b.define(t.Augment, node, symbol, old, value)


def _return(b: UnitBuilder, node: Node) -> None:
    value = expressions.lower_expression(b, node.value) if node.value is not None else t.NO_REGISTER
    outermost = next((frame.manager for frame in b.frames if not frame.is_loop), t.NO_REGISTER)
    b.emit(t.Return(value, b.site(node), outermost))


def _raise(b: UnitBuilder, node: Node) -> None:
    if node.exc is not None:
        expressions.lower_expression(b, node.exc)
    b.emit(t.Raise(b.site(node)))


def _assert(b: UnitBuilder, node: Node) -> None:
    test = expressions.lower_expression(b, node.test)
    b.emit(t.Test(test, b.site(node.test)))
    b.emit(t.Assume(test, True, b.site(node.test)))
    if node.msg is not None:
        expressions.lower_expression(b, node.msg)


def _delete(b: UnitBuilder, node: Node) -> None:
    whole = node.target
    targets = [e.value for e in whole.elements] if kind(whole) in ("Tuple", "List") else [whole]
    for target in targets:
        if kind(target) == "Name":
            b.emit(t.Delete(b.renamed.get(target.value, target.value), b.site(target)))
        elif kind(target) == "Attribute":
            base = expressions.lower_expression(b, target.value)
            b.emit(t.DeleteItem(base, target.attr.value, b.site(target)))
        elif kind(target) == "Subscript":
            base = expressions.lower_expression(b, target.value)
            index = expressions.lower_index(b, target.slice)
            b.emit(t.DeleteItem(base, "", b.site(target), index))


def _break(b: UnitBuilder, node: Node) -> None:
    b.leave_managers(node)
    b.emit(t.Break(b.site(node)))


def _continue(b: UnitBuilder, node: Node) -> None:
    b.leave_managers(node)
    b.emit(t.Continue(b.site(node)))


def _global(b: UnitBuilder, node: Node) -> None:
    for item in node.names:
        b.outer.add(item.name.value)


def _import(b: UnitBuilder, node: Node) -> None:
    for alias in node.names:
        dotted = dotted_name(alias.name)
        if alias.asname is not None and kind(alias.asname.name) == "Name":
            name = alias.asname.name.value
        else:
            # `import a.b` binds `a`.
            name = dotted = dotted.partition(".")[0]
        b.file.imported[name] = dotted
        b.bind(name, b.define(t.Import, alias, t.Dotted(dotted)), alias)


def _import_from(b: UnitBuilder, node: Node) -> None:
    module = "." * len(node.relative) + (dotted_name(node.module) if node.module is not None else "")
    if kind(node.names) == "ImportStar":
        b.emit(t.StarImport(t.Dotted(module), b.site(node)))
        return
    for alias in node.names:
        imported = dotted_name(alias.name)
        name = imported
        if alias.asname is not None and kind(alias.asname.name) == "Name":
            name = alias.asname.name.value
        separator = "" if module.endswith(".") else "."
        b.file.imported[name] = f"{module}{separator}{imported}"
        b.bind(name, b.define(t.Import, alias, t.Dotted(f"{module}{separator}{imported}")), alias)


def _function(b: UnitBuilder, node: Node) -> None:
    b.bind(node.name.value, functions.lower_function(b, node, -1), node.name)


def _class(b: UnitBuilder, node: Node) -> None:
    b.bind(node.name.value, functions.lower_class(b, node), node.name)


def _if(b: UnitBuilder, node: Node) -> None:
    if node.orelse is None and _always_holds(b, node.test):
        # Nothing in it is done on some paths only.
        _head(b, node.test)
        b.emit(t.Test(expressions.lower_expression(b, node.test), b.site(node.test)))
        lower_body(b, node.body)
        return
    # A chain of `elif` is walked, not recursed into: each `else` is a bracket inside the one before.
    opened: list[tuple[Node, tuple[t.Event, ...], list[t.Event], int]] = []
    current: Node = node
    bindings: list[dict[str, str]] = []
    filled: set[str] = set()
    while kind(current) == "If":
        filled.update(_asked_for_none(current.test))
        _head(b, current.test)
        test = expressions.lower_expression(b, current.test)
        b.emit(t.Test(test, b.site(current.test)))
        with b.block() as body, b.arm(bindings):
            b.emit(t.Assume(test, True, b.site(current.test)))
            lower_body(b, current.body)
        opened.append((current, tuple(body), b.tape, test))
        b.tape = [t.Assume(test, False, b.site(current.test))]
        current = current.orelse
    with b.arm(bindings):
        if kind(current) == "Else":
            lower_body(b, current.body)
    b.join(bindings, filled)
    for chained, arm, outer, _ in reversed(opened):
        otherwise = tuple(b.tape)
        b.tape = outer
        b.emit(t.Branch((arm, otherwise), b.site(chained)))


def _asked_for_none(test: Node) -> tuple[str, ...]:
    """The name that a test says to be `None`, or not to be: `x is None`."""
    if kind(test) != "Comparison" or len(test.comparisons) != 1 or kind(test.left) != "Name":
        return ()
    compared = test.comparisons[0]
    with_none = kind(compared.comparator) == "Name" and compared.comparator.value == "None"
    return (test.left.value,) if with_none and kind(compared.operator) in ("Is", "IsNot") else ()


def _always_holds(b: UnitBuilder, test: Node) -> bool:
    """Whether a test is a constant, or asks whether the file is run as a program, which is what it is looked at as."""
    if _is_true(test):
        return True
    if b.kind != "module" or kind(test) != "Comparison" or len(test.comparisons) != 1:
        return False
    compared = test.comparisons[0]
    sides = (test.left, compared.comparator)
    names = [side.value for side in sides if kind(side) == "Name"]
    texts = [value_of(side) for side in sides if kind(side) == "SimpleString"]
    return kind(compared.operator) == "Equal" and names == ["__name__"] and texts == ["__main__"]


def _is_true(test: Node) -> bool:
    return (kind(test) == "Name" and test.value == "True") or (kind(test) == "Integer" and value_of(test) != 0)


def _while(b: UnitBuilder, node: Node) -> None:
    _head(b, node.test)
    endless = _is_true(node.test)
    with b.block() as head:
        test = expressions.lower_expression(b, node.test)
        b.emit(t.Test(test, b.site(node.test)))
    with b.block() as body, b.inside(Frame(True, t.NO_REGISTER)):
        b.emit(t.Assume(test, True, b.site(node.test)))
        lower_body(b, node.body)
    with b.block() as orelse:
        b.emit(t.Assume(test, False, b.site(node.test)))
        if node.orelse is not None:
            lower_body(b, node.orelse.body)
    b.emit(t.Loop(tuple(head), tuple(body), tuple(orelse), endless, b.site(node)))


def _for(b: UnitBuilder, node: Node) -> None:
    _head(b, node.iter)
    within = expressions.passed_through(node.iter)
    iterable = expressions.lower_expression(b, node.iter if within is None else within.for_in.iter)
    with b.block() as body, b.inside(Frame(True, t.NO_REGISTER)):
        _head(b, node.target)
        element = expressions.lower_turn(b, node.target, iterable, within)
        expressions.lower_target(b, node.target, element)
        lower_body(b, node.body)
    with b.block() as orelse:
        if node.orelse is not None:
            lower_body(b, node.orelse.body)
    b.emit(t.Loop((), tuple(body), tuple(orelse), False, b.site(node)))


def _try(b: UnitBuilder, node: Node) -> None:
    with b.block() as body:
        lower_body(b, node.body)
    handlers = []
    for handler in node.handlers:
        with b.block() as tape:
            if handler.type is not None:
                _head(b, handler.type)
                expressions.lower_expression(b, handler.type)
            if handler.name is not None and kind(handler.name.name) == "Name":
                name = handler.name.name
                b.bind(name.value, b.define(t.Const, name, None), name)
            lower_body(b, handler.body)
        handlers.append(tuple(tape))
    with b.block() as orelse:
        if node.orelse is not None:
            lower_body(b, node.orelse.body)
    with b.block() as final:
        if node.finalbody is not None:
            lower_body(b, node.finalbody.body)
    b.emit(t.Try(tuple(body), tuple(handlers), tuple(orelse), tuple(final), b.site(node)))


def _with(b: UnitBuilder, node: Node) -> None:
    managers = []
    for item in node.items:
        _head(b, item.item)
        manager = expressions.lower_expression(b, item.item)
        entered = b.define(t.Enter, item.item, manager)
        managers.append(manager)
        b.frames.append(Frame(False, manager))
        if item.asname is not None:
            expressions.lower_target(b, item.asname.name, entered)
    lower_body(b, node.body)
    for manager in reversed(managers):
        b.frames.pop()
        b.emit(t.Exit(manager, b.site(node)))


def _match(b: UnitBuilder, node: Node) -> None:
    _head(b, node.subject)
    subject = expressions.lower_expression(b, node.subject)
    b.emit(t.Test(subject, b.site(node.subject)))
    arms: list[t.Tape] = []
    for case in node.cases:
        with b.block() as arm:
            _head(b, case.pattern)
            patterns.lower_pattern(b, case.pattern, subject)
            if case.guard is not None:
                test = expressions.lower_expression(b, case.guard)
                b.emit(t.Assume(test, True, b.site(case.guard)))
            lower_body(b, case.body)
        arms.append(tuple(arm))
    if not any(patterns.always_matches(case) for case in node.cases):
        arms.append(())
    b.emit(t.Branch(tuple(arms), b.site(node)))


_SMALL: dict[str, Callable[[UnitBuilder, Any], None]] = {
    "Expr": _expression,
    "Assign": _assign,
    "AnnAssign": _annotated,
    "AugAssign": _augmented,
    "Return": _return,
    "Raise": _raise,
    "Assert": _assert,
    "Del": _delete,
    "Break": _break,
    "Continue": _continue,
    "Global": _global,
    "Nonlocal": _global,
    "Import": _import,
    "ImportFrom": _import_from,
}
_COMPOUND: dict[str, Callable[[UnitBuilder, Any], None]] = {
    "If": _if,
    "While": _while,
    "For": _for,
    "Try": _try,
    "TryStar": _try,
    "With": _with,
    "Match": _match,
    "FunctionDef": _function,
    "ClassDef": _class,
}
