"""Parameters that a unit writes by another name: the project is asked whether all callers let go of what they pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torchcopylint.flow.facts import ConditionalWrite, Relation, Write
from torchcopylint.flow.model import ARGUMENT

if TYPE_CHECKING:
    from torchcopylint.flow.files.world import World
    from torchcopylint.flow.running.machine import Machine


def parameters(world: World, m: Machine, found: Sequence[Relation]) -> frozenset[str]:
    """The parameters for which every call passes what nobody else holds, or looks at again: `f(x.clone())`.

    Where the file has no call of the unit, the project is asked, and of those alone that the unit writes by way of
    views, second names and conversions, for something that it returns.
    """
    number = m.unit.number
    known = world.given_away(number)
    owner = world.program.classes[m.unit.owner] if m.unit.owner >= 0 else None
    within = world.program.units[owner.body].parent if owner is not None else m.unit.parent
    if m.unit.kind != "function" or within != 0 or not m.results.returned or not world.is_of_file(number):
        return known
    if m.unit.name.endswith("_") or m.unit.name.startswith("__"):
        # The one says by its name that it writes; the other is called by no name.
        return known
    conditional = {fact.site for fact in found if isinstance(fact, ConditionalWrite) and fact.owner == ARGUMENT}
    written = {
        write.owner_name
        for write in m.writes.values()
        if write.site in conditional or (write.owner == ARGUMENT and _by_another_name(write))
    }
    own = m.unit.first if owner is not None else ""
    names = {one.name for one in m.unit.parameters if one.name in written and one.name != own}
    asked = sorted(name for name in names if not world.is_passed(number, name))
    name = owner.name if owner is not None else ""
    return known | {one for one in asked if world.outside.all_let_go(name, m.unit.name, one)}


def _by_another_name(write: Write) -> bool:
    """Whether an argument is written through a view, or what it was converted to, or by a second plain name."""
    return write.root != write.owner_name or any(link.how is not None for link in write.chain)
