"""Which of its parts a network calls: backward over what it returns needs the parameters of these, and of no others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import Fact, How, Kind, Object, Region, Share
from torchcopylint.flow.program import apart

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

MAX_PARTS = 6
"""So deep the parts of parts are followed."""


def needs(m: Machine, number: int, written: Share) -> bool:
    """Whether what a network has saved as a whole, under a number, has in it what sits on a storage as `written` does.

    A part that no `forward` on the way calls is not in it, nor is a layer that learns apart.
    """
    kept = m.state.object(m.needed.objects[number])
    own = next((share for share in kept.shares if share.storage == written.storage), None)
    region = _region(m, written)
    if own is None or region[: len(own.region)] != own.region:
        return True
    below = region[len(own.region) :]
    refs: tuple[int, ...] = (m.needed.objects[number],)
    for part in below[:MAX_PARTS]:
        if part.kind != "field" or not isinstance(part.value, str):
            break
        local = m.world.local_class(kept.type)
        if local is not None and part.value in apart.fields(m.world, local):
            return False
        if _is_statistic(m, kept, part.value):
            return False
        parts = _called_by(m, kept)
        if parts is not None and part.value not in parts:
            return False
        if parts is not None and not parts[part.value]:
            break
        cells = [m.state.cell((ref, f".{part.value}")) for ref in refs]
        refs = tuple(ref for cell in cells if cell is not None for ref in cell.refs)
        if len(refs) != 1:
            break
        kept = m.state.object(refs[0])
    return True


def _is_statistic(m: Machine, network: Object, name: str) -> bool:
    """Whether a field is a parameter that requires no gradient and that `forward` does not count with: numbers that are
    to be saved with the weights. Backward would need it for the gradient of what it is multiplied by."""
    field = m.world.field_of(network.type, name) if network.type else None
    if field is None or field.kind is not Kind.PARAMETER or field.requires_grad is not Fact.NO:
        return False
    forward = m.world.method_of(network, "forward")
    if forward is None:
        return False
    # What a `forward` of another file counts with, nobody knows here.
    unit = m.world.unit(forward)
    counted = {register for event in m.world.index(unit).of(t.Operate) for register in event.operands}
    return not any(
        isinstance(event, t.Attribute) and event.name == name and event.out in counted for event in unit.definitions
    )


def _region(m: Machine, written: Share) -> Region:
    """The part of a network that is written: an optimizer steps what it was given, `network.head.parameters()`."""
    if written.region or written.how is not How.PARAMETERS:
        return written.region
    given = m.state.object(written.of).shares
    return next((share.region for share in given if share.storage == written.storage), ())


def _called_by(m: Machine, network: Object) -> Mapping[str, bool] | None:
    """The fields that a network uses with recording on when it is called, each with whether it only calls it;
    `None` if nobody knows."""
    forward = m.world.method_of(network, "forward")
    if forward is None:
        return None
    if network.owner == "self" and m.world.overriding(forward):
        # This very object may be one of an heir's class.
        return None
    found: dict[str, bool] = {}
    pending, seen = [forward], {forward}
    while pending:
        used = _recorded(m, pending.pop())
        if used is None:
            return None
        for name, called in used.items():
            number = m.world.method_of(network, name)
            if number is not None and number not in seen:
                seen.add(number)
                pending.append(number)
            elif number is None:
                if m.world.field_of(network.type, name) is None:
                    # Something that modules have: `self.children()`.
                    return None
                found[name] = found.get(name, True) and called
    return found or None


def _recorded(m: Machine, method: int) -> Mapping[str, bool] | None:
    """The fields that a method of this or another file uses with recording on."""
    if not m.world.is_own(method):
        return m.world.outside.uses(method)
    return m.world.index(m.world.unit(method)).recorded_fields
