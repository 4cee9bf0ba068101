"""Statements of a light tree, from Python's."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Sequence
from types import SimpleNamespace as Node
from typing import Any

from torchcopylint.flow.light import shapes as s
from torchcopylint.flow.light.expressions import annotation, arguments, elements, expression, optional, parameters
from torchcopylint.flow.light.patterns import pattern


class Reader:
    """The statements of a text, which says what stands on one line."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts = [0, *(found.end() for found in _LINE_END.finditer(text))]

    def block(self, body: Sequence[ast.stmt]) -> list[Node]:
        """The statements of a block. Those that `;` joins are one line."""
        found: list[Node] = []
        end = 0
        for node in body:
            compound = self._compound(node)
            if compound is not None:
                found.append(compound)
                end = 0
            elif node.lineno == end:
                found[-1].body.append(_small(node))
                end = node.end_lineno or 0
            else:
                found.append(s.SimpleStatementLine(body=[_small(node)]))
                end = node.end_lineno or 0
        return found

    def _suite(self, body: Sequence[ast.stmt]) -> Node:
        """What stands behind a colon: a block below it, or statements on the same line."""
        first = body[0]
        start = self._starts[first.lineno - 1]
        # The column counts bytes; where it counts others than blanks, it does not matter how many.
        if self._text[start : start + first.col_offset].strip(" \t\f"):
            return s.SimpleStatementSuite(body=[_small(node) for node in body])
        return s.IndentedBlock(body=self.block(body))

    def _else(self, body: Sequence[ast.stmt]) -> Node | None:
        return s.Else(body=self._suite(body)) if body else None

    def _compound(self, node: ast.stmt) -> Node | None:
        """The node of a statement that has blocks; `None` for others."""
        handler = _COMPOUND.get(type(node))
        if handler is None:
            return None
        found = handler(self, node)
        found.at = node
        return found

    def _if(self, node: ast.If) -> Node:
        # A chain of `elif` is walked, not recursed into. An `if` that is all there is in an `else` is lowered alike.
        chain = [node]
        while len(chain[-1].orelse) == 1 and isinstance(following := chain[-1].orelse[0], ast.If):
            chain.append(following)
        orelse = self._else(chain[-1].orelse)
        for link in reversed(chain):
            orelse = s.If(test=expression(link.test), body=self._suite(link.body), orelse=orelse, at=link)
        assert orelse is not None
        return orelse

    def _while(self, node: ast.While) -> Node:
        return s.While(test=expression(node.test), body=self._suite(node.body), orelse=self._else(node.orelse))

    def _for(self, node: ast.For | ast.AsyncFor) -> Node:
        target, source = expression(node.target), expression(node.iter)
        return s.For(target=target, iter=source, body=self._suite(node.body), orelse=self._else(node.orelse))

    def _try(self, node: ast.Try | ast.TryStar) -> Node:
        final = s.Finally(body=self._suite(node.finalbody)) if node.finalbody else None
        handlers = [
            s.ExceptHandler(type=optional(one.type), name=_as_name(one.name), body=self._suite(one.body))
            for one in node.handlers
        ]
        return s.Try(body=self._suite(node.body), handlers=handlers, orelse=self._else(node.orelse), finalbody=final)

    def _with(self, node: ast.With | ast.AsyncWith) -> Node:
        items = [
            s.WithItem(
                item=expression(one.context_expr),
                asname=s.AsName(name=expression(one.optional_vars)) if one.optional_vars is not None else None,
            )
            for one in node.items
        ]
        return s.With(items=items, body=self._suite(node.body))

    def _match(self, node: ast.Match) -> Node:
        cases = [
            s.MatchCase(pattern=pattern(case.pattern), guard=optional(case.guard), body=self._suite(case.body))
            for case in node.cases
        ]
        return s.Match(subject=expression(node.subject), cases=cases)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Node:
        return s.FunctionDef(
            name=s.Name(value=node.name, at=node),
            params=parameters(node.args),
            body=self._suite(node.body),
            decorators=[s.Decorator(decorator=expression(one)) for one in node.decorator_list],
            returns=annotation(node.returns),
        )

    def _class(self, node: ast.ClassDef) -> Node:
        return s.ClassDef(
            name=s.Name(value=node.name, at=node),
            bases=arguments(node.bases, ()),
            body=self._suite(node.body),
            decorators=[s.Decorator(decorator=expression(one)) for one in node.decorator_list],
        )


