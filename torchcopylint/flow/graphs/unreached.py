"""Steps of an optimizer to whose parameters no gradient has come: what its network has computed was cut from its graph.

`fake = G(z).detach()`, `loss = criterion(D(fake))`, `loss.backward()`, `optimizer_g.step()`: backward runs through `D`,
and ends where `fake` was cut, so that the step moves nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import StepUnreached
from torchcopylint.flow.graphs import severed
from torchcopylint.flow.model import TENSORS, How, Kind, Sure
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.tapes.way_back import WayBack
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchcopylint.flow.running.machine import Machine

MAX_EVENTS = 120
"""So many events are gone back over from a loss."""


class _Step(NamedTuple):
    """An optimizer steps over `storages`, behind one backward alone since its gradients were set to zero."""

    event: t.Invoke
    backward: t.Invoke
    storages: frozenset[int]


def found(m: Machine) -> Iterator[StepUnreached]:
    """The steps of a unit that has been run in front of which backward has reached none of what they move."""
    if m.blocks.on_purpose or not any(event.name == "step" for event in m.index.of(t.Invoke)):
        return
    for step in _steps(m, m.unit.tape):
        cut = _only_cut(m, step)
        if cut is not None:
            source, name = naming.spelling(m, cut.base), naming.text_of(m, step.backward.base)
            optimizer = f"{naming.text_of(m, step.event.base)}.step()"
            yield StepUnreached(step.event.site, name, source, cut.site, f"{cut.name}()", optimizer, Sure.LIKELY)


def _steps(m: Machine, tape: t.Tape) -> Iterator[_Step]:
    """The steps on a tape behind a `zero_grad` for the same and one `backward`, all on the way of the step."""
    since: list[t.Event] | None = None
    storages = frozenset[int]()
    for event in tape:
        if isinstance(event, t.Invoke) and event.name == "zero_grad" and (mine := _parameters(m, event.base)):
            since, storages = [], mine
        elif since is None:
            pass
        elif isinstance(event, t.Invoke) and event.name == "step" and not event.arguments:
            mine = _parameters(m, event.base)
            backward = _backward(m, since)
            if mine and mine <= storages and backward is not None and _is_optimizer(m, event.base):
                yield _Step(event, backward, mine)
        else:
            since.append(event)
        for inner in t.inner_tapes(event):
            yield from _steps(m, inner)


def _is_optimizer(m: Machine, register: int) -> bool:
    return all(m.state.object(ref).kind is Kind.OPTIMIZER for ref in m.value(register).refs)


def _parameters(m: Machine, register: int) -> frozenset[int]:
    """The storages of the networks whose parameters an optimizer moves; of a network, its own."""
    refs = m.value(register).refs
    obj = m.state.object(refs[0]) if len(refs) == 1 else None
    if obj is None or obj.kind not in (Kind.OPTIMIZER, Kind.MODULE):
        return frozenset()
    how = How.PARAMETERS if obj.kind is Kind.OPTIMIZER else How.OWN
    whole = [share for share in obj.shares if share.how is how]
    return frozenset(share.storage for share in whole) if all(s.sure and not s.region for s in whole) else frozenset()


def _backward(m: Machine, between: list[t.Event]) -> t.Invoke | None:
    """The one backward among some events, if nothing there may be another one."""
    inside = [
        inner for event in between for inner in (event, *(i for tape in t.inner_tapes(event) for i in t.events(tape)))
    ]
    calls = [event for event in inside if isinstance(event, t.Invoke | t.Call)]
    ran = [event for event in calls if _may_run_backward(m, event)]
    single = ran[0] if len(ran) == 1 else None
    plain = isinstance(single, t.Invoke) and single.name == "backward" and not single.arguments and single in between
    return single if plain and isinstance(single, t.Invoke) else None


def _may_run_backward(m: Machine, event: t.Invoke | t.Call) -> bool:
    if "backward" in (event.name if isinstance(event, t.Invoke) else m.dotted_of(event)):
        return True
    number = severed.called_unit(m, event)
    if number is None:
        return m.dotted_of(event).startswith("torch.autograd.")
    if not m.world.is_own(number):
        # What another file does with what it is given is for its summary to say, and it speaks of losses alone.
        return False
    return any("backward" in inner.name for inner in m.world.index(m.world.unit(number)).of(t.Invoke))


def _only_cut(m: Machine, step: _Step) -> t.Invoke | None:
    """The `detach()` by which alone a loss leads back to what some networks have computed; `None` if it leads there in
    another way as well, or nobody knows."""
    cuts = []
    way = WayBack(m, step.backward.base, MAX_EVENTS)
    for event in way:
        if isinstance(event, t.Invoke) and event.name == "detach" and not event.arguments:
            if _is_computed_by(m, event.base, step.storages):
                cuts.append(event)
            continue
        called = event.function if isinstance(event, t.Call) else t.NO_REGISTER
        if _is_computed_by(m, _out(event), step.storages):
            return None
        if any(_is_one_of(m, register, step.storages) for register in (_out(event), called)):
            return None
        before = _before(m, event)
        if before is None:
            return None
        way.go_on(before)
    return cuts[0] if len(cuts) == 1 and not way.cut_short else None


def _out(event: t.Event) -> int:
    return getattr(event, "out", t.NO_REGISTER)


def _is_computed_by(m: Machine, register: int, storages: frozenset[int]) -> bool:
    """Whether the graph of a network with some of these storages is behind a value."""
    graph = frozenset[int]().union(*(m.state.object(ref).graph for ref in _refs(m, register)))
    networks = (ref for number in graph & m.needed.by_modules.keys() for ref in m.needed.by_modules[number].refs)
    return any(share.storage in storages for ref in networks for share in m.state.object(ref).shares)


def _is_one_of(m: Machine, register: int, storages: frozenset[int]) -> bool:
    """Whether a register holds one of the networks itself, or a part of one: whoever is given it may call it."""
    held = [m.state.object(ref) for ref in _refs(m, register)]
    return any(share.storage in storages for obj in held for share in obj.shares)


def _refs(m: Machine, register: int) -> tuple[int, ...]:
    return m.value(register).refs if register >= 0 else ()


def _before(m: Machine, event: t.Event) -> list[int] | None:
    """What something was computed from; `None` if it comes from where nobody here can look."""
    match event:
        case t.Load():
            bound = uses.bindings_before(m, event)
            handed = not bound and any(one.name == event.name for one in m.unit.parameters)
            return None if handed and _may_have_graph(m, event.out) else bound
        case t.Attribute():
            stored = [one.value for one in m.index.stores.get(event.name, ()) if _is_of_same(m, one, event)]
            unknown = not stored and _is_own(m, event.base) and _may_have_graph(m, event.out)
            return None if unknown else [*stored, event.base]
        case t.Iterate():
            made = m.unit.definitions[event.iterable] if event.iterable >= 0 else None
            return [] if isinstance(made, t.Load | t.Attribute) and not _bound(m, made) else [event.iterable]
        case t.Call():
            # A function is no value with a graph; a network that is called was looked at by its result.
            return [argument.register for argument in event.arguments]
    return list(t.operands(event))


def _bound(m: Machine, event: t.Load | t.Attribute) -> bool:
    return isinstance(event, t.Load) and bool(uses.bindings_before(m, event))


def _is_own(m: Machine, register: int) -> bool:
    made = m.unit.definitions[register] if register >= 0 else None
    return isinstance(made, t.Load) and m.unit.owner >= 0 and made.name == m.unit.first


def _is_of_same(m: Machine, store: t.StoreAttribute, event: t.Attribute) -> bool:
    return naming.text_of(m, store.base) == naming.text_of(m, event.base)


def _may_have_graph(m: Machine, register: int) -> bool:
    """Whether what comes from elsewhere is a tensor, or may be one: no network, function, number or setting."""
    held = [m.state.object(ref) for ref in _refs(m, register)]
    return any(obj.kind in (*TENSORS, Kind.UNKNOWN) for obj in held)
