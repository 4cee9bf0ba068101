"""The text of a file as the slicer sees it: its `ast`, and the nodes that stand at a span."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar, TypeVar

from torchcopylint.base.finding import Finding, Position, Span
from torchcopylint.source.notebook import cells

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class NotRunnable(Exception):
    """The running Python cannot parse the file, or the slicer cannot follow it; the message says why."""


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """A parsed file, whose tree nobody changes. Rows are 1-based; columns of spans count code points, those of `ast`
    bytes of UTF-8."""

    lines: tuple[str, ...]
    tree: ast.Module


@lru_cache(maxsize=2)
def parse(text: str) -> Source:
    """Parse a text; the findings of one file share what comes of it. Raises `NotRunnable`."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\f", " ")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise NotRunnable(f"this Python cannot parse the file: {error}") from None
    return Source(tuple(text.split("\n")), tree)


def in_text(finding: Finding, text: str) -> Finding:
    """A finding with rows that count within the whole text: those of a notebook's finding count within its cells."""
    starts = dict(cells(text)) if finding.cell is not None else {}
    steps = [replace(step, span=_down(step.span, starts.get(step.cell or 0, 0)), cell=None) for step in finding.steps]
    return replace(finding, span=_down(finding.span, starts.get(finding.cell or 0, 0)), steps=tuple(steps), cell=None)


def _down(span: Span, rows: int) -> Span:
    return Span(Position(span.start.row + rows, span.start.column), Position(span.end.row + rows, span.end.column))


def span_of(node: ast.AST, lines: tuple[str, ...]) -> Span | None:
    """Where a node stands, in rows and columns of code points; `None` for a node without a place."""
    row, end = getattr(node, "lineno", None), getattr(node, "end_lineno", None)
    if row is None or end is None:
        return None
    first, last = node.col_offset, node.end_col_offset  # type: ignore[attr-defined]
    return Span(Position(row, _column(lines, row, first)), Position(end, _column(lines, end, last)))


def _column(lines: tuple[str, ...], row: int, offset: int) -> int:
    line = lines[row - 1] if row <= len(lines) else ""
    if line.isascii():
        return offset + 1
    return len(line.encode()[:offset].decode(errors="replace")) + 1


def scopes_at(tree: ast.Module, row: int, column: int, lines: tuple[str, ...]) -> tuple[Scope, ...]:
    """The functions and classes around a place, the outermost first."""
    found: list[Scope] = []
    body: list[ast.AST] = list(tree.body)
    while body:
        node = body.pop()
        span = span_of(node, lines)
        if span is None:
            body.extend(ast.iter_child_nodes(node))
            continue
        if not span.start <= Position(row, column) < span.end:
            continue
        if isinstance(node, Scope):
            found.append(node)
        body = list(ast.iter_child_nodes(node))
    return tuple(found)


_SCOPES = frozenset({ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef})
_IMPORTS = frozenset({ast.Import, ast.ImportFrom})
_LEAVES: frozenset[type] = frozenset({ast.Name, ast.Constant, ast.alias})
"""Nodes without parts, but for the contexts of names."""
_PLAIN = frozenset(
    [
        *("ctx", "attr", "type_comment", "lineno", "conversion", "is_async", "level", "module", "simple"),
        *("name", "arg", "rest", "kwd_attrs", "tag", "kind"),
    ]
)
"""Fields that hold no nodes, or contexts."""
_SPARSE = frozenset({(ast.Dict, "keys"), (ast.arguments, "kw_defaults")})
"""Lists in which there may be none."""
_PARTS: dict[type, tuple[str, ...]] = {ast.arg: ("annotation",), ast.keyword: ("value",)}
"""The fields of nodes of a class that may hold nodes, for those that were asked for."""
_PARTS |= {ast.Global: (), ast.Nonlocal: (), ast.MatchSingleton: ()}
if hasattr(ast, "TypeAlias"):  # Python 3.12, where its name is a node
    _PARTS[ast.TypeAlias] = ast.TypeAlias._fields


