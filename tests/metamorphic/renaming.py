"""Renaming of local variables, functions, classes and attributes to names that say nothing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

import libcst as cst

from .programs import Program, Variant, syntax

KEPT_ATTRIBUTES = frozenset(
    # Called or read by torch under this very name, or used on torch's own objects by the same programs.
    (
        "forward",
        "backward",
        "step",
        "state_dict",
        "weight",
        "bias",
        "data",
        "grad",
        "requires_grad",
        "clamp",
        "to",
        "mean",
    )
)
"""Attributes that are not renamed. What breaks a program when it is renamed shows in its output under torch."""


def renamed_variables(program: Program) -> Variant:
    """Every variable, parameter, function and class gets a name `v1`, `v2`, ...; keywords of local functions follow."""
    tree = ast.parse(program.code)
    names = {name: f"v{number}" for number, name in enumerate(_variables(tree), start=1)}
    return _rewritten(program, _Variables(names, _parameters(tree), _imports(tree)), names)


def renamed_attributes(program: Program) -> Variant | None:
    """Every attribute and method that the program's own classes define gets a name `a1`, `a2`, ..."""
    defined = _attributes(ast.parse(program.code)) - KEPT_ATTRIBUTES
    names = {name: f"a{number}" for number, name in enumerate(sorted(defined), start=1)}
    return _rewritten(program, _Attributes(names), names) if names else None


def _rewritten(program: Program, transformer: cst.CSTTransformer, names: Mapping[str, str]) -> Variant:
    code = syntax(program).visit(transformer).code
    return Variant.of(code, {new: old for old, new in names.items()})


def _variables(tree: ast.AST) -> list[str]:
    """The names that the program binds other than by imports and as attributes of classes, in order of the text."""
    found: list[tuple[tuple[int, int], str]] = []
    members = {id(node) for node in _members(tree)}
    for node in ast.walk(tree):
        if id(node) not in members and (name := _bound(node)):
            found.append(((getattr(node, "lineno", 0), getattr(node, "col_offset", 0)), name))
    taken = {node.id for node in _members(tree) if isinstance(node, ast.Name)} | _imports(tree)
    return [name for name in dict.fromkeys(name for _, name in sorted(found)) if name not in taken]


def _bound(node: ast.AST) -> str:
    """The name that a node binds, or nothing."""
    if isinstance(node, ast.Name):
        return node.id if isinstance(node.ctx, ast.Store) else ""
    if isinstance(node, ast.arg):
        return node.arg
    named = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.ExceptHandler
    return node.name or "" if isinstance(node, named) else ""


def _members(tree: ast.AST) -> Iterator[ast.AST]:
    """The methods, and the names that are assigned, directly in the body of a class."""
    for owner in ast.walk(tree):
        if isinstance(owner, ast.ClassDef):
            for statement in owner.body:
                if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield statement
                elif isinstance(statement, ast.Assign | ast.AnnAssign):
                    stored = ast.walk(statement)
                    yield from (node for node in stored if isinstance(getattr(node, "ctx", None), ast.Store))


def _attributes(tree: ast.AST) -> set[str]:
    """The attributes that the program's classes define: methods, members, and what is assigned to `self`.

    Without those that a string mentions, by which the program may look them up.
    """
    names = set()
    for node in _members(tree):
        names.add(getattr(node, "name", "") or getattr(node, "id", ""))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name):
            names |= {node.attr} if node.value.id == "self" else set()
    constants = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    words = re.findall(r"\w+", " ".join(value for value in constants if isinstance(value, str)))
    return {name for name in names if name and not name.startswith("__")} - set(words)


def _parameters(tree: ast.AST) -> set[str]:
    return {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}


def _imports(tree: ast.AST) -> set[str]:
    """The names that imports bind."""
    aliases = [a for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom) for a in node.names]
    return {(alias.asname or alias.name).partition(".")[0] for alias in aliases}


class _Variables(cst.CSTTransformer):
    """Renames names that stand for variables. Attributes, keywords, methods and imports are names in the tree too."""

    def __init__(self, names: Mapping[str, str], parameters: set[str], imported: set[str]) -> None:
        super().__init__()
        self._names = names
        self._parameters = parameters
        self._imported = imported
        self._in_class = [False]

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:
        return self._renamed(updated_node)

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.Attribute:
        return updated_node.with_changes(attr=original_node.attr)

    def leave_ImportAlias(self, original_node: cst.ImportAlias, updated_node: cst.ImportAlias) -> cst.ImportAlias:
        return original_node

    def leave_ImportFrom(self, original_node: cst.ImportFrom, updated_node: cst.ImportFrom) -> cst.ImportFrom:
        return original_node

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        self._in_class.append(True)

    def leave_ClassDef(self, original_node: cst.ClassDef, updated_node: cst.ClassDef) -> cst.ClassDef:
        self._in_class.pop()
        return updated_node

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self._in_class.append(False)

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        self._in_class.pop()
        return updated_node.with_changes(name=original_node.name) if self._in_class[-1] else updated_node

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        return updated_node.with_changes(keyword=original_node.keyword)

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.Call:
        root: cst.BaseExpression = original_node.func
        while isinstance(root, cst.Attribute | cst.Call | cst.Subscript):
            root = root.func if isinstance(root, cst.Call) else root.value
        if isinstance(root, cst.Name) and root.value in self._imported:
            return updated_node
        return updated_node.with_changes(args=[self._with_keyword(argument) for argument in updated_node.args])

    def _with_keyword(self, argument: cst.Arg) -> cst.Arg:
        if argument.keyword is None or argument.keyword.value not in self._parameters:
            return argument
        return argument.with_changes(keyword=self._renamed(argument.keyword))

    def _renamed(self, name: cst.Name) -> cst.Name:
        return name.with_changes(value=self._names.get(name.value, name.value))


class _Attributes(cst.CSTTransformer):
    """Renames attributes wherever they stand, with the methods and members that define them."""

    def __init__(self, names: Mapping[str, str]) -> None:
        super().__init__()
        self._names = names
        self._classes = [False]

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.Attribute:
        return updated_node.with_changes(attr=self._renamed(updated_node.attr))

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        self._classes.append(True)

    def leave_ClassDef(self, original_node: cst.ClassDef, updated_node: cst.ClassDef) -> cst.ClassDef:
        self._classes.pop()
        return updated_node

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self._classes.append(False)

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        self._classes.pop()
        return updated_node.with_changes(name=self._renamed(updated_node.name)) if self._classes[-1] else updated_node

    def leave_AnnAssign(self, original_node: cst.AnnAssign, updated_node: cst.AnnAssign) -> cst.AnnAssign:
        if self._classes[-1] and isinstance(updated_node.target, cst.Name):
            return updated_node.with_changes(target=self._renamed(updated_node.target))
        return updated_node

    def leave_AssignTarget(self, original_node: cst.AssignTarget, updated_node: cst.AssignTarget) -> cst.AssignTarget:
        if self._classes[-1] and isinstance(updated_node.target, cst.Name):
            return updated_node.with_changes(target=self._renamed(updated_node.target))
        return updated_node

    def _renamed(self, name: cst.Name) -> cst.Name:
        return name.with_changes(value=self._names.get(name.value, name.value))
