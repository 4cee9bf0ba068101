"""What has just been computed, and what nobody holds: `.data` of it shares memory with nothing that counts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow.model import CONTAINERS, LOCAL, Fact, Kind, Object, Value
from torchcopylint.flow.values import dtypes

if TYPE_CHECKING:
    from torchcopylint.flow.model import Key
    from torchcopylint.flow.running.machine import Machine


def is_unheld(m: Machine, base: Value, obj: Object) -> bool:
    """Whether a tensor that takes no gradient has just been computed, and no name or slot holds its memory.

    Where there is a gradient to cut, `.detach()` would do it.
    """
    graphless = obj.requires_grad is Fact.NO or obj.dtype in (*dtypes.INTEGERS, dtypes.INTEGRAL)
    if not (base.root is None or _is_let_go(m, base.root)) or obj.kind is not Kind.TENSOR or not graphless:
        return False
    below = [m.state.object(share.storage) for share in obj.shares]
    if any(owner.owner not in ("", LOCAL) or owner.kind is not Kind.TENSOR for owner in below):
        return False
    return all(_is_let_go(m, key) for share in obj.shares for key, _ in m.state.holders_of(share.storage))


def _is_let_go(m: Machine, key: Key) -> bool:
    """Whether a place is one that nobody can name: a register, or an entry of a result that has no name."""
    if not isinstance(key, tuple):
        return _is_register(key)
    whole = m.state.object(key[0])
    return whole.kind in CONTAINERS and not whole.owner and all(map(_is_register, m.state.holders.get(key[0], ())))


def _is_register(key: Key) -> bool:
    """Whether a place is a register: what an expression has computed on the way."""
    return isinstance(key, str) and key.startswith("%")