def parts_of(kind: type[ast.AST]) -> tuple[str, ...]:
    """The fields of nodes of a class in which others may be, but for the contexts of names."""
    names = _PARTS.get(kind)
    if names is None:
        fields = () if kind in _LEAVES else kind._fields
        names = _PARTS[kind] = tuple(name for name in fields if name not in _PLAIN)
    return names


def children(node: ast.AST) -> list[ast.AST]:
    """What `ast.iter_child_nodes` gives, but for the contexts of names, in a fifth of the time."""
    kind, written = node.__class__, node.__dict__
    found: list[ast.AST] = []
    for name in _PARTS.get(kind) or parts_of(kind):
        part = written.get(name)
        if part.__class__ is list:
            found += part if (kind, name) not in _SPARSE else [item for item in part if item is not None]
        elif part is not None:
            found.append(part)
    return found


def walked(node: ast.AST) -> list[ast.AST]:
    """What `ast.walk` gives, in its order, but for the contexts of names."""
    found = [node]
    for one in found:
        kind = one.__class__
        names = _PARTS.get(kind)
        if names is None:
            names = parts_of(kind)
        if names:
            # As `children`, which would be called most often of all.
            written = one.__dict__
            for name in names:
                part = written.get(name)
                if part.__class__ is list:
                    found += part if (kind, name) not in _SPARSE else [item for item in part if item is not None]
                elif part is not None:
                    found.append(part)
    return found


@lru_cache(maxsize=4)
def nodes_of(tree: ast.Module) -> list[ast.AST]:
    """The same for the tree of a file, which nobody changes, and many ask: it is walked once."""
    return walked(tree)


_Node = TypeVar("_Node", bound=ast.AST)


def cloned(node: _Node) -> _Node:
    """A copy of a tree that can be changed. Contexts and operators, which have nothing of their own, are shared."""
    made = node.__class__.__new__(node.__class__)
    written = made.__dict__
    if node.__class__ in _LEAVES:
        written.update(node.__dict__)
        return made
    for name, part in node.__dict__.items():
        if isinstance(part, list):
            written[name] = [cloned(item) if isinstance(item, ast.AST) else item for item in part]
        else:
            written[name] = cloned(part) if isinstance(part, ast.AST) and part._fields else part
    return made


