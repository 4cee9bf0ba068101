"""Generators that hand out parts of what they are given: `for i in range(0, len(x), n): yield x[i : i + n]`.

Whoever goes through one has views, as of what `split` returns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.interprocedural.returned import Returned, returned_by
from torchcopylint.flow.model import BUFFERS, PARTS, How, Kind, Object, Sure, Value
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import memory

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

_PARTED = frozenset({How.INDEX, How.ROW})


def of(m: Machine, paths: dict[int, tuple[str, tuple[str, ...]]]) -> Returned | None:
    """What a generator that has been run hands out: parts of one argument, or of what that keeps, and nothing else."""
    if not m.unit.is_generator or not m.results.yielded or m.results.returned:
        return None
    found, _ = returned_by(m, m.results.yielded.values(), paths)
    parts = {item._replace(region=()) for item in found}
    item = parts.pop() if len(parts) == 1 else None
    return item if item is not None and item.parameter and item.how in _PARTED and not item.when else None


def once(m: Machine, paths: dict[int, tuple[str, tuple[str, ...]]]) -> tuple[tuple[Returned, ...], Object] | None:
    """What a generator that has been run hands out, if it does so once and for all: `yield x` of a context manager."""
    if not m.unit.is_generator or len(m.results.yielded) != 1 or m.results.returned or len(m.index.of(t.Yield)) != 1:
        return None
    site = next(iter(m.results.yielded))
    return None if uses.loops_around(m, site) else returned_by(m, m.results.yielded.values(), paths)


def made(m: Machine, source: Value, site: int, name: str) -> Value | None:
    """What a call of such a generator gives, by the memory that it hands out parts of."""
    if len(source.refs) != 1 or m.state.object(source.refs[0]).kind not in BUFFERS:
        return None
    obj = m.state.object(source.refs[0])
    parts = Object(
        Kind.TUPLE, Sure.PROVEN, requires_grad=obj.requires_grad, leaf=obj.leaf, graph=obj.graph, dtype=obj.dtype
    )
    parts = parts._replace(text=f"{name}(...)", flags=frozenset({PARTS}))
    return memory.alias(m, source._replace(root=None), site, How.ROW, parts, tag="yielded")
