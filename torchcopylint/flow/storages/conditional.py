"""Writes through what a conversion returned, which is the source itself where there was nothing to convert."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    return any(isinstance(key, tuple) and fact.storage in cell.refs for key, cell in m.state.holders_of(fact.storage))


def _of_self(m: Machine, text: str) -> bool:
    return m.unit.owner >= 0 and bool(m.unit.parameters) and text.startswith(f"{m.unit.first}.")
