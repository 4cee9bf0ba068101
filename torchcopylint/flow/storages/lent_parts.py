"""What a value has come from by way of others: a part that a function hands out, a name of the module in a field."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import TYPE_CHECKING

from torchcopylint.flow.facts import FieldIsGlobal, PartHandedOut
from torchcopylint.flow.model import BUFFERS, FIELD, GLOBAL, How
from torchcopylint.flow.storages import keeping, reading
from torchcopylint.flow.tapes import handed_out

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

_PARTS = frozenset({How.INDEX, How.ROW})


def found(m: Machine) -> Iterator[PartHandedOut | FieldIsGlobal]:
    """What a unit that has been run says of them."""
    for site, write in sorted(m.writes.items()):
        taken = [link for link in write.chain if link.how is not None]
        parts = list(takewhile(lambda link: link.how in _PARTS, taken))
        if any(handed_out.is_call(m, link.site) or handed_out.is_look(m, link.site) for link in parts):
            yield PartHandedOut(site)
        elif not taken and write.owner == FIELD and write.root and handed_out.is_all(m, write):
            yield PartHandedOut(site, whole=True)
    if m.unit.name == "__init__" and m.unit.owner >= 0 and m.unit.parameters:
        yield from _from_globals(m)


def _from_globals(m: Machine) -> Iterator[FieldIsGlobal]:
    me = m.number("argument", m.unit.first)
    for slot in m.state.slot_names(me):
        cell = m.state.cell(slot)
        # What is there on every path is shared on purpose, as a table may be.
        if cell is None or len(cell.refs) < 2 or cell.site < 0 or keeping.is_reset(m, slot[1][1:]):
            continue
        for ref in cell.refs:
            obj = m.state.object(ref)
            owners = [m.state.object(share.storage) for share in obj.shares if not share.when]
            known = obj.kind in BUFFERS and len(obj.shares) == len(owners) == 1
            if known and owners[0].owner == GLOBAL and obj.shares[0].how in (How.OWN, *reading.VIEWS):
                yield FieldIsGlobal(cell.site, slot[1][1:], owners[0].text, obj.sure)
