"""Whether a file says that what a finding speaks of is meant."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Sequence

from torchcopylint.verify.slicing.source import Scope, names_in, walked

_COMMENT = re.compile(r"(?:^|\s)#(?!\s*<-)\s*(?P<text>.+)$")
"""One that begins with an arrow is a mark of the examples of rules, and says what the linter says."""
_SHARING = re.compile(r"\bshar(?:e[sd]?|ing)\b|\btie[sd]?\b|\btying\b", re.IGNORECASE)
_DENYING = re.compile(
    r"n't\b|\b(?:not|no|never|without|instead|avoid\w*|todo|fixme|bug|wrong|should|why)\b", re.IGNORECASE
)
_FORM = frozenset({"shape", "size", "dtype", "device", "ndim", "dim", "requires_grad", "is_contiguous"})
_MEASURING = frozenset({"len", "isinstance", "type", "id"})
_SHARED = "a comment says that it is shared"
_UNCHANGED = "an assertion after it speaks of what the copy was made of: whoever wrote that knows that it is a copy"


def meant(
    tree: ast.Module,
    lines: Sequence[str],
    scopes: Sequence[Sequence[Scope]],
    rows: Collection[int],
    confirm: Collection[str],
) -> str:
    """Why what the steps on some rows do is meant, or an empty text. `scopes` are those around each of them."""
    if "same-object" in confirm and any(_says_shared(lines, row) for row in rows):
        return _SHARED
    if "write-lost" in confirm and any(_is_asserted(tree, chain, rows) for chain in scopes):
        return _UNCHANGED
    return ""


def _says_shared(lines: Sequence[str], row: int) -> bool:
    """Whether a comment in a row, or in the one above it and alone there, says that something is shared."""
    here = lines[row - 1] if 0 < row <= len(lines) else ""
    above = lines[row - 2].strip() if 1 < row <= len(lines) else ""
    found = [_COMMENT.search(here), _COMMENT.search(above) if above.startswith("#") else None]
    texts = [match["text"] for match in found if match is not None]
    return any(_SHARING.search(text) and not _DENYING.search(text) for text in texts)


def _is_asserted(tree: ast.Module, chain: Sequence[Scope], rows: Collection[int]) -> bool:
    """Whether a statement behind the last step asserts something of what an index in a row of a step was taken from."""
    inside = [node for node in walked(chain[-1] if chain else tree) if isinstance(node, ast.stmt)]
    steps = [node for node in inside if node.lineno in rows and not hasattr(node, "body")]
    indexed = [part for node in steps for part in walked(node) if isinstance(part, ast.Subscript)]
    written = {name for part in indexed if isinstance(part.ctx, ast.Store) for name in names_in(part.value)}
    sources = {name for part in indexed if isinstance(part.ctx, ast.Load) for name in names_in(part.value)} - written
    last = max((node.lineno for node in steps), default=0)
    return any(node.lineno > last and not sources.isdisjoint(_asserting(node)) for node in inside)


def _asserting(node: ast.stmt) -> set[str]:
    """The names in what a statement asserts, if it does, of whose numbers it does."""
    said: list[ast.expr] = []
    if isinstance(node, ast.Assert):
        said = [node.test]
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and "assert" in ast.unparse(node.value.func):
        said = node.value.args
    inside = [part for expression in said for part in walked(expression)]
    asked = {id(part.value) for part in inside if isinstance(part, ast.Attribute) and part.attr in _FORM}
    measured = [part for part in inside if isinstance(part, ast.Call) and ast.unparse(part.func) in _MEASURING]
    asked |= {id(argument) for call in measured for argument in call.args}
    return {part.id for part in inside if isinstance(part, ast.Name) and id(part) not in asked}
