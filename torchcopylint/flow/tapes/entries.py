"""Entries of a state dict, whatever is done to them on the way that does not copy: `{k: v.detach().cpu() ...}`."""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING

from torchcopylint.flow.model import How, Kind, Share

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

MAX_DEPTH = 2
"""So many steps are gone back over from an entry to the state dict."""


def come_by(m: Machine, share: Share) -> tuple[How | None, str]:
    """How something has come to share the memory of a module, and on which condition.

    An entry of a state dict is that, whatever is done to it that does not copy: `t.detach().cpu()`. The values of a
    parameter are, in whatever shape: `p.detach().flatten()`. A parameter is dense.
    """
    how, when = share.how, share.when
    for _ in range(MAX_DEPTH + 1):
        above = [one for one in m.state.object(share.of).shares if one.storage == share.storage]
        if len(above) != 1 or above[0].how is How.OWN or how is How.STATE:
            break
        share = above[0]
        when = when or share.when
        if share.how is How.STATE and how in (How.DETACH, How.DATA, How.CONDITIONAL):
            how = How.STATE
        if share.how in (How.DETACH, How.DATA) and (how is How.VIEW or (how is How.CONDITIONAL and _is_of_shape(when))):
            how, when = share.how, ""
    return how, when


def _is_of_shape(when: str) -> bool:
    return "contiguous" in when and not any(word in when for word in ("dtype", "device", "mode", "converted"))


def dict_of(m: Machine, ref: int, storages: Container[int]) -> tuple[Share, str] | None:
    """Of a dictionary all of whose items are entries of one state dict, on one of some storages: the share of an item,
    and the condition on which it is no copy."""
    if m.state.object(ref).kind is not Kind.DICT:
        return None
    items = [item for slot in m.state.slot_names(ref) if slot[1].startswith("[") for item in m.state.refs_of(slot)]
    found = []
    for item in items:
        own = [share for share in m.state.object(item).shares if share.storage in storages]
        if len(own) != 1:
            return None
        how, when = come_by(m, own[0])
        if how is not How.STATE:
            return None
        found.append((own[0], when))
    return found[0] if found and len({share.storage for share, _ in found}) == 1 else None
