"""What is of one of several models or leaves, by the conditions before it, and was trained on whichever it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow.model import TENSORS, Cell, How, Kind, Mark, Share

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

_WHOLE = frozenset({"step", "load"})
_OF_STATES = frozenset({How.STATE})
_OF_LEAVES = frozenset({How.DETACH, How.DATA})
MAX_MODELS = 4


def overwritten(m: Machine, before: Cell, cell: Cell) -> tuple[Share, Mark] | None:
    """The write that has hit what was put somewhere `before`, where that and what a `cell` holds are the state of the
    same one of several models, or the values of the same one of several leaves; a write of all parameters of each of
    them."""
    now = _models(m, cell.refs)
    # What stands there beside them may be anything.
    earlier = {storage for ref in before.refs for storage in _models(m, (ref,))} if len(now) > 1 else set()
    if len(now) < 2 or not now.keys() <= earlier:
        return None
    for mark in sorted(before.marks - cell.marks):
        write = m.writes.get(mark.write)
        if write is None or write.form not in _WHOLE or mark.own or mark.late:
            continue
        if now.keys() <= {storage & ~1 for storage in write.storages}:
            return now[min(now)], mark
    return None


def _models(m: Machine, refs: tuple[int, ...]) -> dict[int, Share]:
    """By its storage, of which model each of some state dicts may be the state, or of which leaf each of some tensors
    may be the values; empty if one may be anything else."""
    found: dict[int, Share] = {}
    for ref in refs:
        obj = m.state.object(ref)
        hows = _OF_STATES if obj.kind is Kind.STATE_DICT else _OF_LEAVES if obj.kind in TENSORS else frozenset[How]()
        if any(share.how not in hows or share.when for share in obj.shares) or not hows:
            return {}
        found.update({share.storage: share for share in obj.shares})
    return found if len(found) <= MAX_MODELS else {}
