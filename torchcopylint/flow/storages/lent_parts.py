"""What a value has come from by way of others: a part that a function hands out, a name of the module in a field."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import FieldIsGlobal, PartHandedOut
from torchcopylint.flow.model import BUFFERS, GLOBAL, How, Kind
from torchcopylint.flow.references import FunctionReference
from torchcopylint.flow.storages import keeping, reading
from torchcopylint.knowledge import table

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

_PARTS = frozenset({How.INDEX, How.ROW})


def found(m: Machine) -> Iterator[PartHandedOut | FieldIsGlobal]:
    """What a unit that has been run says of them."""
    for site, write in sorted(m.writes.items()):
        taken = [link for link in write.chain if link.how is not None]
        parts = list(takewhile(lambda link: link.how in _PARTS, taken))
        if any(_is_own_call(m, link.site) or _is_own_other(m, link.site) for link in parts):
            yield PartHandedOut(site)
    if m.unit.name == "__init__" and m.unit.owner >= 0 and m.unit.parameters:
        yield from _from_globals(m)


def _is_own_call(m: Machine, site: int) -> bool:
    """Whether a function of the user's is called at a site, and not an operation."""
    event = m.unit.definitions[m.index.calls[site]] if site in m.index.calls else None
    if isinstance(event, t.Invoke):
        kinds = {m.state.object(ref).kind for ref in m.value(event.base).refs}
        return kinds <= {Kind.INSTANCE, Kind.MODULE} and table.tensor_method(event.name) is None
    return isinstance(event, t.Call) and isinstance(m.value(event.function).const, FunctionReference)


def _is_own_other(m: Machine, site: int) -> bool:
    """Whether a property of an object of the user's is looked at, or a loop goes through such an object."""
    looks: list[t.Attribute | t.Iterate] = [*m.index.of(t.Attribute), *m.index.of(t.Iterate)]
    for event in looks:
        if event.site == site:
            base = event.base if isinstance(event, t.Attribute) else event.iterable
            objects = [m.state.object(ref) for ref in m.value(base).refs]
            name = event.name if isinstance(event, t.Attribute) else "__iter__"
            return bool(objects) and all(m.world.method_of(obj, name) is not None for obj in objects)
    return False


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
