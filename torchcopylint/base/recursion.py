"""Deep recursion between Python functions, where the depth of expressions asks for it."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

DEEP = 60_000
"""Python frames that one analysis may stack up. Calls between Python functions take no C stack (since Python 3.11)."""
USUAL = 1000
"""Python's own limit, unless somebody has set another."""


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


@contextlib.contextmanager
def usual_recursion() -> Iterator[None]:
    """Allow as much recursion as Python usually does, from here on, while the body runs.

    Python's parser makes its tree by recursion in C, which the deeper limit would let overflow.
    """
    before = sys.getrecursionlimit()
    depth, frame = 0, sys._getframe()
    while frame.f_back is not None:
        depth, frame = depth + 1, frame.f_back
    sys.setrecursionlimit(min(before, depth + USUAL))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
