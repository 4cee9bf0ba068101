"""What one of several networks returns, nobody knows which of them: `model = A() if small else B()`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow.interprocedural.returned import types_of
from torchcopylint.flow.model import MIXED, Fact, Kind, Object, Sure
from torchcopylint.flow.storages import slots
from torchcopylint.flow.values import memory

if TYPE_CHECKING:
    from torchcopylint.flow.interprocedural.returned import ReturnedPart
    from torchcopylint.flow.model import Value
    from torchcopylint.flow.running.machine import Machine


def result_of(m: Machine, function: Value, site: int, name: str) -> Value | None:
    """The tuple that a call returns, whichever network it calls, if each of them returns one of as many parts.

    Of its parts, those stand in it that each of them computes, with a graph: `return self.decoder(z), z`.
    """
    objects = [m.state.object(ref) for ref in function.refs]
    if len(objects) == 1 and len(types_of(objects[0])) == 1:
        return None
    forwards = [m.world.method_of(obj._replace(type=one), "forward") for obj in objects for one in types_of(obj)]
    summaries = [m.world.summary(forward) if forward is not None else None for forward in forwards]
    known = [summary for summary in summaries if summary is not None and summary.result.kind is Kind.TUPLE]
    shapes = {tuple(part.slot for part in summary.parts) for summary in known}
    if len(known) < len(summaries) or len(shapes) != 1 or not any(shapes):
        return None
    made = memory.fresh(m, site, Object(Kind.TUPLE, Sure.LIKELY, text=f"{name}(...)"), "several")
    for alike in zip(*(summary.parts for summary in known), strict=True):
        if all(_is_computed(part) for part in alike):
            slot = alike[0].slot
            tensor = all(part.result.kind is Kind.TENSOR for part in alike)
            obj = Object(Kind.TENSOR, Sure.LIKELY) if tensor else Object()
            obj = obj._replace(text=f"{name}(...){slot}")
            held = memory.fresh(m, site, obj, f"several{slot}")
            slots.bind_slot(m, (made.refs[0], slot), held, site)
            m.runs.parts.update(ref | 1 for ref in held.refs)
    return made


def _is_computed(part: ReturnedPart) -> bool:
    """Whether a part is something that the function has made, which may be a tensor with a graph."""
    anew = all(not item.parameter for item in part.returned) and not part.same and part.function < 0
    computed = part.result.requires_grad is not Fact.NO and MIXED not in part.result.flags
    return anew and computed and part.result.kind in (Kind.TENSOR, Kind.UNKNOWN)
