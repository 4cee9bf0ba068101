"""`resize_`, and what stands in its way: memory that NumPy owns or looks at, and gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow.facts import Resized
from torchcopylint.flow.model import TENSORS, UNVERSIONED, Fact, How, Object, Sure, Value

if TYPE_CHECKING:
    from torchcopylint.flow.machine import Machine
    from torchcopylint.flow.sites import Site

RESIZING = frozenset({"resize_", "resize_as_"})
ARRAYS = frozenset({How.NUMPY, How.FROM_NUMPY})


def note(m: Machine, value: Value, at: Site) -> None:
    """A tensor is resized in place."""
    if len(value.refs) != 1 or m.state.object(value.refs[0]).kind not in TENSORS:
        return
    obj = m.state.object(value.refs[0])
    if obj.requires_grad > 0 and not any(share.how in UNVERSIONED for share in obj.shares):
        sure = obj.sure if obj.requires_grad is Fact.YES else min(obj.sure, Sure.LIKELY)
        m.fact(Resized(at.site, at.name, "", at.op, None, obj.site, sure))
        return
    for how, site, name in _windows(m, obj):
        m.fact(Resized(at.site, at.name, name, at.op, how, site, obj.sure))
        return


def _windows(m: Machine, obj: Object) -> list[tuple[How, int, str]]:
    """Where the storage of a tensor was taken from NumPy, or shown to it: it stays as large as it is ever after."""
    found = []
    for share in obj.shares:
        if not share.sure:
            continue
        if share.how is How.FROM_NUMPY:
            found.append((How.FROM_NUMPY, share.site, m.state.object(share.of).text))
        for other in sorted(m.state.sharers.get(share.storage, ())):
            window = m.state.object(other)
            found += [
                (How.NUMPY, s.site, window.text)
                for s in window.shares
                if s.how is How.NUMPY and s.storage == share.storage and s.sure
            ]
    return found
