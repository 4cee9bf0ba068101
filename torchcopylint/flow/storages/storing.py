"""What is written to a file: a view takes the whole storage along."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow.facts import ViewStored
from torchcopylint.flow.model import CONTAINERS, TENSORS, How, Share, Value

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

PARTS = frozenset({How.INDEX, How.ROW})
MAX_DEPTH = 3


def note(m: Machine, value: Value, site: int) -> None:
    """A value is saved: the parts of larger tensors in it."""
    pending = [(ref, 0) for ref in value.refs] if len(value.refs) == 1 else []
    while pending:
        ref, depth = pending.pop()
        obj = m.state.object(ref)
        if obj.kind in CONTAINERS and depth < MAX_DEPTH:
            for slot in m.state.slot_names(ref):
                held = m.state.refs_of(slot)
                pending += [(held[0], depth + 1)] if len(held) == 1 else []
        part = _part(obj.shares) if obj.kind in TENSORS else None
        if part is not None:
            source = m.state.object(part.of)
            m.fact(ViewStored(site, obj.text, source.text, part.site, part.how, min(obj.sure, source.sure)))


def _part(shares: tuple[Share, ...]) -> Share | None:
    """The share of a tensor that is a part of one other tensor for sure."""
    if len(shares) != 1 or not shares[0].sure or shares[0].how not in PARTS:
        return None
    return None if all(part.kind == "all" for part in shares[0].region) else shares[0]
