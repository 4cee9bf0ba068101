"""What a name holds after a test on which it has been converted, or not: `if cuda: x = x.cuda()`.

That is one object, as after `x = x.to(device)`, which converts where there is something to convert. Of two objects,
each on one path, nothing that is done to the name would surely be done to either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import TENSORS, Cell, How, Share, join_objects
from torchcopylint.flow.values.state import Delta
from torchcopylint.knowledge import table

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

OTHERWISE = "on some paths"
"""When what a test has converted is what it was: where the test fails."""


def take_as_one(m: Machine, deltas: list[Delta]) -> None:
    """After a branch whose arms have ended in `deltas` has been joined, make one object of what it has converted."""
    for name in dict.fromkeys(key for delta in deltas for key in delta if isinstance(key, str)):
        now = m.state.get(name)
        if now.__class__ is not Cell or len(now.refs) != 2:
            continue
        for whole, made in (now.refs, now.refs[::-1]):
            if _is_converted(m, name, whole, made):
                _put(m, name, now, whole, made)
                break


def _is_converted(m: Machine, name: str, whole: int, made: int) -> bool:
    """Whether one object is what a conversion of the other has returned, and nothing else holds it."""
    one, other = m.state.object(whole), m.state.object(made)
    if one.kind not in TENSORS or other.kind is not one.kind or made & 1 or whole & 1:
        return False
    if any(key != name and made in m.state.refs_of(key) for key in m.state.holders.get(made, ())):
        return False
    events = m.unit.definitions
    for bind in m.index.binds.get(name, ()):
        event = events[bind.value]
        if isinstance(event, t.Invoke) and event.site == other.site:
            base, op = events[event.base], table.tensor_method(event.name)
            converts = op is not None and op.shares == "maybe" and op.may_be_same
            return converts and isinstance(base, t.Load) and base.name == name
    return False


def _put(m: Machine, name: str, cell: Cell, whole: int, made: int) -> None:
    one, other = m.state.object(whole), m.state.object(made)
    shared = {share.storage for share in other.shares}
    kept = tuple(
        Share(share.storage, How.CONDITIONAL, other.site, whole, share.region, OTHERWISE, False)
        for share in one.shares
        if share.storage not in shared
    )
    joined = join_objects(one, other)
    m.state.set_object(
        made,
        joined._replace(shares=(*other.shares, *kept), site=other.site, text=other.text, owner=other.owner),
    )
    m.state.put_cell(name, cell._replace(refs=(made,)))
