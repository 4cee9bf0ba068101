"""The same program with its imports in another style."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Mapping
from typing import NamedTuple

import libcst as cst

from .programs import Program, Variant, syntax

MODULES = frozenset(
    {
        *("torch", "torch.nn", "torch.nn.functional", "torch.nn.init", "torch.nn.utils", "torch.nn.utils.rnn"),
        *("torch.optim", "torch.autograd", "torch.utils", "torch.utils.data", "torch.testing", "torch.linalg"),
        *("numpy", "numpy.random", "copy", "io", "contextlib"),
    }
)
"""What is a module on the way from a root to a member: `torch.nn.init.zeros_` is `zeros_` of `torch.nn.init`."""


class Spelling(NamedTuple):
    """How a module is imported and then written."""

    statement: str
    name: str


Style = Mapping[str, Spelling]

STYLES: Mapping[str, Style] = {
    "import torch as th": {
        "torch": Spelling("import torch as th", "th"),
        "torch.nn": Spelling("import torch.nn as tnn", "tnn"),
        "numpy": Spelling("import numpy as onp", "onp"),
        "copy": Spelling("import copy as cp", "cp"),
    },
    "everything qualified": {
        "torch": Spelling("import torch", "torch"),
        "numpy": Spelling("import numpy", "numpy"),
    },
    "from a package": {
        "torch": Spelling("import torch", "torch"),
        "torch.nn": Spelling("from torch import nn", "nn"),
        "torch.optim": Spelling("from torch import optim", "optim"),
        "torch.autograd": Spelling("from torch import autograd", "autograd"),
        "torch.nn.functional": Spelling("from torch.nn import functional as F", "F"),
        "torch.nn.init": Spelling("from torch.nn import init as I", "I"),
        "torch.utils.data": Spelling("from torch.utils import data as tud", "tud"),
    },
    "submodules by import": {
        "torch": Spelling("import torch", "torch"),
        "torch.nn": Spelling("import torch.nn as nn", "nn"),
        "torch.optim": Spelling("import torch.optim as optim", "optim"),
        "torch.nn.functional": Spelling("import torch.nn.functional as F", "F"),
        "torch.nn.init": Spelling("import torch.nn.init", "torch.nn.init"),
    },
    "bound by assignment": {
        "torch": Spelling("import torch", "torch"),
        "torch.nn": Spelling("import torch\nnn = torch.nn", "nn"),
        "torch.nn.functional": Spelling("import torch\nF = torch.nn.functional", "F"),
        "numpy": Spelling("import numpy\nnp = numpy", "np"),
    },
}


def restyled(program: Program, style: str) -> Variant | None:
    """The program with its modules imported and written as a style says; `None` where that changes nothing."""
    return _restyled(program, _Spelled(STYLES[style], _origins(program.code)))


def direct(program: Program) -> Variant | None:
    """Every member imported by itself: `from torch import no_grad`, `from torch.nn import Linear`."""
    return _restyled(program, _Direct(_origins(program.code), _taken(program.code)))


def _restyled(program: Program, transformer: _Rewriter) -> Variant | None:
    tree = syntax(program).visit(transformer)
    lines = transformer.added + tree.code.splitlines()
    # `from __future__` has to stay first.
    lines.sort(key=lambda line: not line.startswith("from __future__"))
    variant = Variant.of("\n".join(lines) + "\n")
    return variant if _statements(variant.code) != _statements(program.code) else None


def _statements(code: str) -> str:
    return ast.dump(ast.parse(code))


def _origins(code: str) -> dict[str, str]:
    """What each name that an import binds stands for, dotted."""
    origins = {}
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                root = alias.name.partition(".")[0]
                origins[alias.asname or root] = alias.name if alias.asname else root
        elif isinstance(node, ast.ImportFrom):
            origins |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return {name: dotted for name, dotted in origins.items() if dotted.partition(".")[0] in MODULES}


def _taken(code: str) -> set[str]:
    """Every word of the program, and Python's own names: an import of the name would hide what it means there."""
    return set(re.findall(r"(?<!\.)\b[A-Za-z_]\w*\b", code)) | set(dir(builtins))


class _Rewriter(cst.CSTTransformer):
    """Finds what is written of a module and asks a style how to write it. `added` are the imports that this needs."""

    def __init__(self, origins: Mapping[str, str]) -> None:
        super().__init__()
        self._origins = origins
        self.added: list[str] = []

    def spelled(self, dotted: str) -> str | None:
        """How a dotted name is to be written; `None` if it is no more than the way to a longer one."""
        raise NotImplementedError

    def need(self, statement: str) -> None:
        """Add import statements, once."""
        self.added += [line for line in statement.splitlines() if line not in self.added]

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        return self._dotted(node) is None

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        dotted = self._dotted(original_node)
        return self._written(dotted) if dotted else updated_node

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        return updated_node.with_changes(keyword=original_node.keyword)

    def leave_Param(self, original_node: cst.Param, updated_node: cst.Param) -> cst.Param:
        return updated_node.with_changes(name=original_node.name)

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:
        dotted = self._origins.get(original_node.value)
        return self._written(dotted) if dotted else updated_node

    def visit_Import(self, node: cst.Import) -> bool:
        return False

    def visit_ImportFrom(self, node: cst.ImportFrom) -> bool:
        return False

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | cst.RemovalSentinel:
        first = original_node.body[0]
        if isinstance(first, cst.Import):
            ours = [alias.evaluated_name.partition(".")[0] in MODULES for alias in first.names]
        elif isinstance(first, cst.ImportFrom) and first.module is not None:
            ours = [cst.Module([]).code_for_node(first.module).partition(".")[0] in MODULES]
        else:
            return updated_node
        return cst.RemoveFromParent() if all(ours) else updated_node

    def _written(self, dotted: str) -> cst.BaseExpression:
        return cst.parse_expression(self.spelled(dotted) or dotted)

    def _dotted(self, node: cst.BaseExpression) -> str | None:
        """The dotted name of a chain that starts at an import, up to the first member that is no module."""
        if isinstance(node, cst.Name):
            return self._origins.get(node.value)
        if not isinstance(node, cst.Attribute):
            return None
        inner = self._dotted(node.value)
        return f"{inner}.{node.attr.value}" if inner in MODULES else None


class _Spelled(_Rewriter):
    def __init__(self, style: Style, origins: Mapping[str, str]) -> None:
        super().__init__(origins)
        self._style = style

    def spelled(self, dotted: str) -> str:
        prefix = dotted
        while prefix not in self._style:
            prefix = prefix.rpartition(".")[0]
            if not prefix:
                self.need(f"import {dotted.partition('.')[0]}")
                return dotted
        self.need(self._style[prefix].statement)
        return self._style[prefix].name + dotted[len(prefix) :]


class _Direct(_Rewriter):
    def __init__(self, origins: Mapping[str, str], taken: set[str]) -> None:
        super().__init__(origins)
        self._taken = taken
        self._modules: dict[str, str] = {}

    def spelled(self, dotted: str) -> str:
        module, _, member = dotted.rpartition(".")
        if not module:
            self.need(f"import {dotted}")
            return dotted
        name = member
        if self._modules.setdefault(member, module) != module or member in self._taken - set(self._origins):
            name = f"{module.replace('.', '_')}_{member}"
        self.need(f"from {module} import {member}" + (f" as {name}" if name != member else ""))
        return name
