"""Makes what the steps stand in reachable: functions in others are called, and conditions around definitions met.

A hook or a closure that is made and handed to somebody else is called where it was made, before its maker returns.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Collection, Iterator
from dataclasses import replace

from torchcopylint.verify.slicing.source import FunctionNode, Scope, Source, cloned, is_autograd_function, walked

_KEEPERS = ("register", "append", "add_", "partial", "wraps")
"""Beginnings of the names of what keeps a function that it is given, and does not call it."""


def opened(source: Source, rows: Collection[int]) -> tuple[Source, tuple[str, ...]]:
    """The file with ways to the rows of the steps, and what was assumed for that; the same where there is nothing to
    do."""
    opener = _Opener(frozenset(rows))
    body = opener.block(source.tree.body)
    if not opener.assumed:
        return source, ()
    tree = ast.Module(body, source.tree.type_ignores)
    return replace(source, tree=tree), tuple(opener.assumed)


class _Opener:
    def __init__(self, rows: frozenset[int]) -> None:
        self._rows = rows
        self.assumed: list[str] = []

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """The statements of a module; definitions with a step in them come out of the conditions around them."""
        found: list[ast.stmt] = []
        for node in body:
            if not self._holds(node):
                found.append(node)
            elif isinstance(node, ast.If) and "__name__" not in ast.unparse(node.test):
                found += self._branch(node)
            elif isinstance(node, Scope):
                found.append(self._definition(node))
            else:
                found.append(node)
        return found

    def _branch(self, node: ast.If) -> list[ast.stmt]:
        """The branch that a step stands in, if it stands in a definition there."""
        taken = node.body if any(map(self._holds, node.body)) else node.orelse
        if not any(isinstance(part, Scope | ast.If) and self._holds(part) for part in taken):
            return [node]
        self.assumed.append(f"the {'first' if taken is node.body else 'other'} branch of line {node.lineno} is taken")
        return self.block(taken)

    def _definition(self, node: Scope) -> Scope:
        """A function or class with calls of the functions inside of its functions that the steps stand in."""
        if isinstance(node, ast.ClassDef):
            return self._class(node)
        inner = next((part for part in _inside(node) if self._holds(part)), None)
        if isinstance(inner, ast.ClassDef) and is_autograd_function(inner) and _method(inner, "forward") is not None:
            return self._applied(node, inner)
        if inner is None or not isinstance(inner, ast.FunctionDef) or _is_called(inner, node):
            return node
        made = cloned(node)
        again = next(part for part in _inside(made) if part.lineno == inner.lineno)
        assert isinstance(again, ast.FunctionDef)
        opened_inner = self._definition(again)
        self.assumed.append(f"`{inner.name}` is called where it is made")
        _insert(made, again, opened_inner, _call(again))
        return made

    def _applied(self, node: FunctionNode, inner: ast.ClassDef) -> FunctionNode:
        """A function that makes a function of autograd, with a call of that."""
        made = cloned(node)
        again = next(part for part in _inside(made) if part.lineno == inner.lineno)
        forward = _method(inner, "forward")
        assert isinstance(again, ast.ClassDef)
        assert forward is not None
        self.assumed.append(f"`{inner.name}` is applied where it is made")
        through = ast.Attribute(ast.Name(inner.name, ast.Load()), "apply", ast.Load())
        _insert(made, again, again, _call(forward, through))
        return made

    def _class(self, node: ast.ClassDef) -> ast.ClassDef:
        """A class without the methods that it leaves to others: what calls them gets something that is made."""
        left = [
            part for part in node.body if isinstance(part, FunctionNode) and not self._holds(part) and _is_left(part)
        ]
        called = set(map(_own_call, walked(node)))
        dropped = [part for part in left if part.name in called and part.name != "forward"]
        self.assumed += [f"`{part.name}` is what another class makes of it" for part in dropped]
        body = [part for part in node.body if part not in dropped]
        body = [self._definition(part) if isinstance(part, Scope) and self._holds(part) else part for part in body]
        same = len(body) == len(node.body) and all(a is b for a, b in zip(body, node.body, strict=True))
        return node if same else _with_body(node, body)

    def _holds(self, node: ast.stmt) -> bool:
        return any(node.lineno <= row <= (node.end_lineno or node.lineno) for row in self._rows)


def _is_left(function: FunctionNode) -> bool:
    """Whether a method does nothing, or says that others have to."""
    for node in function.body:
        told = ast.unparse(node.exc) if isinstance(node, ast.Raise) and node.exc is not None else ""
        plain = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not (plain or isinstance(node, ast.Pass) or told.startswith("NotImplemented")):
            return False
    return True


def _own_call(node: ast.AST) -> str:
    """The method of `self` that a node calls; empty if it does not call one."""
    func = node.func if isinstance(node, ast.Call) else None
    own = isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name) and func.value.id == "self"
    return func.attr if own and isinstance(func, ast.Attribute) else ""


def _with_body(node: ast.ClassDef, body: list[ast.stmt]) -> ast.ClassDef:
    made = copy.copy(node)
    made.body = body
    return made


def _inside(function: FunctionNode) -> Iterator[Scope]:
    """The definitions inside of a function that are in no other."""
    pending: list[ast.AST] = list(function.body)
    while pending:
        node = pending.pop()
        if isinstance(node, Scope):
            yield node
        else:
            pending.extend(ast.iter_child_nodes(node))


def _is_called(inner: FunctionNode, outer: FunctionNode) -> bool:
    """Whether a function calls one that it makes, or hands it to something that does."""
    for node in walked(outer):
        if not isinstance(node, ast.Call):
            continue
        if isinstance(node.func, ast.Name) and node.func.id == inner.name:
            return True
        given = [*node.args, *(word.value for word in node.keywords)]
        if any(isinstance(part, ast.Name) and part.id == inner.name for part in given):
            called = ast.unparse(node.func).rpartition(".")[2]
            if not called.startswith(_KEEPERS):
                return True
    return False


def _method(node: ast.ClassDef, name: str) -> ast.FunctionDef | None:
    return next((part for part in node.body if isinstance(part, ast.FunctionDef) and part.name == name), None)


def _insert(outer: FunctionNode, inner: Scope, instead: Scope, call: ast.stmt) -> None:
    """Put a call of what a function makes into the block that it is made in, at the end."""
    for node in walked(outer):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and inner in block:
                block[block.index(inner)] = instead
                last = isinstance(block[-1], ast.Return | ast.Raise | ast.Continue | ast.Break)
                block.insert(len(block) - last, call)
                return


def _call(function: ast.FunctionDef, through: ast.expr | None = None) -> ast.stmt:
    """A call of a function with arguments that nothing gives. It stands where the function does, and is a step.

    `through` is what is called instead, which passes a context itself."""
    given = function.args
    missing = len(given.posonlyargs) + len(given.args) - (len(given.defaults) if through is None else 0)
    needed = [*given.posonlyargs, *given.args][through is not None : missing]
    passed: list[ast.expr] = [ast.Name(f"given_{parameter.arg}", ast.Load()) for parameter in needed]
    keywords = [
        ast.keyword(parameter.arg, ast.Name(f"given_{parameter.arg}", ast.Load()))
        for parameter, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)
        if default is None
    ]
    called = through or ast.Name(function.name, ast.Load())
    call: ast.expr = ast.Call(called, passed, keywords)
    if any(isinstance(part, ast.Yield | ast.YieldFrom) for part in walked(function)):
        call = ast.Call(ast.Name("list", ast.Load()), [call], [])
    made = ast.Expr(call)
    for part in walked(made):
        if isinstance(part, ast.expr | ast.stmt | ast.keyword):
            ast.copy_location(part, function)
    return made
