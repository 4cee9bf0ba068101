"""What a loop's earlier turns have saved for backward, told from what this turn saves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from torchcopylint.flow.model import EARLIER
from torchcopylint.flow.values.state import ALIVE, Delta

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine


def on_other_arms(m: Machine, delta: Delta, numbers: set[int]) -> Delta:
    """The delta of an arm of a branch in a loop, where other arms save something under these numbers: what stands
    under them on this arm was saved on an earlier turn, and what comes after the branch is not computed from it."""
    spoilt = [number for number in sorted(numbers) if delta.get(key := f"@spoilt{number}", m.state.get(key))]
    if not spoilt or delta.get(ALIVE, True) is not True:
        return delta
    m.state.fork()
    m.state.apply(delta)
    put_aside(m, spoilt)
    return m.state.take()


def put_aside(m: Machine, numbers: Iterable[int]) -> None:
    """What stands under these numbers, and has been written over, is nothing that is saved from here on.

    It was saved on another arm, or by an inner loop on the outer one's earlier turn.
    """
    for number in sorted(numbers):
        if m.state.get(f"@spoilt{number}"):
            retire(m, number)
            m.state.put(f"@spoilt{number}", frozenset())


def retire(m: Machine, number: int) -> None:
    """What a loop's earlier turn saved is another thing than what this turn saves: its graphs get another number.

    Only where it matters: something has been written over it, and its backward is still to come.
    """
    spoilt = m.state.get(f"@spoilt{number}")
    if not isinstance(spoilt, frozenset) or not spoilt:
        return
    old = number | EARLIER
    m.needed.saves[old] = m.needed.saves[number]
    m.needed.objects[old] = m.needed.objects[number] | 1
    before = m.state.get(f"@spoilt{old}")
    m.state.put(f"@spoilt{old}", spoilt | before if isinstance(before, frozenset) else spoilt)
    for ref in sorted({sharer for sharers in m.state.sharers.values() for sharer in sharers}):
        obj = m.state.object(ref)
        if number in obj.graph or number in obj.saved:
            graph = obj.graph - {number} | {old} if number in obj.graph else obj.graph
            saved = obj.saved - {number} | {old} if number in obj.saved else obj.saved
            m.state.set_object(ref, obj._replace(graph=graph, saved=saved))
