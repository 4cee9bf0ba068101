"""Writes through what a conversion returned, which is the source itself where there was nothing to convert."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import ConditionalWrite, Write
from torchcopylint.flow.model import ARGUMENT, FIELD, TENSORS, Fact, How, Kind, Value
from torchcopylint.flow.storages import reading
from torchcopylint.flow.values import dtypes, naming

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine


def note_write(m: Machine, value: Value, write: Write) -> None:
    """A write whose storages are not all sure: which of them it reaches on a condition only."""
    for ref in value.refs:
        obj = m.state.object(ref)
        if obj.kind not in TENSORS:
            continue
        for share in obj.shares:
            if share.sure or share.storage not in m.hits.certain_storages[write.site]:
                continue
            chain = tuple(link for _, link in reading.chain_of(m, ref, share))
            when = reading.condition_of(chain)
            converted = next((link for link in chain if link.when == when and link.how is How.CONDITIONAL), None)
            owner = m.state.object(share.storage)
            # What a conversion makes a tensor of is a tensor.
            if converted is not None and owner.kind in (*TENSORS, Kind.UNKNOWN):
                links = tuple(link for link in chain if link.how is not None)
                if naming.is_asked(m, write.root, owner.text, links):
                    continue
                if owner.owner == FIELD and owner.text == write.root:
                    # `self.x = self.x.to(device)`: nobody has the one before, and this field is to be written.
                    continue
                if owner.owner == FIELD and _is_stored_back(m, ref, share.storage):
                    continue
                m.fact(
                    ConditionalWrite(
                        site=write.site,
                        name=write.root or write.name,
                        source=owner.text,
                        owner=owner.owner,
                        storage=share.storage,
                        when=when,
                        links=links,
                        own=owner.owner == FIELD and _of_self(m, owner.text),
                        sure=obj.sure if owner.kind is Kind.UNKNOWN else min(obj.sure, owner.sure),
                        dtype=obj.dtype,
                    )
                )


def still_held(m: Machine, fact: ConditionalWrite) -> bool:
    """Whether, at the end of a unit, a place still holds the source: a field that was bound anew was not the source.

    Of a parameter, whether some call may pass what needs no conversion.
    """
    if fact.owner == ARGUMENT and "dtype" in fact.when:
        return dtypes.same(m.world.passed_dtype(m, fact.source), fact.dtype) is not Fact.NO
    if fact.owner != FIELD:
        return True
    if _is_copied_back(m, fact):
        return False
    return any(isinstance(key, tuple) and fact.storage in cell.refs for key, cell in m.state.holders_of(fact.storage))


def _is_stored_back(m: Machine, ref: int, source: int) -> bool:
    """Whether each place that holds the source holds what was made of it as well, if that was another one:
    `x = state["x"] = x.to(device)` in an arm of a condition."""
    held = [cell for key, cell in m.state.holders_of(source) if isinstance(key, tuple) and m.state.holders.get(key[0])]
    return bool(held) and all(ref in cell.refs for cell in held)


def _is_copied_back(m: Machine, fact: ConditionalWrite) -> bool:
    """Whether what was written is copied into the source afterwards: `self.mask.copy_(mask)`."""
    for event in m.index.of(t.Invoke):
        filled = m.writes.get(event.site) if event.name == "copy_" and event.site > fact.site else None
        if filled is not None and filled.name == fact.source and event.arguments:
            given = m.unit.definitions[event.arguments[0].register]
            if isinstance(given, t.Load) and given.name == fact.name:
                return True
    return False


def _of_self(m: Machine, text: str) -> bool:
    return m.unit.owner >= 0 and bool(m.unit.parameters) and text.startswith(f"{m.unit.first}.")
