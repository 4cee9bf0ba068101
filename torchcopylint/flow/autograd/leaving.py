"""What a method leaves behind that it has computed: `self.features = self.layer(x)` holds a graph after the call."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from torchcopylint.flow.model import LOCAL, TENSORS, Fact, Kind, Object, Sure, Value
from torchcopylint.flow.storages import slots
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import memory

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine


class Left(NamedTuple):
    """Each call leaves a computed tensor with a graph in the `slot` of the object that the method is called on."""

    keeper: str
    slot: str
    sure: Sure


def left(m: Machine) -> tuple[Left, ...]:
    """What a method that has been run leaves so, in fields that no other unit of the file sets."""
    if m.unit.owner < 0 or m.unit.kind != "function" or not m.unit.parameters or m.unit.name == "__init__":
        return ()
    me = m.unit.first
    found = []
    for slot in m.state.slot_names(m.number("argument", me)):
        cell = m.state.cell(slot)
        if cell is None or cell.site < 0 or len(cell.refs) != 1 or not slot[1].startswith("."):
            continue
        obj = m.state.object(cell.refs[0])
        computed = obj.kind in TENSORS and obj.leaf is Fact.NO and obj.requires_grad > 0 and obj.owner in ("", LOCAL)
        others = m.world.setters(slot[1][1:]) - {m.unit.number}
        if computed and not others and not uses.on_some_paths(m, cell.site):
            found.append(Left(me, slot[1], obj.sure))
    return tuple(found)


def take(m: Machine, items: tuple[Left, ...], bound: dict[str, Value], site: int) -> None:
    """A call leaves what the method computes; under `no_grad`, without a graph."""
    for item in items if m.state.mode.recording > 0 else ():
        keeper = bound.get(item.keeper, Value())
        if len(keeper.refs) != 1:
            continue
        text = f"{m.state.object(keeper.refs[0]).text}{item.slot}"
        made = Object(
            Kind.TENSOR, min(item.sure, Sure.LIKELY), leaf=Fact.NO, requires_grad=Fact.LIKELY, text=text, site=site
        )
        slots.bind_slot(m, (keeper.refs[0], item.slot), memory.fresh(m, site, made, f"left {item.slot}"), site)
