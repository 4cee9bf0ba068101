"""What the code around the steps asks of the dtypes of what they name."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable

from torchcopylint.verify.slicing.source import names_in, walked

_OF_INPUTS = re.compile(r"float(?:32|64)?\b|double|dtype\s*[!=]=(?!\s*torch\.)")
"""What conditions on types name that inputs may be of."""
_EQUAL = (ast.Eq, ast.Is, ast.In)


def dtypes_asked(scopes: Iterable[ast.AST], rows: Collection[int]) -> frozenset[int]:
    """The rows around the steps in some rows in which it is asserted, or asked on the way to a step, that something
    which they name is of another type than inputs are: where that is cut away, what happens to inputs says nothing."""
    inside = [node for scope in scopes for node in walked(scope)]
    steps = [node for node in inside if isinstance(node, ast.stmt) and node.lineno in rows]
    named = {name for node in steps if not hasattr(node, "body") for name in names_in(node)}
    found = set()
    for node in inside:
        if (isinstance(node, ast.Assert) and not _OF_INPUTS.search(ast.unparse(node.test))) or (
            isinstance(node, ast.If) and _leads_past_inputs(node, rows)
        ):
            asked = [part for part in walked(node.test) if isinstance(part, ast.Attribute) and part.attr == "dtype"]
            found |= {node.lineno for part in asked if set(names_in(part.value)) & named}
    return frozenset(found)


def index_types_asked(scopes: Iterable[ast.AST], rows: Collection[int]) -> frozenset[int]:
    """The rows of conditions on the way to steps that ask of which class something is by which a step picks elements:
    a slice picks a view, and what is made in its place may pick a copy."""
    inside = [node for scope in scopes for node in walked(scope)]
    steps = [node for node in inside if isinstance(node, ast.stmt) and node.lineno in rows]
    picked = [part.slice for node in steps for part in walked(node) if isinstance(part, ast.Subscript)]
    named = {name for part in picked for name in names_in(part)}
    asking = [node for node in inside if isinstance(node, ast.If) and _holds([*node.body, *node.orelse], rows)]
    asking = [node for node in asking if "isinstance" in (names := set(names_in(node.test))) and names & named]
    return frozenset(node.lineno for node in asking)


def _leads_past_inputs(node: ast.If, rows: Collection[int]) -> bool:
    """Whether a step stands in the branch that is taken where a dtype is none of those that inputs have."""
    test, turned = node.test, False
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, turned = test.operand, not turned
    if not isinstance(test, ast.Compare) or len(test.ops) != 1:
        return False
    equal = isinstance(test.ops[0], _EQUAL) != turned
    first = _holds(node.body, rows)
    if first == _holds(node.orelse, rows):
        return False
    return bool(_OF_INPUTS.search(ast.unparse(test))) != (first == equal)


def _holds(block: list[ast.stmt], rows: Collection[int]) -> bool:
    return any(part.lineno <= row <= (part.end_lineno or part.lineno) for part in block for row in rows)
