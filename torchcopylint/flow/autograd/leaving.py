"""What a function leaves behind that it has computed: `self.features = self.layer(x)` holds a graph after the call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from torchcopylint.base.finding import Role
from torchcopylint.flow import tape as t
from torchcopylint.flow.autograd import hanging
from torchcopylint.flow.facts import Inside
from torchcopylint.flow.graphs import runs
from torchcopylint.flow.model import LOCAL, RETAINS, TENSORS, UNKNOWN, Fact, Kind, Object, Sure, Value
from torchcopylint.flow.storages import slots
from torchcopylint.flow.tapes import after_turns, uses
from torchcopylint.flow.values import inside, memory, naming

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
    within: bool = False
    """Whether what the method returns is computed from that: `self.recon = mse(x, y); return self.recon + self.kl`."""
    hangs: tuple[str, ...] = ()
    """The parameters on which alone it depends whether there is a graph: one that requires grad suffices."""
    method: str = ""
    """The method that sets the field."""
    retains: bool = False
    """Whether its gradient is kept: `self.out.retain_grad()`."""
    cut: bool = False
    """Whether it has no graph: a method that begins anew, `self.state = torch.zeros(4)`, where others compute it."""
    at: Inside | None = None
    """Where it is put there, for the file that the function is in."""


def left(m: Machine, *, told: bool) -> tuple[Left, ...]:
    """What a function that has been run leaves so, in fields that one other unit of the file sets at most: the method
    that it has called. `told` is whether sites mean anything to who asks."""
    if m.unit.kind != "function" or m.unit.name == "__init__":
        return ()
    found: list[Left] = []
    for parameter in m.unit.parameters:
        if parameter.kind == "plain":
            found += _left_in(m, parameter.name, m.number("argument", parameter.name), "", MAX_DEPTH)
    return tuple(found if told else (one._replace(at=None) for one in found))


def _left_in(m: Machine, keeper: str, ref: int, way: str, depth: int) -> Iterator[Left]:
    for slot in m.state.slot_names(ref):
        cell = m.state.cell(slot)
        refs = after_turns.of_turns(m, cell) if cell is not None else ()
        if cell is None or len({held | 1 for held in refs}) != 1 or not slot[1].startswith("."):
            continue
        obj = m.state.object(refs[0])
        if obj.kind in (Kind.MODULE, Kind.INSTANCE) and cell.site < 0 and depth:
            yield from _left_in(m, keeper, refs[0], way + slot[1], depth - 1)
            continue
        if cell.site < 0 or obj.kind not in TENSORS or obj.owner not in ("", LOCAL):
            continue
        field = slot[1][1:]
        own = m.unit.owner >= 0 and keeper == m.unit.first and not way
        others = _other_setters(m, m.state.object(ref), field) - {m.unit.name if own else m.unit.qualname}
        if uses.on_some_paths(m, cell.site):
            continue
        if others and own and obj.requires_grad is Fact.NO:
            yield Left(keeper, slot[1], obj.sure, method=m.unit.name, cut=True)
            continue
        by_call = len(others) == 1 and cell.site in m.called.left_by
        if others and not by_call and not _all_tell(m, m.state.object(ref), field):
            continue
        stores = [event for event in m.index.stores.get(field, ()) if event.site == cell.site] if own else []
        hangs: tuple[str, ...] = ()
        if obj.leaf is obj.requires_grad is Fact.UNKNOWN and len(stores) == 1:
            hangs = tuple(sorted(hanging.sources(m, stores[0].value, frozenset())))
        if hangs or (obj.leaf is Fact.NO and obj.requires_grad > 0):
            within = own and _is_within_result(m, field, stores)
            method = min(others, default=m.unit.name)
            at = inside.innermost(m, cell.site, Role.KEPT, given=False)
            yield Left(keeper, way + slot[1], obj.sure, within, hangs, method, RETAINS in obj.flags, at=at)


def _other_setters(m: Machine, keeper: Object, field: str) -> set[str]:
    """The names of the methods of an object's class, and those of all functions, that may set a field of it.

    A field of the same name of another class is another one.
    """
    owner = m.world.local_class(keeper.type)
    found = set()
    for number in m.world.setters(field):
        unit = m.world.unit(number)
        stores = [store for store in m.world.index(unit).stores.get(field, ()) if not store.augmented]
        bases = [unit.definitions[store.base] if store.base >= 0 else None for store in stores]
        own = unit.owner >= 0 and all(isinstance(base, t.Load) and base.name == unit.first for base in bases)
        if owner is None or not own:
            found.add(unit.qualname)
        elif unit.owner in m.world.lineage(owner):
            found.add(unit.name)
    return found


def _all_tell(m: Machine, keeper: Object, field: str) -> bool:
    """Whether all who set a field of an object, but for the unit itself, are methods of its class that say what they
    leave there, whichever way they go: who calls one knows what the field holds from then on."""
    owner = m.world.local_class(keeper.type)
    for number in m.world.setters(field) - {m.unit.number}:
        unit = m.world.unit(number)
        mine = owner is not None and unit.owner in m.world.lineage(owner)
        summary = m.world.summary(number) if mine else None
        if summary is None or not any(
            one.slot == f".{field}" and one.keeper == unit.first and not one.hangs for one in summary.left
        ):
            return False
    return True


def _is_within_result(m: Machine, field: str, stores: list[t.StoreAttribute]) -> bool:
    """Whether each thing that a unit returns is a tensor that is computed from what a field is set to."""
    made = [m.state.object(ref) for value in m.results.returned for ref in value.refs]
    if not made or any(obj.kind not in TENSORS or obj.requires_grad is Fact.NO for obj in made):
        return False
    stored = m.unit.definitions[stores[0].value] if stores and stores[0].value >= 0 else None
    text = hanging.field_of(m, field)
    for event in m.index.of(t.Return):
        parts = uses.expression(m, event.value, "")
        again = any(isinstance(part, t.Attribute) and naming.text_of(m, part.out) == text for part in parts)
        if not again and not any(part is stored for part in parts):
            return False
    return True


def take(m: Machine, items: tuple[Left, ...], bound: dict[str, Value], site: int, look: Look) -> None:
    """A call leaves what the function computes; under `no_grad`, without a graph. `look` reads an attribute."""
    for item in items:
        cut = item.cut or m.state.mode.recording is Fact.NO
        if m.state.mode.recording <= 0 and not cut:
            continue
        keeper = bound.get(item.keeper, Value())
        *way, last = item.slot[1:].split(".")
        for name in way:
            if len(keeper.refs) == 1:
                keeper = look(m, keeper, name, site, m.state.object(keeper.refs[0]).text, -1)
        trained = Fact.NO if cut else _require_grad(m, item.hangs, bound) if item.hangs else Fact.LIKELY
        if len(keeper.refs) != 1 or (trained is Fact.NO and not cut):
            continue
        held = m.state.object(keeper.refs[0])
        if _other_setters(m, held, last) - {item.method} and not _all_tell(m, held, last):
            # A class below that of the method may set it anew elsewhere.
            continue
        made = Object(
            Kind.TENSOR,
            min(item.sure, Sure.LIKELY),
            leaf=Fact.NO if trained > 0 else Fact.YES if cut else Fact.UNKNOWN,
            requires_grad=trained,
            text=f"{m.state.object(keeper.refs[0]).text}.{last}",
            site=site,
            flags=frozenset({RETAINS}) if item.retains else frozenset(),
        )
        m.called.left_by.add(site)
        inside.note(m, site, Role.KEPT, item.at)
        slots.bind_slot(m, (keeper.refs[0], f".{last}"), memory.fresh(m, site, made, f"left {item.slot}"), site)


def _require_grad(m: Machine, names: tuple[str, ...], bound: dict[str, Value]) -> Fact:
    """Whether one of some arguments requires grad: not if they all are tensors that do not."""
    given = [[m.state.object(ref) for ref in bound.get(name, UNKNOWN).refs] for name in names]
    if any(one and all(obj.kind in TENSORS and obj.requires_grad > 0 for obj in one) for one in given):
        return Fact.LIKELY
    none = all(one and all(obj.requires_grad is Fact.NO for obj in one) for one in given)
    return Fact.NO if none else Fact.UNKNOWN


def tie(m: Machine, items: tuple[Left, ...], bound: dict[str, Value], result: Value, site: int) -> None:
    """What a call has left and what it returns have a graph in common: backward over the one runs over the other's."""
    for item in items if m.state.mode.recording > 0 else ():
        keeper = bound.get(item.keeper, Value())
        left = m.state.refs_of((keeper.refs[0], item.slot)) if item.within and len(keeper.refs) == 1 else ()
        trained = [m.state.object(ref).requires_grad for ref in left]
        for ref in {*left, *result.refs} if left and Fact.NO not in trained else ():
            obj = m.state.object(ref)
            if obj.kind in TENSORS and obj.requires_grad is not Fact.NO:
                graph = obj.graph | {runs.unknown_graph(site)}
                if min(trained) > 0:
                    obj = obj._replace(leaf=Fact.NO, requires_grad=max(obj.requires_grad, Fact.LIKELY))
                m.state.set_object(ref, obj._replace(graph=graph))
