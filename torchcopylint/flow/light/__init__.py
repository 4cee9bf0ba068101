"""A syntax tree in LibCST's shape out of Python's own parser: the same names of nodes and fields, no whitespace.

Python's parser takes a tenth of the time of LibCST's, which spends most of it on what stands between the tokens. So a
file is lowered from this tree. A node that Python's parser says the place of has it `at`, the node that it was made
from; LibCST reads the few files that have something to show at another place. Both trees of a text are lowered to equal
programs (`tests/test_light.py`), but for identifiers that Python normalises.

Sources: `docs.python.org/3/library/ast.html` for the one side, `libcst.readthedocs.io/en/latest/nodes.html` for the
other.
"""

from __future__ import annotations

import ast
import warnings
from types import SimpleNamespace as Node

from torchcopylint.base.recursion import deep_recursion, usual_recursion
from torchcopylint.flow.light import shapes as s
from torchcopylint.flow.light.expressions import expression
from torchcopylint.flow.light.statements import Reader


def read(text: str) -> Node | None:
    """The tree of a whole file; `None` for what the running Python does not parse, or gives up on. Never raises."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # Another file may be read while the one that imports it is followed, under the deeper limit.
            with usual_recursion():
                tree = ast.parse(text)
        with deep_recursion():
            return s.Module(body=Reader(text).block(tree.body))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def read_expression(text: str) -> Node | None:
    """The tree of one expression; `None` if it is none. Never raises."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return expression(ast.parse(text, mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
