"""What a function puts into fields of its arguments in the place of what they held: `self.hidden = self.cell(x)`; and
under names that it takes from outside (`global best`).

Where another summary says what that is (`handing`, `leaving`), who calls it knows; of all others, that the field does
not hold what it has held.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import FIELD, Cell, Kind, Object, Sure, Value
from torchcopylint.flow.storages import slots
from torchcopylint.flow.tapes import outer, uses
from torchcopylint.flow.values import memory

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from torchcopylint.flow.running.machine import Machine


class Exchanged(NamedTuple):
    """A function sets `slot`, a field of the argument `parameter`, or, without one, the outer name that stands there;
    `always` is whether every call does, `kind` that of what it is set to, and `plain` whether that is no object: a
    number, a text, nothing.
    """

    parameter: str
    slot: str
    always: bool
    kind: Kind
    plain: bool


def of(m: Machine, told: Collection[tuple[str, tuple[str, ...]]]) -> tuple[Exchanged, ...]:
    """The fields of its arguments that a unit that has been run sets, itself or by what it calls, but for those of
    which it is `told` otherwise what they hold then, by parameter and path."""
    if m.unit.kind != "function" or m.unit.name == "__init__":
        return ()
    found: list[Exchanged] = []
    elsewhere = {(parameter, "".join(path)) for parameter, path in told}
    returned = {ref for value in m.results.returned for ref in value.refs}
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
            found.append(Exchanged(parameter.name, slot[1], always, cell.kind, _is_plain(cell)))
        by_calls = ((name, how) for (owner, name), how in m.called.exchanged.items() if owner == ref)
        found += (Exchanged(parameter.name, name, *how) for name, how in by_calls if m.state.cell((ref, name)) is None)
    return (*found, *(one for one in _outer_names(m) if (one.parameter, "") not in elsewhere))


def _outer_names(m: Machine) -> Iterator[Exchanged]:
    """The names of the module, or of a function around the unit, that it binds."""
    for name in sorted(m.index.binds.keys() - m.unit.bound):
        cell = m.state.cell(name) if m.world.is_of_file(m.unit.number) else None
        if cell is not None and not name.startswith("%") and "#" not in name:
            always = not any(uses.on_some_paths(m, bind.site) for bind in m.index.binds[name])
            yield Exchanged(outer.named(name), "", always, cell.kind, _is_plain(cell))


def by_call(m: Machine, unit: int, items: tuple[Exchanged, ...], bound: dict[str, Value], site: int) -> None:
    """A call of a unit sets fields of what it is given. What nobody here has looked at is nothing that it would be told
    from."""
    for item in items:
        if not item.slot:
            _bind_outer(m, unit, item, site)
            continue
        value = bound.get(item.parameter)
        slot = (value.refs[0], item.slot) if value is not None and len(value.refs) == 1 else None
        if slot is None:
            continue
        if m.state.cell(slot) is None:
            m.called.exchanged[slot] = (item.always and not uses.on_some_paths(m, site), item.kind, item.plain)
            continue
        new = Value(kind=item.kind)
        if not item.plain:
            owner = m.state.object(slot[0])
            known = m.world.field_of(owner.type, item.slot[1:]) or Object()
            made = known._replace(text=f"{owner.text}{item.slot}", owner=FIELD)
            new = memory.fresh(m, site, made, f"exchanged {item.parameter}{item.slot}")
        slots.bind_slot(m, slot, new, site, weak=not item.always)


def _bind_outer(m: Machine, unit: int, item: Exchanged, site: int) -> None:
    """A call binds a name that it has in common with the unit."""
    name = outer.key_of(m, unit, item.parameter)
    before = m.state.cell(name) if name is not None else None
    if name is None or before is None:
        return
    new = Value(kind=item.kind)
    if not item.plain:
        made = Object(item.kind, Sure.LIKELY if item.kind is not Kind.UNKNOWN else Sure.NOT, text=name)
        new = memory.fresh(m, site, made, f"exchanged {name}")
    if not item.always:
        new = slots.join_values([Value(before.refs, before.kind, before.const, before.marks), new])
    memory.bind(m, name, new, site)


def _is_plain(cell: Cell) -> bool:
    """Whether a name or field holds something that is no object."""
    return not cell.refs and cell.kind is not Kind.UNKNOWN


def sets_fields(m: Machine) -> bool:
    """Whether a method that has been run sets a field of its object, on whatever path, itself or by what it calls."""
    first = m.unit.first
    if m.unit.owner < 0 or not first:
        return False
    receiver = m.number("argument", first)
    if any(owner == receiver for owner, _ in m.called.exchanged):
        return True
    bases = (m.unit.definitions[store.base] for store in m.index.of(t.StoreAttribute) if store.base >= 0)
    return any(isinstance(base, t.Load) and base.name == first for base in bases)
