"""Views that autograd does not let be written, and that it does not let be used once their base has been.

One of several that an operation made at once, one that was made while grad mode was off, one that a custom Function
has returned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow.facts import ViewRefused, Write
from torchcopylint.flow.model import CUSTOM_VIEW, LOCAL, NO_GRAD_VIEW, TENSORS, Fact, How, Object, Sure

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

_DIRECT = frozenset({"method", "augmented", "item", "out", "activation"})
_VIEWS = frozenset({How.VIEW, How.INDEX, How.ROW})
MAX_VIEWS = 12


def note_use(m: Machine, ref: int, name: str, write: Write, site: int) -> None:
    """A view is used that autograd does not let be written, and its base has been since: that is refused as well."""
    recording = m.state.mode.recording > 0 and m.state.mode.inference <= 0
    if not recording or not write.versioned or write.form not in _DIRECT:
        return
    why, viewed, base = made(m, ref)
    if not why or base.requires_grad <= 0 or base.kind not in TENSORS:
        return
    if not any(isinstance(fact, ViewRefused) and fact.used < 0 for fact in m.facts.get(write.site, ())):
        sure = base.sure if base.requires_grad is Fact.YES else min(base.sure, Sure.LIKELY)
        local = base.owner in ("", LOCAL)
        refused = (write.site, name, write.op, why, base.text, viewed, m.state.mode.assumed, local, sure, site)
        m.fact(ViewRefused(*refused))


def made(m: Machine, ref: int) -> tuple[str, int, Object]:
    """Why autograd does not let a view be written (empty: it does), since where, and the base of it."""
    why, viewed, current, seen = "", -1, ref, {ref}
    for _ in range(MAX_VIEWS):
        obj = m.state.object(current)
        if NO_GRAD_VIEW in obj.flags and not why:
            why, viewed = "no_grad", obj.site
        if CUSTOM_VIEW in obj.flags and not why:
            why, viewed = "custom", obj.site
        above = [s for s in obj.shares if s.of != current]
        # Where the base is a copy or none (`reshape`), its view sits on one storage or the other: surely on one.
        sure = len(above) > 1 and len(above) == len(obj.shares)
        if len({s.of for s in above}) != 1 or above[0].how not in _VIEWS or above[0].of in seen:
            break
        if not above[0].sure and not sure:
            break
        if above[0].how is How.ROW and not why:
            why, viewed = "multi", above[0].site
        current = above[0].of
        seen.add(current)
    return why, viewed, m.state.object(current)
