"""The nodes of a light tree, made when they are first asked for: `shapes.Call` is the twin of LibCST's `Call`.

A node has those fields of its twin that lowering looks at, and no others. Lowering tells nodes apart by the names of
their classes, so that it reads both trees alike.
"""

from __future__ import annotations

from types import SimpleNamespace


def __getattr__(name: str) -> type[SimpleNamespace]:
    if not name[:1].isupper():
        raise AttributeError(name)
    shape = type(name, (SimpleNamespace,), {})
    globals()[name] = shape
    return shape
