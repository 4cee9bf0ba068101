"""Deep recursion between Python functions, where the depth of expressions asks for it."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

DEEP = 60_000
"""Python frames that one analysis may stack up. Calls between Python functions take no C stack (since Python 3.11)."""


@contextlib.contextmanager
def deep_recursion() -> Iterator[None]:
    """Allow deep recursion between Python functions while the body runs.

    Lowering and position finding recurse as deep as expressions nest, which the limits bound.
    """
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, DEEP))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
