"""Memory that its tensor leaves: `kept = p.data; p.data = q.data`, and `p.data, q.data = q.data, p.data`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.storages.reading import MAX_CHAIN
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

_SAME = frozenset({"to", "cpu", "cuda", "float", "double", "half", "bfloat16", "type", "type_as", "detach", "view"})
"""Methods that may give back the memory of what they are called on."""


def is_left(m: Machine, register: int) -> bool:
    """Whether what a register holds is the `.data` of a tensor that is put on other memory once it has been taken.

    That happens on the way on from where it was taken, and whatever else does: who gets the memory has it alone.
    """
    taken = _taken(m, register)
    name = naming.text_of(m, taken.base) if taken is not None else ""
    if taken is None or not name or "..." in name:
        return False
    after = _after(m.unit.tape, taken)
    put = [e for e in after if isinstance(e, t.StoreAttribute) and e.name == "data" and not e.augmented]
    other = [e for e in put if naming.text_of(m, e.base) == name and not _comes_back(m, e, name, taken)]
    return bool(other)


def is_left_at(m: Machine, site: int) -> bool:
    """Whether what is taken at a site is the `.data` of a tensor that is put on other memory after that."""
    taken = (event for event in m.index.of(t.Attribute) if event.site == site and event.name == "data")
    return any(is_left(m, event.out) for event in taken)


def _taken(m: Machine, register: int) -> t.Attribute | None:
    """Where what a register holds is taken as the `.data` of a tensor, if that is what it is."""
    for _ in range(MAX_CHAIN):
        made = m.unit.definitions[register] if register >= 0 else None
        if isinstance(made, t.Attribute):
            return made if made.name == "data" else None
        if isinstance(made, t.Load):
            bound = uses.bindings_before(m, made)
            register = bound[0] if len(bound) == 1 else t.NO_REGISTER
        elif isinstance(made, t.Unpack):
            packed = m.unit.definitions[made.value] if made.value >= 0 else None
            known = isinstance(packed, t.Make) and not any(packed.stars) and 0 <= made.position < len(packed.items)
            register = packed.items[made.position] if known and isinstance(packed, t.Make) else t.NO_REGISTER
        else:
            return None
    return None


def _comes_back(m: Machine, store: t.StoreAttribute, name: str, taken: t.Attribute) -> bool:
    """Whether what a tensor is put on may be the memory that was taken of it: its own, or what another one got of it in
    between."""
    register = store.value
    for _ in range(MAX_CHAIN):
        made = m.unit.definitions[register] if register >= 0 else None
        if not isinstance(made, t.Invoke) or made.name not in _SAME:
            break
        register = made.base
    source = _taken(m, register)
    if source is None:
        return False
    if naming.text_of(m, source.base) == name:
        return True
    between = _after(m.unit.tape, taken)
    got = [e for e in between if isinstance(e, t.StoreAttribute) and e.name == "data" and e.site != store.site]
    return any(_taken(m, e.value) == taken and source in _after(m.unit.tape, e) for e in got)


def _after(tape: t.Tape, event: t.Event) -> tuple[t.Event, ...]:
    """What is run after an event without a condition, before the bracket ends that it stands in."""
    if event in tape:
        return tape[tape.index(event) + 1 :]
    for one in tape:
        for inner in t.inner_tapes(one):
            found = _after(inner, event)
            if found:
                return found
    return ()
