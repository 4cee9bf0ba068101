"""One walk over statements in order: what the names hold, and what each use says of it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

from torchcopylint.verify.slicing.indexing import dimensions_told
from torchcopylint.verify.slicing.reading import Reading, either
from torchcopylint.verify.slicing.source import is_autograd_function
from torchcopylint.verify.slicing.things import Thing, find
from torchcopylint.verify.slicing.world import method_named


class Walk(Reading):
    """One walk over the body of a function."""

    def body(self, statements: Iterable[ast.stmt]) -> None:
        """Read statements in order."""
        for statement in statements:
            handler: Callable[[ast.stmt], None] | None = getattr(self, f"_{type(statement).__name__.lower()}", None)
            if handler is not None:
                handler(statement)
            else:
                self._parts(statement)

    def _parts(self, node: ast.AST) -> None:
        for part in ast.iter_child_nodes(node):
            if isinstance(part, ast.expr):
                self.value(part)
            elif isinstance(part, ast.stmt):
                self.body([part])
            elif not isinstance(part, ast.expr_context | ast.operator | ast.arguments):
                self._parts(part)

    def _functiondef(self, node: ast.FunctionDef) -> None:
        given, result = self.world.signature(node, None)
        self.names[node.name] = Thing(node.name, result=result, function=node)
        Walk(self.world, {**self.names, **given}, result, self.outer).body(node.body)

    _asyncfunctiondef = _functiondef

    def _classdef(self, node: ast.ClassDef) -> None:
        self.names[node.name] = Thing(node.name)
        forward = method_named(node, "forward") if is_autograd_function(node) else None
        if isinstance(forward, ast.FunctionDef):
            given, result = self.world.signature(forward, None)
            self.names[node.name].function = forward
            Walk(self.world, {**self.names, **given}, result, self.outer).body(forward.body)

    def _import(self, node: ast.stmt) -> None:
        pass

    _importfrom = _global = _nonlocal = _pass = _import

    def _return(self, node: ast.Return) -> None:
        if node.value is not None:
            value = self.value(node.value)
            if self.result is not None:
                find(self.result).near.append(value)
                if isinstance(node.value, ast.Tuple):
                    for number, _ in enumerate(node.value.elts):
                        find(self.result).item(number).near.append(value.item(number))

    def _assign(self, node: ast.Assign) -> None:
        value = self.value(node.value)
        for target in node.targets:
            self.bind(target, value)
            if isinstance(target, ast.Subscript) and not value.votes:
                value.near.append(self.value(target))

    def _annassign(self, node: ast.AnnAssign) -> None:
        value = self.value(node.value) if node.value is not None else Thing()
        self.world.annotate(value, node.annotation)
        self.bind(node.target, value)

    def _augassign(self, node: ast.AugAssign) -> None:
        target = self.value(node.target)
        value = self.value(node.value)
        if isinstance(node.target, ast.Name) and target.constant is not None:
            # What a number becomes is what was added, if more is known of that.
            whole = Thing(node.target.id, near=[value, target])
            value.near.append(whole)
            self.names[node.target.id] = whole
            return
        target.near.append(value)
        value.near.append(target)

    def _for(self, node: ast.For) -> None:
        self.bind(node.target, self._element(node.iter))
        self.body(node.body)
        self.body(node.orelse)

    _asyncfor = _for

    def _with(self, node: ast.With) -> None:
        for item in node.items:
            value = self.value(item.context_expr)
            if item.optional_vars is not None:
                self.bind(item.optional_vars, Thing(near=[value]))
        self.body(node.body)

    _asyncwith = _with

    def _truth(self, node: ast.expr) -> None:
        """A condition is read. What is a condition all by itself is a truth value, if nothing says otherwise."""
        tested = node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) else node
        value = self.value(tested)
        if isinstance(tested, ast.Name | ast.Attribute):
            value.tested = True

    def _dimensions(self, test: ast.expr, *, met: bool) -> None:
        """All else is refused: what is asked for so many dimensions has them."""
        for part, count in dimensions_told(test, met=met):
            whole = find(self.value(part))
            for one in (whole, *map(find, whole.ways)):
                one.dimensions = one.dimensions if one.dimensions is not None else count

    def _assert(self, node: ast.Assert) -> None:
        self._parts(node)
        self._dimensions(node.test, met=True)

    def _if(self, node: ast.If) -> None:
        self._truth(node.test)
        if isinstance(node.body[-1], ast.Raise):
            self._dimensions(node.test, met=False)
        before = dict(self.names)
        self.body(node.body)
        after, self.names = self.names, before
        self.body(node.orelse)
        for name in after.keys() | self.names.keys():
            one, two = after.get(name), self.names.get(name)
            if one is not two and one is not None and two is not None and find(one) is not find(two):
                self.names[name] = either(name, one, two)
            elif one is not None:
                self.names[name] = one
