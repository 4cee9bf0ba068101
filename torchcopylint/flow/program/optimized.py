"""Networks of which nobody knows what they are, but that an optimizer trains.

A network that was handed over may be frozen, or cut what it is given; what torch would refuse otherwise is not told of
it. What an optimizer of the unit, or of its class, was given the parameters of is not frozen, and two that one
optimizer trains are meant to learn from one loss: the second does not cut what the first hands it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import Kind
from torchcopylint.flow.program import wholes

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

_USES = frozenset({"step", "zero_grad"})


def is_trained(m: Machine, networks: Iterable[int]) -> bool:
    """Whether an optimizer trains one of some networks."""
    return not m.world.asks_what_trains and any(_is_in(m, networks, parts) for parts in _optimizers(m))


def are_trained_together(m: Machine, network: Iterable[int], others: Iterable[int]) -> bool:
    """Whether one optimizer trains a network and one of some others."""
    if m.world.asks_what_trains:
        return False
    return any(_is_in(m, network, parts) and _is_in(m, others, parts) for parts in _optimizers(m))


def _is_in(m: Machine, networks: Iterable[int], parts: wholes.Parts) -> bool:
    return any(wholes.meet(m, wholes.parts_of(m.state.object(ref)), parts) for ref in networks)


def _optimizers(m: Machine) -> Iterator[wholes.Parts]:
    """What each optimizer that the unit has built, or has worked with by now, was given."""
    for built in m.owners.optimizers.values():
        yield built.parts
    for event in m.index.of(t.Invoke):
        for ref in m.value(event.base).refs if event.name in _USES else ():
            if m.state.object(ref).kind is Kind.OPTIMIZER:
                yield wholes.parts_of(m.state.object(ref))
