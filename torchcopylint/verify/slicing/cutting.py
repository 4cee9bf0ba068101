"""Takes single statements out of a program, with something that takes everything for what they would have bound."""

from __future__ import annotations

import ast

from torchcopylint.verify.slicing.source import Rewriter, bound_by, fields_set

_BLOCKS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try)


class Cutter(Rewriter):
    """Takes statements out by their rows. What they would have bound is something that takes everything."""

    def __init__(self, steps: frozenset[int], rows: frozenset[int]) -> None:
        self._steps = steps
        self._rows = rows

    def visit(self, node: ast.AST) -> ast.AST | list[ast.stmt] | None:
        """The statement, what takes its place, or `None`."""
        if isinstance(node, ast.expr):
            return node
        if isinstance(node, ast.stmt) and node.lineno in self._rows and not self._holds_step(node):
            return _instead(node)
        if isinstance(node, _BLOCKS) and node.lineno in self._rows:
            # A block with a step in it stays, without what cannot be asked.
            inner: list[ast.stmt] = [*getattr(node, "body", []), *getattr(node, "orelse", [])]
            if isinstance(node, ast.If):
                inner = node.body if any(map(self._holds_step, node.body)) else node.orelse
            return [part for one in inner for part in listed(self.visit(one))]
        self.generic_visit(node)
        body = getattr(node, "body", None)
        if body == []:
            body.append(ast.copy_location(ast.Pass(), node))
        return node

    def _holds_step(self, node: ast.stmt) -> bool:
        first, last = node.lineno, node.end_lineno or node.lineno
        return any(first <= row <= last for row in self._steps)


def listed(found: ast.AST | list[ast.stmt] | None) -> list[ast.stmt]:
    """What visiting a statement gave, as statements."""
    return found if isinstance(found, list) else [found] if isinstance(found, ast.stmt) else []


def _instead(node: ast.stmt) -> list[ast.stmt]:
    """What takes the place of a statement that does not run."""
    names = sorted(bound_by(node)) if isinstance(node, ast.Assign | ast.AnnAssign | ast.With | ast.For | ast.If) else []
    made = []
    for name in (*names, *sorted(fields_set(node))):
        call = ast.Call(ast.Name("Anything", ast.Load()), [ast.Constant(name)], [])
        target = ast.parse(name, mode="eval").body
        target.ctx = ast.Store()  # type: ignore[attr-defined]
        made.append(ast.Assign([target], call, lineno=node.lineno))
    return [ast.fix_missing_locations(ast.copy_location(part, node)) for part in made]


class _Jumpless(Rewriter):
    def visit(self, node: ast.AST) -> ast.AST | list[ast.stmt] | None:
        if isinstance(node, ast.Break | ast.Continue):
            return ast.copy_location(ast.Pass(), node)
        if isinstance(node, ast.expr | ast.For | ast.AsyncFor | ast.While | ast.FunctionDef | ast.ClassDef):
            return node
        return self.generic_visit(node)


def without_jumps(statement: ast.stmt) -> ast.stmt:
    """A statement that may be changed, and stands in a loop no more: what would leave that, or go on with it, does
    nothing."""
    (made,) = listed(_Jumpless().visit(statement))
    return made
