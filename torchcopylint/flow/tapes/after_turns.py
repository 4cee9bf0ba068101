"""What a loop leaves behind, if it takes a turn at all: who writes a loop means it to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow.model import TENSORS, Fact, Object
from torchcopylint.flow.values.state import ALIVE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchcopylint.flow.model import Key
    from torchcopylint.flow.running.machine import Machine
    from torchcopylint.flow.values.state import Delta, State


def given_graphs(m: Machine, loop: int, ends: Sequence[Delta]) -> list[Key]:
    """The tensors that every turn of a loop leaves with a graph, whatever it found: `out[i] = net(x)`.

    The state is that at the head of the loop at the site `loop`, `ends` are what its turns make of it. Before the loop,
    where it was made, such a tensor had no graph, so that at the head nobody knows.
    """
    live = [end for end in ends if end.get(ALIVE, True) is True]
    found: list[Key] = []
    for key, entry in live[0].items() if live else ():
        here = m.state.get(key)
        if not isinstance(here, Object) or here.requires_grad is not Fact.UNKNOWN or here.kind not in TENSORS:
            continue
        if loop in m.index.loops.get(here.site, ()):
            continue
        others = [entry, *(end.get(key, here) for end in live[1:])]
        if all(isinstance(other, Object) and other.requires_grad > 0 and other.leaf is Fact.NO for other in others):
            found.append(key)
    return found


def take_on(state: State, keys: Sequence[Key]) -> None:
    """The state is that behind the loop: some tensors have a graph there."""
    for key in keys:
        obj = state.get(key)
        if isinstance(obj, Object) and obj.requires_grad is Fact.UNKNOWN:
            state.put(key, obj._replace(requires_grad=Fact.LIKELY, leaf=Fact.NO))
