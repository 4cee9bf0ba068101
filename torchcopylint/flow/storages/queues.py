"""Queues between processes: what is put into one goes into shared memory, and whoever takes it out gets that memory.

A queue is a container that somebody else empties. A write to what it holds is a fact, until something waits for others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import SentAndWritten, Write
from torchcopylint.flow.model import (
    ANY_ELEMENT,
    CONTAINERS,
    Cell,
    Fact,
    Kind,
    Object,
    Share,
    Sure,
    Value,
)
from torchcopylint.flow.regions import overlap
from torchcopylint.flow.storages import reading, slots
from torchcopylint.flow.values import memory
from torchcopylint.flow.values.kinds import QUEUE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchcopylint.flow.running.machine import Machine

_SENT = frozenset({Kind.TENSOR, Kind.PARAMETER, Kind.STATE_DICT})
"""What torch sends by reference. Arrays are pickled."""
_ANSWERS = frozenset({"get", "get_nowait", "recv", "poll", "empty", "acquire", "result"})
"""Methods that wait for what another process does."""
PUTTING = frozenset({"put", "put_nowait"})
_DEPTH = 2


def make(m: Machine, site: int, name: str) -> Value:
    """A new queue."""
    return memory.fresh(m, site, Object(Kind.LIST, Sure.PROVEN, type=QUEUE, text=name))


def put(m: Machine, ref: int, item: Value, site: int, name: str) -> None:
    """Something is put into a queue: `name` is how the code calls it."""
    m.holding.queues[ref] = (site, name)
    slots.bind_slot(m, (ref, ANY_ELEMENT), item, site, weak=True)


def answered(m: Machine, name: str) -> None:
    """A method is called that waits for others: they may be done with what they were sent."""
    if name in _ANSWERS:
        forget(m)


def forget(m: Machine) -> None:
    """Everything that was sent has been taken care of."""
    for ref in m.holding.queues:
        slots.clear(m, ref)


def note_write(m: Machine, write: Write) -> None:
    """State a fact for each queue that holds the memory which a write has just changed."""
    for ref, (site, name) in m.holding.queues.items():
        cell = m.state.cell((ref, ANY_ELEMENT))
        if cell is None or _is_answered(m, site, write.site):
            continue
        for held in _tensors(m, cell, _DEPTH):
            for share in m.state.object(held).shares:
                if _hits(m, write, share):
                    chain = reading.chain_of(m, held, share)
                    links = tuple(link for _, link in chain if link.how is not None)
                    sure = min(m.state.object(held).sure, m.state.object(ref).sure, write.sure)
                    said = name if held in cell.refs else m.state.object(held).text
                    m.fact(SentAndWritten(write.site, site, said, m.state.object(ref).text, links, sure))
                    break


def _is_answered(m: Machine, sent: int, written: int) -> bool:
    """Whether something waits for others between the two places: in a loop over them, which surely has turns."""
    asks = [event for event in m.index.of(t.Invoke) if event.name in _ANSWERS and sent < event.site < written]
    return any(not event.arguments for event in asks)


def _hits(m: Machine, write: Write, share: Share) -> bool:
    # What a loop's earlier turn made has an odd number, and this turn writes another one.
    if not share.sure or share.when or share.storage & 1 or share.storage not in m.hits.certain_storages[write.site]:
        return False
    return overlap(m.hits.regions[write.site].get(share.storage | 1, ()), share.region) is Fact.YES


def _tensors(m: Machine, cell: Cell, depth: int) -> Iterator[int]:
    for ref in cell.refs:
        kind = m.state.object(ref).kind
        if kind in _SENT:
            yield ref
        elif kind in CONTAINERS and depth:
            for slot in m.state.slot_names(ref):
                inner = m.state.cell(slot)
                if inner is not None and slot[1].startswith("["):
                    yield from _tensors(m, inner, depth - 1)
