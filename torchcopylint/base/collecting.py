"""Python's cyclic garbage collector while one file is analysed."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator

THRESHOLD = 1_000_000
"""Objects made between two looks at the young ones. With Python's own 700, a tree that is alive is looked at often;
what is known of a file of 10,000 lines is less, and goes without a collection."""


@contextlib.contextmanager
def rare_collections() -> Iterator[None]:
    """Look for cyclic garbage more rarely while the body runs; what was set before is set again afterwards.

    The tree, the tape and the state are large, alive until the end, and hardly ever cyclic.
    """
    before = gc.get_threshold()
    # 0 is "never", which is somebody's choice.
    if 0 < before[0] < THRESHOLD:
        gc.set_threshold(THRESHOLD, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
