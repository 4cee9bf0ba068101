"""Two fields to which one method gives one tensor, or an array and a tensor over it: `self.now = self.start = x`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import FieldsShare, FieldsTwins, Link
from torchcopylint.flow.model import ARGUMENT, BUFFERS, How, Kind, Sure
from torchcopylint.flow.storages import keeping, reading
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

_DEPTH = 8
"""So deep are the operands of an operator looked at that are results of operators themselves."""


def found(m: Machine) -> Iterator[FieldsTwins]:
    """The pairs of fields that hold one tensor or array when the constructor ends, and for good; or when another method
    does that makes it on all paths, and nobody else sets either.

    A parameter is shared on purpose.
    """
    if m.unit.owner < 0 or not m.unit.parameters:
        return
    first: dict[int, tuple[str, int]] = {}
    for slot in m.state.slot_names(m.number("argument", m.unit.first)):
        cell = m.state.cell(slot)
        if cell is None or len(cell.refs) != 1 or cell.site < 0 or cell.plain:
            continue
        obj = m.state.object(cell.refs[0])
        if obj.kind not in BUFFERS or obj.kind is Kind.PARAMETER:
            continue
        if m.unit.name != "__init__" and not (_is_made_here(m, cell.refs[0]) and cell.site not in m.index.on_arms):
            continue
        name, (before, site) = slot[1][1:], first.setdefault(cell.refs[0], (slot[1][1:], cell.site))
        if before == name:
            continue
        if not any(keeping.is_reset(m, field) for field in (before, name)):
            one, other = (before, name) if site < cell.site else (name, before)
            met = not _is_one_assignment(m, before, name) and meet(m, {one, other})
            yield FieldsTwins(max(site, cell.site), one, other, met, obj.sure, m.unit.name != "__init__")


def _is_made_here(m: Machine, ref: int) -> bool:
    """Whether the unit has made a tensor, and has not found it anywhere."""
    obj = m.state.object(ref)
    return not obj.owner and all(share.how is How.OWN and share.storage == ref for share in obj.shares)


def shared(m: Machine) -> Iterator[FieldsShare]:
    """The pairs of fields that an array and a tensor over its memory are put into, which the constructor was handed in.

    Of what the constructor makes itself, two such fields are meant: the one fills the other.
    """
    if m.unit.name != "__init__" or m.unit.owner < 0 or not m.unit.parameters:
        return
    before: dict[int, list[tuple[str, reading.Chain]]] = {}
    for slot in m.state.slot_names(m.number("argument", m.unit.first)):
        cell = m.state.cell(slot)
        if cell is None or len(cell.refs) != 1 or cell.site < 0 or cell.plain:
            continue
        obj = m.state.object(cell.refs[0])
        if obj.kind not in BUFFERS or keeping.is_reset(m, slot[1][1:]):
            continue
        handed = [share for share in obj.shares if m.state.object(share.storage).owner == ARGUMENT]
        for share in handed if len(handed) == 1 else ():
            source = m.state.object(share.storage)
            chain = reading.chain_of(m, cell.refs[0], share)
            for name, other in before.setdefault(share.storage, []):
                links = _between(chain, other)
                hows = [link.how for link in links if link.how in (How.NUMPY, How.FROM_NUMPY)]
                # Of a conversion, all that is below is as unsure as it is.
                sure_way = any(link.when for link in links) or all(link.sure for link in links)
                if len(hows) == 1 and hows[0] is not None and sure_way:
                    sure = min(source.sure, max(obj.sure, Sure.LIKELY))
                    fields = (name, slot[1][1:])
                    yield FieldsShare(cell.site, *fields, source.text, hows[0], links, tuple(_looks(m, fields)), sure)
            before[share.storage].append((slot[1][1:], chain))


def _looks(m: Machine, fields: tuple[str, str]) -> Iterator[tuple[str, int]]:
    """Where the other methods of a class do something with what a field holds, other than to set a part of it."""
    for unit in m.world.program.units:
        for event in unit.definitions if unit.owner == m.unit.owner and unit.number != m.unit.number else ():
            if isinstance(event, t.Attribute) and event.name in fields:
                base, user = unit.definitions[event.base], m.world.index(unit).consumers.get(event.out)
                own = isinstance(base, t.Load) and base.name == unit.first
                if own and user is not None and not isinstance(user, t.StoreItem | t.Augment):
                    yield event.name, user.site


def _between(one: reading.Chain, other: reading.Chain) -> tuple[Link, ...]:
    """How two objects came to share a storage: the links below the nearest object that both come from."""
    ups, downs = {number for number, _ in one}, {number for number, _ in other}
    below = {link for number, link in one if number not in downs} | {
        link for number, link in other if number not in ups
    }
    return tuple(sorted((link for link in below if link.how is not None), key=lambda link: link.site))


def _is_one_assignment(m: Machine, one: str, other: str) -> bool:
    """Whether one statement sets both: `self.a = self.b = x`. Then that they are one tensor is no oversight."""
    stores = [event for event in m.index.of(t.StoreAttribute) if event.name in (one, other)]
    values = {event.name: event.value for event in stores if naming.text_of(m, event.base) == m.unit.first}
    return len(values) == 2 and values[one] == values[other]


def meet(m: Machine, fields: set[str], before: int = -1) -> bool:
    """Whether some method of the class takes both fields for operands of one operation, or of one sum or product:
    `(self.now - self.start)`, `2 * self.now - self.old + step`.

    This unit does so, too, if that is `before` the one is put into the other: it is what an earlier call has left.
    """
    for unit in m.world.program.units:
        for event in unit.definitions if unit.owner == m.unit.owner else ():
            if not isinstance(event, t.Operate | t.Invoke | t.Call):
                continue
            if (unit.number != m.unit.number or event.site < before) and fields <= _operands(unit, event):
                return True
    return False


def _operands(unit: t.Unit, event: t.Operate | t.Invoke | t.Call) -> set[str]:
    """The names of the fields that an operation takes, and that operators take whose results it takes."""
    found: set[str] = set()
    pending: list[tuple[t.Event | None, int]] = [(event, 0)]
    while pending:
        one, depth = pending.pop()
        if isinstance(one, t.Attribute):
            found.add(one.name)
        elif depth == 0 or (isinstance(one, t.Operate) and depth < _DEPTH):
            pending += [(unit.definitions[at], depth + 1) for at in _taken(one) if at >= 0]
    return found


def _taken(event: t.Event | None) -> list[int]:
    if isinstance(event, t.Operate):
        return list(event.operands)
    if isinstance(event, t.Invoke | t.Call):
        taken = [argument.register for argument in event.arguments]
        return [*taken, event.base] if isinstance(event, t.Invoke) else taken
    return []
