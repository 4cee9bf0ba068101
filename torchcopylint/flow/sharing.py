"""Parameters and buffers that are put on the storage of others: where it starts, and what becomes of it."""

from __future__ import annotations

from torchcopylint.flow import idioms
from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import DataShared
from torchcopylint.flow.machine import Machine, PutOn
from torchcopylint.flow.model import How, Sure, Value
from torchcopylint.flow.reading import MAX_CHAIN

_TAKING_OFF = frozenset({"delattr", "__delattr__", "_parameters"})
"""Names that say that parameters are taken off modules: `del module._parameters["weight"]`."""
_CONVERSIONS = frozenset({"to", "cpu", "cuda", "float", "double", "half", "bfloat16", "type", "type_as"})


def note(m: Machine, site: int, ref: int, source: Value, text: str, shared: str, form: str, sure: Sure) -> None:
    """An object, `text`, is put on the storages of `source`, which a live parameter or buffer, `shared`, sits on."""
    if form == "parameter" and _takes_off(m):
        return
    storages = frozenset(share.storage for held in source.refs for share in m.state.object(held).shares)
    m.put_on[site] = PutOn(ref, storages, shared)
    context = idioms.CONVERSION if m.world.converts(m) else ""
    m.fact(DataShared(site, text, shared, form, sure, context=context))


def replaced(m: Machine, value: Value, place: str) -> None:
    """A value is stored at a place. If that is where its memory came from, it replaces what was there."""
    for ref in value.refs:
        site = m.state.object(ref).site
        if site in m.put_on and m.put_on[site].ref == ref and m.put_on[site].source == place:
            m.facts[site] = [fact for fact in m.facts[site] if not isinstance(fact, DataShared)]


def _takes_off(m: Machine) -> bool:
    """Whether a unit takes parameters off modules: what it makes of them goes on in their place, under other names."""
    return any(
        event.name in _TAKING_OFF for event in m.unit.definitions if isinstance(event, t.Load | t.Attribute | t.Invoke)
    )


def is_passing(m: Machine, register: int) -> bool:
    """Whether what a call returns is an operand and nothing else, perhaps after a conversion: nobody holds it."""
    event = m.consumer_of(register)
    while isinstance(event, t.Invoke) and event.base == register and event.name in _CONVERSIONS:
        register = event.out
        event = m.consumer_of(register)
    return isinstance(event, t.Operate)


def let_go(m: Machine, slot: tuple[int, str], value: Value) -> None:
    """A field is set or deleted: what it held is not in use any more, and whoever was put on that took it over."""
    cell = m.state.cell(slot)
    if cell is None or not m.put_on:
        return
    kept = {share.storage for ref in value.refs for share in m.state.object(ref).shares}
    own = {share.storage for ref in cell.refs for share in m.state.object(ref).shares if share.how is How.OWN} - kept
    fields = {ref for ref in cell.refs if any(share.how is How.FIELD for share in m.state.object(ref).shares)}
    for site, put in m.put_on.items():
        if put.storages & own or _taken_from(m, put.ref, fields):
            m.facts[site] = [fact for fact in m.facts[site] if not isinstance(fact, DataShared)]


def _taken_from(m: Machine, ref: int, fields: set[int]) -> bool:
    """Whether an object was put on the memory of one of the objects that a module's field held until now."""
    for _ in range(MAX_CHAIN if fields else 0):
        above = [share.of for share in m.state.object(ref).shares if share.how is not How.OWN and share.of != ref]
        if not above:
            return False
        ref = above[0]
        if ref in fields:
            return True
    return False
