"""Which fields of an object hold networks with a layer in common, as its constructor leaves them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow.model import ANY_ELEMENT, How, Kind, Slot
from torchcopylint.flow.program import wholes
from torchcopylint.flow.program.ties import SOME, Tie

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

MAX_DEPTH = 3
"""So deep a network is looked into for its layers."""
MAX_FIELDS = 24
"""So many fields with modules are compared with one another."""


def learn(m: Machine) -> list[Tie]:
    """`self.actor = Sequential(trunk, nn.Linear(8, 2))` and `self.critic = Sequential(trunk, nn.Linear(8, 1))`."""
    if m.unit.name != "__init__" or m.unit.owner < 0 or not m.unit.parameters:
        return []
    held: dict[str, frozenset[int]] = {}
    for slot in m.state.slot_names(m.number("argument", m.unit.first)):
        refs = _surely_in(m, slot)
        if refs and m.state.object(refs[0]).kind is Kind.MODULE and not m.world.setters(slot[1][1:]):
            inside = _parts_of(m, refs[0], MAX_DEPTH)
            own = (share for ref in inside for share in m.state.object(ref).shares if share.how is How.OWN)
            held[slot[1][1:]] = frozenset(share.storage | 1 for share in own if share.sure)
    names = sorted(held)[:MAX_FIELDS]
    pairs = [(one, other) for place, one in enumerate(names) for other in names[place + 1 :]]
    return [Tie(one, SOME, other, SOME, "") for one, other in pairs if _trained(m, held[one] & held[other])]


def _parts_of(m: Machine, ref: int, depth: int) -> set[int]:
    """A module, and what stands in its slots whichever way the constructor goes, as far as that is known."""
    found = {ref}
    for slot in m.state.slot_names(ref) if depth else ():
        for held in _surely_in(m, slot) if slot[1] != ANY_ELEMENT else m.state.refs_of(slot):
            if m.state.object(held).kind in (Kind.MODULE, Kind.PARAMETER):
                found |= _parts_of(m, held, depth - 1)
    return found


def _surely_in(m: Machine, slot: Slot) -> tuple[int, ...]:
    """The one object that a slot holds on all paths."""
    cell = m.state.cell(slot)
    return cell.refs if cell is not None and len(cell.refs) == 1 and cell.site not in m.index.on_arms else ()


def _trained(m: Machine, common: frozenset[int]) -> bool:
    return any(not wholes.trains_nothing(m, m.state.object(storage & ~1)) for storage in common)
