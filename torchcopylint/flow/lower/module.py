"""The whole file."""

from __future__ import annotations

from typing import NamedTuple

from torchcopylint.base.recursion import deep_recursion
from torchcopylint.flow import tape as t
from torchcopylint.flow.lower import statements
from torchcopylint.flow.lower.builder import FileBuilder, UnitBuilder
from torchcopylint.flow.lower.node import Node


class Lowered(NamedTuple):
    """A lowered file: the program, and the node of each site, which only position finding may look at."""

    program: t.Program
    nodes: list[Node]


def lower(module: Node) -> Lowered:
    """Lower a parsed file. Total: every tree that LibCST yields has a tape."""
    file = FileBuilder()
    unit = UnitBuilder(file, file.reserve_unit(), "", "module", -1, -1)
    with deep_recursion():
        statements.lower_body(unit, module)
    unit.finish("", (), None, unit.site(module))
    program = t.Program(
        units=tuple(u for u in file.units if u is not None),
        classes=tuple(c for c in file.classes if c is not None),
        statements=tuple(file.statements),
        scopes=tuple(file.scopes),
    )
    return Lowered(program, file.nodes)
