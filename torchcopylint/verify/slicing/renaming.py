"""Gives the names of a module other names, wherever they are meant and not hidden by a name of a function's own."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torchcopylint.verify.slicing.source import FunctionNode, Rewriter, bound_by, local_to, walked


@dataclass(frozen=True, slots=True)
class Meaning:
    """A name with attributes behind it is called `name`, and so many of the attributes are part of that."""

    name: str
    attributes: int


Meanings = Callable[[str, Sequence[str]], Meaning | None]
"""What a name of the module's own, with attributes behind it, is to be called; `None` leaves it as it is."""


def renamed(statement: ast.stmt, meaning: Meanings, *, inside: bool = False) -> ast.stmt:
    """A statement with other names. It is changed. `inside`: it is part of a class, so that its own name stays."""
    made: ast.stmt = _Renamer(meaning, inside=inside).visit(statement)
    return made


class _Renamer(Rewriter):
    def __init__(self, meaning: Meanings, *, inside: bool) -> None:
        self._meaning = meaning
        self._inside = inside
        self._hidden: frozenset[str] = frozenset()
        self._in_class = False

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """A name alone."""
        own = self._in_class and not isinstance(node.ctx, ast.Load)
        found = self._meaning(node.id, ()) if node.id not in self._hidden and not own else None
        if found is not None:
            node.id = found.name
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """A name with attributes, of which some may lead to a module and to what is in it."""
        chain: list[ast.Attribute] = []
        root: ast.expr = node
        while isinstance(root, ast.Attribute):
            chain.append(root)
            root = root.value
        if not isinstance(root, ast.Name) or root.id in self._hidden:
            self.generic_visit(node)
            return node
        chain.reverse()
        found = self._meaning(root.id, [part.attr for part in chain])
        if found is None:
            return node
        last = chain[found.attributes - 1] if found.attributes else root
        if found.attributes and not isinstance(chain[found.attributes - 1].ctx, ast.Load):
            return node
        name = ast.copy_location(ast.Name(found.name, ast.Load()), last)
        if found.attributes == len(chain):
            return name
        chain[found.attributes].value = name
        return node

    def visit_Global(self, node: ast.Global) -> ast.stmt:
        """What a function says to be the module's."""
        for number, name in enumerate(node.names):
            found = self._meaning(name, ())
            node.names[number] = found.name if found is not None else name
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.stmt:
        """The names of a class body are hidden in the body, and not in the methods."""
        self._name(node)
        for word in node.keywords:
            word.value = self.visit(word.value)
        node.bases = [self.visit(base) for base in node.bases]
        node.decorator_list = [self.visit(part) for part in node.decorator_list]
        outer, around, level = self._hidden, self._in_class, self._inside
        self._inside = True
        own: frozenset[str] = frozenset()
        made: list[ast.stmt] = []
        for part in node.body:
            self._in_class = not isinstance(part, FunctionNode | ast.ClassDef)
            self._hidden = outer | own if self._in_class else outer
            made.append(self.visit(part))
            # Until it is bound, a name in the body is that of the module.
            own |= bound_by(part)
        self._hidden, self._in_class, self._inside = outer, around, level
        node.body = made
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ast.stmt:
        """The names of a function are hidden in it, and not in its defaults and decorators."""
        self._name(node)
        node.decorator_list = [self.visit(part) for part in node.decorator_list]
        arguments = node.args
        arguments.defaults = [self.visit(part) for part in arguments.defaults]
        arguments.kw_defaults = [self.visit(part) if part is not None else None for part in arguments.kw_defaults]
        given = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg)
        for item in given:
            if item is not None and item.annotation is not None:
                item.annotation = self.visit(item.annotation)
        if node.returns is not None:
            node.returns = self.visit(node.returns)
        outer, around, level = self._hidden, self._in_class, self._inside
        self._hidden, self._in_class, self._inside = outer | local_to(node), False, True
        node.body = [self.visit(part) for part in node.body]
        self._hidden, self._in_class, self._inside = outer, around, level
        return node

    visit_AsyncFunctionDef = visit_FunctionDef

    def _name(self, node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """The name of a definition at module level, which may stand in an `if` or `try`."""
        found = self._meaning(node.name, ()) if not self._inside else None
        if found is not None:
            node.name = found.name

    def visit_Lambda(self, node: ast.Lambda) -> ast.expr:
        """The same."""
        arguments = node.args
        arguments.defaults = [self.visit(part) for part in arguments.defaults]
        arguments.kw_defaults = [self.visit(part) if part is not None else None for part in arguments.kw_defaults]
        given = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg)
        outer = self._hidden
        self._hidden = outer | {item.arg for item in given if item is not None}
        node.body = self.visit(node.body)
        self._hidden = outer
        return node

    def visit_ListComp(self, node: ast.AST) -> ast.AST:
        """What a comprehension goes by is its own."""
        outer = self._hidden
        stored = {part.id for part in walked(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
        self._hidden = outer | stored
        self.generic_visit(node)
        self._hidden = outer
        return node

    visit_SetComp = visit_GeneratorExp = visit_DictComp = visit_ListComp
