"""What a function puts into fields of its arguments in the place of what they held: `self.hidden = self.cell(x)`.

Where another summary says what that is (`handing`, `leaving`), who calls it knows; of all others, that the field does
not hold what it has held.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from torchcopylint.flow.model import FIELD, Kind, Object, Value
from torchcopylint.flow.storages import slots
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import memory

if TYPE_CHECKING:
    from collections.abc import Collection

    from torchcopylint.flow.running.machine import Machine


class Exchanged(NamedTuple):
    """A function sets `slot`, a field of the argument `parameter`; `always` is whether every call does, and `nothing`
    whether it sets it to `None`."""

    parameter: str
    slot: str
    always: bool
    nothing: bool


def of(m: Machine, told: Collection[tuple[str, tuple[str, ...]]]) -> tuple[Exchanged, ...]:
    """The fields of its arguments that a unit that has been run sets, itself or by what it calls, but for those of
    which it is `told` otherwise what they hold then, by parameter and path."""
    if m.unit.kind != "function" or m.unit.name == "__init__":
        return ()
    found: list[Exchanged] = []
    elsewhere = {(parameter, "".join(path)) for parameter, path in told}
    returned = {ref for value in m.returned for ref in value.refs}
    for parameter in m.unit.parameters:
        ref = m.number("argument", parameter.name)
        for slot in m.state.slot_names(ref) if parameter.kind == "plain" else ():
            cell = m.state.cell(slot)
            if cell is None or cell.site < 0 or not slot[1].startswith(".") or (parameter.name, slot[1]) in elsewhere:
                continue
            always = not uses.on_some_paths(m, cell.site)
            if cell.refs == (m.number("slot", slot),) or (not always and not returned.isdisjoint(cell.refs)):
                # It was written in place, or set to what it held; or it is filled by whoever asks for it first.
                continue
            found.append(Exchanged(parameter.name, slot[1], always, cell.kind is Kind.NONE and not cell.refs))
        by_calls = ((name, how) for (owner, name), how in m.exchanged.items() if owner == ref)
        found += (Exchanged(parameter.name, name, *how) for name, how in by_calls if m.state.cell((ref, name)) is None)
    return tuple(found)


def by_call(m: Machine, items: tuple[Exchanged, ...], bound: dict[str, Value], site: int) -> None:
    """A call sets fields of what it is given. What nobody here has looked at is nothing that it would be told from."""
    for item in items:
        value = bound.get(item.parameter)
        slot = (value.refs[0], item.slot) if value is not None and len(value.refs) == 1 else None
        if slot is None:
            continue
        if m.state.cell(slot) is None:
            m.exchanged[slot] = (item.always and not uses.on_some_paths(m, site), item.nothing)
            continue
        new = Value(kind=Kind.NONE)
        if not item.nothing:
            owner = m.state.object(slot[0])
            known = m.world.field_of(owner.type, item.slot[1:]) or Object()
            made = known._replace(text=f"{owner.text}{item.slot}", owner=FIELD)
            new = memory.fresh(m, site, made, f"exchanged {item.parameter}{item.slot}")
        slots.bind_slot(m, slot, new, site, weak=not item.always)
