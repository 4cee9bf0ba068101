"""What a method computes of what its last call has left in a field: `out, self.hidden = self.rnn(x, self.hidden)`.

Then each call hangs on the graph of the one before. If backward runs in between, it has freed that by then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from torchcopylint.base.finding import Role
from torchcopylint.flow import tape as t
from torchcopylint.flow.autograd import hanging
from torchcopylint.flow.autograd.leaving import Look
from torchcopylint.flow.facts import BackwardAgain, Inside
from torchcopylint.flow.graphs import runs
from torchcopylint.flow.model import CONTAINERS, TENSORS, Fact, Kind, Object, Sure, Value
from torchcopylint.flow.storages import keeping, slots
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.tapes.left import GOING_THROUGH_PARTS, Left, speaks_of, touched
from torchcopylint.flow.values import inside, memory, naming

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchcopylint.flow.running.machine import Machine


class Carried(NamedTuple):
    """Each call leaves in `slot` of the object something computed from what the last call has left there, at `site`.

    That may be a field of what the object holds: `.memory.state`. `at` is where it is put there, in what is called at
    `site` or there itself, for the file that the method is in.
    """

    slot: str
    site: int
    at: Inside | None = None


def carried(m: Machine) -> tuple[Carried, ...]:
    """The fields that a method, run already, carries on from call to call, whichever way it goes."""
    if m.unit.owner < 0 or m.unit.kind != "function" or not m.unit.parameters or m.unit.name == "__init__":
        return ()
    me = m.unit.first
    stores: dict[str, list[t.StoreAttribute]] = {}
    for event in m.index.of(t.StoreAttribute):
        if _is_own(m, event.base):
            stores.setdefault(event.name, []).append(event)
    cut = _cut(m) if stores else frozenset()
    found = []
    for name, events in stores.items():
        if name in cut or any(event.site in m.fields.kept for event in events):
            # Of a running average it is said where it is kept.
            continue
        if not all(_goes_on(m, event) or _only_begins(m, event) for event in events):
            continue
        last = [event for event in events if _goes_on(m, event) and not uses.on_some_paths(m, event.site)]
        if last and _holds_graph(m, (m.number("argument", me), f".{name}")):
            site = last[-1].site
            found.append(Carried(f".{name}", site, inside.innermost(m, site, Role.KEPT, given=False)))
    known = set(stores) | cut
    return (*found, *(one for one in _by_own(m) if one.slot[1:] not in known))


def _by_own(m: Machine) -> Iterator[Carried]:
    """What a method that is called here carries on, of the object or of what it holds, whichever way this one goes."""
    for event in m.index.of(t.Invoke) if not m.blocks.has_no_grad else ():
        call = hanging.called(m, event.out) if not uses.on_some_paths(m, event.site) else None
        if call is None or call.method == m.unit.number:
            continue
        summary = m.world.summary(call.method)
        for one in summary.carries if summary is not None else ():
            slot = f".{call.part}{one.slot}" if call.part else one.slot
            if not _is_let_go(m, call, frozenset(slot[1:].split("."))):
                yield Carried(slot, event.site, inside.innermost(m, event.site, Role.KEPT, given=False))


def _is_let_go(m: Machine, call: hanging.Called, fields: frozenset[str]) -> bool:
    """Whether a method that has something carried on may let go of it by itself: it sets one of the fields that lead
    there, calls something else that does, or hands it out."""
    if any(event.name in fields for event in m.index.of(t.StoreAttribute)):
        return True
    if any(event.name in GOING_THROUGH_PARTS for event in m.index.of(t.Invoke)):
        return True
    for event in m.index.of(t.Attribute):
        if event.name not in fields or naming.text_of(m, event.base) != m.unit.first:
            continue
        used = m.consumer_of(event.out)
        other = hanging.called(m, used.out) if isinstance(used, t.Invoke) and used.base == event.out else None
        if other is None or (other.method != call.method and _may_let_go(m, other.method, fields)):
            return True
    others = [number for name in uses.own_calls(m) if (number := m.world.method(m.unit.owner, name)) is not None]
    return any(number != call.method and _may_let_go(m, number, fields, speaks=True) for number in others)


def _may_let_go(m: Machine, number: int, fields: frozenset[str], *, speaks: bool = False) -> bool:
    """Whether a method sets or cuts one of some fields, or nobody knows; or, of one that need not do so itself, speaks
    of one."""
    if not m.world.is_own(number):
        return True
    unit = m.world.unit(number)
    return (speaks and speaks_of(unit, fields)) or not fields.isdisjoint(touched(unit))


def _is_own(m: Machine, register: int) -> bool:
    made = m.unit.definitions[register] if register >= 0 else None
    return isinstance(made, t.Load) and made.name == m.unit.first


def _goes_on(m: Machine, event: t.StoreAttribute) -> bool:
    """Whether a field is set to what is computed from what it held, by what keeps the graph."""
    return hanging.field_of(m, event.name) in hanging.sources(m, event.value, frozenset({event.name}))


def _only_begins(m: Machine, event: t.StoreAttribute) -> bool:
    """Whether a field is set anew where it has to be: `if self.h is None: self.h = zeros`."""
    expression = uses.expression(m, event.value, "")
    if any(isinstance(part, t.Attribute) and part.name == event.name for part in expression):
        # Made of what the field held, and cut from it.
        return False
    for branch in m.index.of(t.Branch) if uses.on_some_paths(m, event.site) else ():
        for arm in branch.arms:
            if any(inner.site == event.site for inner in t.events(arm)):
                asked = [inner for inner in arm if isinstance(inner, t.Assume)]
                parts = [part for one in asked for part in uses.expression(m, one.register, "")]
                if any(isinstance(part, t.Attribute) and part.name == event.name for part in parts):
                    return True
    return False


def _cut(m: Machine) -> frozenset[str]:
    """The fields that a method cuts, or has cut by another method of the same object."""
    found: set[str] = set()
    for event in m.index.of(t.Invoke):
        base = m.unit.definitions[event.base] if event.base >= 0 else None
        if isinstance(base, t.Attribute) and event.name == "detach_":
            found.add(base.name)
    for number in (m.world.method(m.unit.owner, name) for name in uses.own_calls(m)):
        if number is not None and m.world.is_own(number):
            found |= touched(m.world.unit(number))
    return frozenset(found)


def _holds_graph(m: Machine, slot: tuple[int, str]) -> bool:
    """Whether what a field holds at the end is computed, and needs a gradient."""
    held = [m.state.object(ref) for ref in _tensors(m, m.state.refs_of(slot))]
    computed = all((obj.kind in TENSORS and obj.leaf is Fact.NO) or _is_state(m, obj) for obj in held)
    return bool(held) and computed and all(obj.requires_grad > 0 for obj in held)


def _is_state(m: Machine, obj: Object) -> bool:
    """Whether something is what a network of which nothing is known has returned for its next state."""
    return obj.kind is Kind.UNKNOWN and not m.needed.going_round.isdisjoint(obj.graph)


def _tensors(m: Machine, refs: tuple[int, ...]) -> Iterator[int]:
    for ref in refs:
        if m.state.object(ref).kind in CONTAINERS:
            for name in m.state.slot_names(ref):
                yield from m.state.refs_of(name)
        else:
            yield ref


def found(m: Machine) -> Iterator[BackwardAgain]:
    """The fields that a method carries on after it has run backward over them itself: its next call runs over that."""
    for item in carried(m) if m.runs.sites else ():
        field = item.slot[1:]
        held = [m.state.object(ref) for ref in _tensors(m, _refs_at(m, field))]
        freed = [where for obj in held for where in (*runs.freed_at(obj.graph), *_freed_beside(m, obj))]
        if freed and not _let_go_between(m, field):
            sure = min(Sure.LIKELY if _is_state(m, obj) else obj.sure for obj in held)
            register = _run_over(m, freed[0])
            name = hanging.field_of(m, field)
            if register >= 0 and name in hanging.sources(m, register, frozenset({field})):
                yield BackwardAgain(freed[0], naming.text_of(m, register), freed[0], sure, name, item.site)


def _freed_beside(m: Machine, obj: Object) -> list[int]:
    """Where backward has run over what a network of which nothing is known has returned beside its next state: it takes
    the way of the state for sure once that has gone round."""
    if not _is_state(m, obj):
        return []
    numbers = m.needed.going_round & obj.graph
    return sorted(site for site, met in m.runs.came_to.items() if met & numbers and site not in m.runs.kept)


def of_entries(m: Machine) -> Iterator[BackwardAgain]:
    """The same, of the entries of a dictionary in a field: `self.states[user] = h`, which is computed from what stood
    there, and backward has run over it."""
    for event in m.index.of(t.StoreItem) if m.runs.sites and m.unit.owner >= 0 else ():
        held = m.unit.definitions[event.base]
        if not isinstance(held, t.Attribute) or not _is_own(m, held.base) or event.site in m.index.on_arms:
            continue
        if any(m.state.object(ref).kind in (*TENSORS, Kind.MODULE) for ref in m.value(event.base).refs):
            # What is written into a tensor is another matter.
            continue
        fields, name = frozenset({held.name}), hanging.field_of(m, held.name)
        stored = [m.state.object(ref) for ref in _tensors(m, m.value(event.value).refs)]
        freed = [where for obj in stored for where in runs.freed_at(obj.graph)]
        register = _run_over(m, freed[0]) if freed else -1
        if register < 0 or uses.loops_around(m, event.site) or _let_go_between(m, held.name):
            continue
        if all(name in hanging.sources(m, one, fields) for one in (event.value, register)):
            sure = min(min(obj.sure for obj in stored), Sure.LIKELY)
            place = f"{name}[{naming.index_text(m, event.subscript)}]"
            yield BackwardAgain(freed[0], naming.text_of(m, register), freed[0], sure, place, event.site)


def _refs_at(m: Machine, field: str) -> tuple[int, ...]:
    """What a field of the object holds, or one of what it holds in fields."""
    refs: tuple[int, ...] = (m.number("argument", m.unit.first),)
    for name in field.split("."):
        refs = m.state.refs_of((refs[0], f".{name}")) if len(refs) == 1 else ()
    return refs


def _run_over(m: Machine, site: int) -> int:
    """The register of what backward runs over at a site."""
    register = m.index.calls.get(site, -1)
    event = m.unit.definitions[register] if register >= 0 else None
    return event.base if isinstance(event, t.Invoke) else m.results.registers.get(site, -1)


def _let_go_between(m: Machine, field: str) -> bool:
    """Whether somebody may set the field anew, or cut it, from call to call.

    Not if a loop calls the method and nobody who does. A state that begins anew at times, in a method for that, goes
    on from call to call in between, or it would not be kept.
    """
    units = m.world.program.units
    fields = set(field.split("."))
    others = [unit for unit in units if unit is not m.unit and unit.name != "__init__" and fields & touched(unit)]
    others = [unit for unit in others if not all(_is_strangers(m, unit, one) for one in fields & touched(unit))]
    if len(fields) > 1:
        others = [unit for unit in others if not _carries(m, unit, field.rpartition(".")[2])]
    if not others:
        return False
    names = {unit.name for unit in others}
    called = False
    for unit in units:
        for loop in m.world.index(unit).of(t.Loop):
            inside = [event for event in t.events(loop.body) if isinstance(event, t.Invoke)]
            if any(event.name == m.unit.name for event in inside) and not _has_inner(loop, m.unit.name):
                called = True
                sets = any(isinstance(e, t.StoreAttribute) and e.name in fields for e in t.events(loop.body))
                if sets or any(event.name in names for event in inside):
                    return True
    return not called and not all(_only_resets(m, unit, one) for unit in others for one in fields & touched(unit))


def _carries(m: Machine, unit: t.Unit, field: str) -> bool:
    summary = m.world.summary(unit.number)
    return summary is not None and any(one.slot == f".{field}" for one in summary.carries)


def _only_resets(m: Machine, unit: t.Unit, field: str) -> bool:
    """Whether a method sets a field to what has nothing to do with what it held, and does nothing else to it."""
    loads = [event for event in unit.definitions if isinstance(event, t.Attribute) and event.name == field]
    return not loads and any(event.name == field for event in m.world.index(unit).of(t.StoreAttribute))


def _is_strangers(m: Machine, unit: t.Unit, field: str) -> bool:
    """Whether a method touches a field of that name of its own object only, which has nothing to do with this class."""
    index = m.world.index(unit)
    bases = [event.base for event in index.of(t.Attribute) if event.name == field]
    bases += [event.base for event in index.of(t.StoreAttribute) if event.name == field]
    return bool(bases) and all(keeping.is_strangers(m, unit, base) for base in bases)


def _has_inner(loop: t.Loop, name: str) -> bool:
    """Whether a loop in a loop calls a method of that name."""
    inner = [event for event in t.events(loop.body) if isinstance(event, t.Loop)]
    return any(isinstance(event, t.Invoke) and event.name == name for one in inner for event in t.events(one.body))


def take(
    m: Machine, items: tuple[Carried, ...], unit: t.Unit, keeper: Value, result: Value, site: int, look: Look
) -> None:
    """A call leaves what hangs on the graph that its result hangs on. `look` reads an attribute."""
    if len(keeper.refs) != 1 or m.state.mode.recording is Fact.NO:
        return
    saved = site * 8 + 7
    m.needed.by_modules[saved] = keeper
    graph = frozenset({saved})
    for ref in _tensors(m, result.refs):
        obj = m.state.object(ref)
        if hanging.may_hang(obj) and obj.requires_grad is not Fact.NO and obj.leaf <= 0:
            graph |= obj.graph
            m.state.set_object(ref, obj._replace(graph=obj.graph | {saved}))
    for item in items:
        *way, last = item.slot[1:].split(".")
        holder = keeper
        for name in way:
            if len(holder.refs) == 1:
                holder = look(m, holder, name, site, m.state.object(holder.refs[0]).text, -1)
        if len(holder.refs) != 1:
            continue
        text = f"{m.state.object(keeper.refs[0]).text}{item.slot}"
        made = Object(
            Kind.TENSOR, Sure.LIKELY, leaf=Fact.NO, requires_grad=Fact.LIKELY, text=text, site=site, graph=graph
        )
        slots.bind_slot(m, (holder.refs[0], f".{last}"), memory.fresh(m, site, made, f"carried {item.slot}"), site)
        owner = naming.key_text(m, keeper.root) if keeper.root is not None else ""
        # The method may be one of another file, which counts its classes by itself.
        number = m.world.local_class(m.state.object(keeper.refs[0]).type)
        if owner and number is not None:
            inside.note(m, site, Role.KEPT, item.at)
            m.called.left_at[site] = Left(owner, item.slot[1:], number, unit.name)
