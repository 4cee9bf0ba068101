"""Bindings written in another way: the same object reaches the same name."""

from __future__ import annotations

import ast
from collections.abc import Mapping

import libcst as cst

from .programs import Program, Variant, header, tagged

TEMPLATES: Mapping[str, str] = {
    "through a second name": "passed = {value}\n{name} = passed",
    "walrus": "({name} := {value})",
    "annotation that says nothing": "{name}: Any = {value}",
    "unpacked from a tuple": "{name}, _ = {value}, None",
    "conditional expression": "{name} = {value} if 1 else None",
}
"""How `name = value` is written instead."""


def respelled(program: Program, template: str) -> Variant | None:
    """The program with every plain binding of a name in another spelling; `None` where it has none."""
    lines = tagged(program.code).splitlines()
    changed = False
    for node in ast.walk(ast.parse(program.code)):
        if not (isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)):
            continue
        if node.lineno != node.end_lineno:
            continue
        line = lines[node.lineno - 1]
        value, rest = line[node.value.col_offset : node.value.end_col_offset], line[node.end_col_offset :]
        if isinstance(node.value, ast.Tuple) and not value.startswith("("):
            value = f"({value})"
        text = TEMPLATES[template].format(name=node.targets[0].id, value=value)
        indent = " " * node.col_offset
        lines[node.lineno - 1] = "\n".join(f"{indent}{part}{rest}" for part in text.splitlines())
        changed = True
    if not changed:
        return None
    if template == "annotation that says nothing":
        lines.insert(0, "from typing import Any")
    return Variant.of("\n".join(lines) + "\n")


def on_self(program: Program) -> Variant | None:
    """The script in a method, with its variables as attributes of `self`; `None` where that is no valid program.

    Variables of loops, comprehensions, functions and imports stay what they are.
    """
    tree = ast.parse(program.code)
    definitions = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    lines = tagged(program.code).splitlines()
    script = [node for node in tree.body if not isinstance(node, definitions)]
    names = _plainly_bound(script) - _bound_elsewhere(tree, script)
    front = [line for node in tree.body if isinstance(node, definitions) for line in _lines(lines, node)]
    body = [line for node in script for line in _lines(lines, node)]
    if not names:
        return None
    module = cst.parse_module("\n".join(body) + "\n")
    code = module.visit(_OnSelf({name: f"self.{name}" for name in names})).code
    method = ["class Program:", "    def run(self):", *("        " + line for line in code.splitlines())]
    return Variant.of("\n".join([*front, *method, "Program().run()", ""]))


def _lines(lines: list[str], node: ast.stmt) -> list[str]:
    return lines[header(node)[0] - 1 : node.end_lineno]


def _plainly_bound(script: list[ast.stmt]) -> set[str]:
    """The names that assignments of the script bind."""
    found = set()
    for statement in script:
        for node in ast.walk(statement):
            for target in getattr(node, "targets", []):
                found |= {part.id for part in ast.walk(target) if isinstance(part, ast.Name) and _stored(part)}
    return found


def _stored(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def _bound_elsewhere(tree: ast.Module, script: list[ast.stmt]) -> set[str]:
    """The names that loops and comprehensions bind, and those that definitions use."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.For | ast.comprehension):
            found |= {part.id for part in ast.walk(node.target) if isinstance(part, ast.Name)}
        if isinstance(node, ast.arg):
            found.add(node.arg)
    for statement in tree.body:
        if statement not in script:
            found |= {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
    return found


class _OnSelf(cst.CSTTransformer):
    def __init__(self, names: Mapping[str, str]) -> None:
        super().__init__()
        self._names = names

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        name = self._names.get(updated_node.value)
        return cst.parse_expression(name) if name else updated_node

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.Attribute:
        return updated_node.with_changes(attr=original_node.attr)

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        return updated_node.with_changes(keyword=original_node.keyword)