class Rewriter(ast.NodeTransformer):
    """What `ast.NodeTransformer` is, in less time: nodes that nothing is done with are not looked up by their names."""

    _handlers: ClassVar[dict[tuple[type, type], Callable[[Any, Any], Any] | None]] = {}

    def visit(self, node: ast.AST) -> Any:
        """What becomes of a node."""
        key = (self.__class__, node.__class__)
        if key not in self._handlers:
            self._handlers[key] = getattr(self.__class__, f"visit_{node.__class__.__name__}", None)
        handler = self._handlers[key]
        if handler is not None:
            return handler(self, node)
        return node if node.__class__ in _LEAVES else self.generic_visit(node)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Visit what a node holds, in the order of its fields."""
        for name in parts_of(node.__class__):
            part = getattr(node, name, None)
            if isinstance(part, list):
                found: list[Any] = []
                for item in part:
                    made = self.visit(item) if isinstance(item, ast.AST) else item
                    if isinstance(made, list):
                        found += made
                    elif made is not None or item is None:
                        found.append(made)
                part[:] = found
            elif isinstance(part, ast.AST):
                made = self.visit(part)
                if made is None:
                    delattr(node, name)
                else:
                    setattr(node, name, made)
        return node


def names_in(node: ast.AST) -> Iterator[str]:
    """Every name that is loaded anywhere in a node."""
    for inner in walked(node):
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Load):
            yield inner.id


def free_in(node: ast.AST) -> set[str]:
    """The names that are loaded in a node and that no function in it has for itself: what it needs of a module."""
    found: set[str] = set()
    pending: list[Any] = [node]
    while pending:
        inner = pending.pop()
        kind = inner.__class__
        if kind is ast.Name:
            if inner.ctx.__class__ is ast.Load:
                found.add(inner.id)
        elif isinstance(inner, FunctionNode):
            body = set[str]().union(*map(free_in, inner.body), set())
            found |= body - local_to(inner)
            pending += [inner.args, *inner.decorator_list]
        elif kind is not ast.Constant:
            pending += children(inner)
    return found


def bound_by(statement: ast.stmt) -> set[str]:
    """The names that a statement binds in its own scope, those inside its blocks included."""
    found: set[str] = set()
    pending: list[Any] = [statement]
    while pending:
        node = pending.pop()
        kind = node.__class__
        if kind is ast.Name:
            if node.ctx.__class__ is not ast.Load:
                found.add(node.id)
        elif kind in _SCOPES:
            found.add(node.name)
        elif kind in _IMPORTS:
            found |= {(alias.asname or alias.name.split(".")[0]) for alias in node.names}
        elif kind is not ast.Constant and kind is not ast.Lambda:
            if kind is ast.ExceptHandler and node.name:
                found.add(node.name)
            pending += children(node)
    return found


def local_to(function: FunctionNode) -> set[str]:
    """The names that a function has for itself: its parameters, and what its statements bind, but for imports."""
    arguments = function.args
    found = {item.arg for item in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    found |= {item.arg for item in (arguments.vararg, arguments.kwarg) if item is not None}
    outer: set[str] = set()
    imports = False
    for node in walked(function):
        if isinstance(node, ast.Global | ast.Nonlocal):
            outer.update(node.names)
        imports = imports or node.__class__ in _IMPORTS
    for statement in function.body:
        if not isinstance(statement, ast.Import | ast.ImportFrom):
            found |= bound_by(statement) - imported_in(statement) if imports else bound_by(statement)
    return found - outer


def imported_in(node: ast.AST) -> set[str]:
    """The names that imports inside of a node bind."""
    inside = (part for part in walked(node) if isinstance(part, ast.Import | ast.ImportFrom))
    return {alias.asname or alias.name.split(".")[0] for part in inside for alias in part.names}


def bound_among(nodes: Iterable[ast.AST]) -> set[str]:
    """The names that some of all nodes of a tree bind, in whatever scope; those of arguments are not among them."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
            found.add(node.id)
        elif isinstance(node, Scope):
            found.add(node.name)
        elif isinstance(node, ast.alias):
            found.add(node.asname or node.name.split(".")[0])
        elif isinstance(node, ast.ExceptHandler) and node.name:
            found.add(node.name)
    return found


def changed_by(statement: ast.stmt) -> set[str]:
    """The names whose objects a statement changes, as far as one can see: by assignment to a part, or by a call of a
    method whose result nobody keeps."""
    found: set[str] = set()
    for node in walked(statement):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AugAssign | ast.AnnAssign):
            targets = [node.target]
        elif isinstance(node, ast.Delete):
            targets = node.targets
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            targets = [node.value.func]
        for target in targets:
            root = target
            while isinstance(root, ast.Attribute | ast.Subscript | ast.Call):
                root = root.func if isinstance(root, ast.Call) else root.value
            if isinstance(root, ast.Name) and root is not target:
                found.add(root.id)
    return found


def fields_set(statement: ast.stmt) -> set[str]:
    """The fields of `self` that a statement assigns."""
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    parts = [part for target in targets for part in (target.elts if isinstance(target, ast.Tuple) else [target])]
    return {
        f"self.{part.attr}"
        for part in parts
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id == "self"
    }


def is_autograd_function(scope: Scope) -> bool:
    """Whether a class is a function of autograd, by its bases or a `forward` that gets a context and no `self`."""
    if not isinstance(scope, ast.ClassDef):
        return False
    forward = next((m for m in scope.body if isinstance(m, FunctionNode) and m.name == "forward"), None)
    static = forward is not None and any(ast.unparse(item) == "staticmethod" for item in forward.decorator_list)
    derived = any(ast.unparse(base).rsplit(".", 1)[-1] == "Function" for base in scope.bases)
    return derived or (static and bool(scope.bases))


def goes_back(node: ast.AST) -> bool:
    """Whether a slice goes through something from its end, as through an array and never through a tensor."""
    step = node.step if isinstance(node, ast.Slice) else None
    return isinstance(step, ast.UnaryOp) and isinstance(step.op, ast.USub)
