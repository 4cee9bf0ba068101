"""What a function leaves behind that it has computed: `self.features = self.layer(x)` holds a graph after the call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from torchcopylint.flow.model import LOCAL, TENSORS, Fact, Kind, Object, Sure, Value
from torchcopylint.flow.storages import slots
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import memory

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine


Look = Callable[["Machine", Value, str, int, str, int], Value]
MAX_DEPTH = 2
"""How deep parts of parts are looked at: `self.block.attention.weights`."""


class Left(NamedTuple):
    """Each call leaves a computed tensor with a graph in a field of an argument, or of a part of it.

    `keeper` is the parameter, `slot` the way from there: `.weights`, or `.block.weights`.
    """

    keeper: str
    slot: str
    sure: Sure


def left(m: Machine) -> tuple[Left, ...]:
    """What a function that has been run leaves so, in fields that one other unit of the file sets at most: the method
    that it has called."""
    if m.unit.kind != "function" or m.unit.name == "__init__":
        return ()
    found: list[Left] = []
    for parameter in m.unit.parameters:
        if parameter.kind == "plain":
            found += _left_in(m, parameter.name, m.number("argument", parameter.name), "", MAX_DEPTH)
    return tuple(found)


def _left_in(m: Machine, keeper: str, ref: int, way: str, depth: int) -> Iterator[Left]:
    for slot in m.state.slot_names(ref):
        cell = m.state.cell(slot)
        if cell is None or len(cell.refs) != 1 or not slot[1].startswith("."):
            continue
        obj = m.state.object(cell.refs[0])
        if obj.kind in (Kind.MODULE, Kind.INSTANCE) and cell.site < 0 and depth:
            yield from _left_in(m, keeper, cell.refs[0], way + slot[1], depth - 1)
            continue
        computed = obj.kind in TENSORS and obj.leaf is Fact.NO and obj.requires_grad > 0 and obj.owner in ("", LOCAL)
        if cell.site < 0 or not computed or uses.on_some_paths(m, cell.site):
            continue
        others = m.world.setters(slot[1][1:]) - {m.unit.number}
        if not others or (len(others) == 1 and cell.site in m.left_by):
            yield Left(keeper, way + slot[1], obj.sure)


def take(m: Machine, items: tuple[Left, ...], bound: dict[str, Value], site: int, look: Look) -> None:
    """A call leaves what the function computes; under `no_grad`, without a graph. `look` reads an attribute."""
    for item in items if m.state.mode.recording > 0 else ():
        keeper = bound.get(item.keeper, Value())
        *way, last = item.slot[1:].split(".")
        for name in way:
            if len(keeper.refs) == 1:
                keeper = look(m, keeper, name, site, m.state.object(keeper.refs[0]).text, -1)
        if len(keeper.refs) != 1:
            continue
        text = f"{m.state.object(keeper.refs[0]).text}.{last}"
        made = Object(
            Kind.TENSOR, min(item.sure, Sure.LIKELY), leaf=Fact.NO, requires_grad=Fact.LIKELY, text=text, site=site
        )
        m.left_by.add(site)
        slots.bind_slot(m, (keeper.refs[0], f".{last}"), memory.fresh(m, site, made, f"left {item.slot}"), site)
