"""Loops that go through everything that there is in a container: whoever reads each element reads the one written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import LAZY_FORMS
from torchcopylint.flow.tapes import uses

if TYPE_CHECKING:
    from torchcopylint.flow.model import Value
    from torchcopylint.flow.running.machine import Machine


def goes_through_all(m: Machine, value: Value, site: int) -> bool:
    """Whether a name holds, turn by turn, each of the elements that one site has made, of which one is the newest, or
    each that there is in a container."""
    if not isinstance(value.root, str) or len(value.refs) < 2:
        return False
    cell = m.state.cell(value.root)
    bound = [bind for bind in m.index.binds.get(value.root, ()) if cell is not None and bind.site == cell.site]
    if len(bound) != 1 or not uses.from_iteration(m, bound[0].value):
        return False
    return len({ref | 1 for ref in value.refs}) == 1 or (
        not uses.on_some_paths(m, site) and _are_all_elements(m, value, bound[0].value)
    )


def _are_all_elements(m: Machine, value: Value, register: int) -> bool:
    """Whether objects are all the elements of one of the containers that a loop goes through."""
    made = m.unit.definitions[register]
    while isinstance(made, t.Unpack):
        made = m.unit.definitions[made.value]
    pending = list(m.value(made.iterable).refs) if isinstance(made, t.Iterate) and made.iterable >= 0 else []
    for ref in pending:
        slots = m.state.slot_names(ref)
        if m.state.object(ref).type in LAZY_FORMS:
            pending += [inner for slot in slots for inner in m.state.refs_of(slot) if inner not in pending]
        elif {inner for slot in slots if slot[1].startswith("[") for inner in m.state.refs_of(slot)} == set(value.refs):
            return True
    return False