_LINE_END = re.compile(r"\r\n|\r|\n")
_COMPOUND: dict[type[ast.stmt], Callable[[Reader, Any], Node]] = {
    ast.If: Reader._if,
    ast.While: Reader._while,
    ast.For: Reader._for,
    ast.AsyncFor: Reader._for,
    ast.Try: Reader._try,
    ast.TryStar: Reader._try,
    ast.With: Reader._with,
    ast.AsyncWith: Reader._with,
    ast.Match: Reader._match,
    ast.FunctionDef: Reader._function,
    ast.AsyncFunctionDef: Reader._function,
    ast.ClassDef: Reader._class,
}


def _small(node: ast.stmt) -> Node:
    """The node of a statement without blocks. Raises `ValueError` for what is newer than this code."""
    handler = _SMALL.get(type(node))
    if handler is None:
        raise ValueError(type(node).__name__)
    found = handler(node)
    found.at = node
    return found


def _expression_statement(node: ast.Expr) -> Node:
    return s.Expr(value=expression(node.value))


def _assign(node: ast.Assign) -> Node:
    targets = [s.AssignTarget(target=expression(target)) for target in node.targets]
    return s.Assign(targets=targets, value=expression(node.value))


def _annotated(node: ast.AnnAssign) -> Node:
    return s.AnnAssign(
        target=expression(node.target), annotation=annotation(node.annotation), value=optional(node.value)
    )


def _augmented(node: ast.AugAssign) -> Node:
    operator = _AUGMENTED[type(node.op)]
    return s.AugAssign(target=expression(node.target), operator=operator, value=expression(node.value))


def _return(node: ast.Return) -> Node:
    return s.Return(value=optional(node.value))


def _raise(node: ast.Raise) -> Node:
    return s.Raise(exc=optional(node.exc))


def _assert(node: ast.Assert) -> Node:
    return s.Assert(test=expression(node.test), msg=optional(node.msg))


def _delete(node: ast.Delete) -> Node:
    targets = node.targets
    return s.Del(target=expression(targets[0]) if len(targets) == 1 else s.Tuple(elements=elements(targets)))


def _break(node: ast.Break) -> Node:
    return s.Break()


def _continue(node: ast.Continue) -> Node:
    return s.Continue()


def _nothing(node: ast.stmt) -> Node:
    """A statement that lowering does not look into."""
    return s.Pass()


def _global(node: ast.Global | ast.Nonlocal) -> Node:
    return s.Global(names=[s.NameItem(name=s.Name(value=name)) for name in node.names])


def _import(node: ast.Import) -> Node:
    return s.Import(names=[_alias(alias) for alias in node.names])


def _import_from(node: ast.ImportFrom) -> Node:
    star = node.names[0].name == "*"
    return s.ImportFrom(
        module=_dotted(node.module) if node.module else None,
        relative=[s.Dot()] * node.level,
        names=s.ImportStar() if star else [_alias(alias) for alias in node.names],
    )


def _alias(node: ast.alias) -> Node:
    return s.ImportAlias(name=_dotted(node.name), asname=_as_name(node.asname), at=node)


def _as_name(name: str | None) -> Node | None:
    return s.AsName(name=s.Name(value=name)) if name is not None else None


def _dotted(name: str) -> Node:
    first, *others = name.split(".")
    node: Node = s.Name(value=first)
    for other in others:
        node = s.Attribute(value=node, attr=s.Name(value=other))
    return node


_AUGMENTED: dict[type[ast.operator], Node] = {
    ast.Add: s.AddAssign(),
    ast.Sub: s.SubtractAssign(),
    ast.Mult: s.MultiplyAssign(),
    ast.Div: s.DivideAssign(),
    ast.FloorDiv: s.FloorDivideAssign(),
    ast.Mod: s.ModuloAssign(),
    ast.Pow: s.PowerAssign(),
    ast.MatMult: s.MatrixMultiplyAssign(),
    ast.BitAnd: s.BitAndAssign(),
    ast.BitOr: s.BitOrAssign(),
    ast.BitXor: s.BitXorAssign(),
    ast.LShift: s.LeftShiftAssign(),
    ast.RShift: s.RightShiftAssign(),
}

_SMALL: dict[type[ast.stmt], Callable[[Any], Node]] = {
    ast.Expr: _expression_statement,
    ast.Assign: _assign,
    ast.AnnAssign: _annotated,
    ast.AugAssign: _augmented,
    ast.Return: _return,
    ast.Raise: _raise,
    ast.Assert: _assert,
    ast.Delete: _delete,
    ast.Break: _break,
    ast.Continue: _continue,
    ast.Pass: _nothing,
    ast.Global: _global,
    ast.Nonlocal: _global,
    ast.Import: _import,
    ast.ImportFrom: _import_from,
}
if sys.version_info >= (3, 12):
    _SMALL[ast.TypeAlias] = _nothing
