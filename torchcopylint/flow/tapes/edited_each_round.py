"""Data that a loop goes through in each round, and edits before a network is given them.

for epoch in range(5):
    for x, y in batches:
        x += 0.1 * torch.randn_like(x)
        loss = criterion(net(x), y)
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import SampleEdited
from torchcopylint.flow.model import ARITHMETIC, BUFFERS, Fact, Kind, Sure
from torchcopylint.flow.tapes import rescaling, uses
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from torchcopylint.flow.facts import Write
    from torchcopylint.flow.running.machine import Machine

_DRAWING = frozenset({"randn_like", "rand_like", "randn", "rand", "normal", "uniform", "standard_normal"})
"""Functions that draw noise: what that is scaled by may come from anywhere."""
_KEPT = frozenset({Kind.LIST, Kind.TUPLE, *BUFFERS})
"""What hands out the same elements each time that a loop goes through it; a `DataLoader` makes others."""
_COUNTING = frozenset({"enumerate", "tqdm"})


def found(m: Machine) -> Iterator[SampleEdited]:
    """The edits of a unit that has been run: the first one of each loop's variable."""
    told: set[tuple[int, str]] = set()
    edits: list[t.Augment | t.Invoke] = [*m.index.of(t.Augment), *m.index.of(t.Invoke)]
    for event in sorted(edits, key=lambda one: one.site):
        write = m.writes.get(event.site)
        loops = uses.loops_around(m, event.site)
        if write is None or len(loops) < 2 or not _makes_it_another(m, event):
            continue
        load = m.unit.definitions[event.target if isinstance(event, t.Augment) else event.base]
        head = _loop_of(m, load) if isinstance(load, t.Load) else None
        if not isinstance(load, t.Load) or head is None or (head.site, load.name) in told:
            continue
        if _is_data(m, load.out) and _is_kept(m, head) and _is_given_to_network(m, load.name, write, head):
            told.add((head.site, load.name))
            source = naming.text_of(m, _through(m, head.iterable))
            yield SampleEdited(event.site, load.name, write.op, head.site, source, Sure.LIKELY)


def _makes_it_another(m: Machine, event: t.Augment | t.Invoke) -> bool:
    """Whether a write done twice gives something else again, and puts in nothing but noise, numbers, and what it
    computes from the thing itself."""
    if isinstance(event, t.Augment):
        edits, register, operands = event.symbol in rescaling.SYMBOLS, event.target, [event.value]
    else:
        edits, register = event.name in ARITHMETIC, event.base
        operands = [argument.register for argument in event.arguments]
    target = m.unit.definitions[register] if register >= 0 else None
    return (
        edits
        and isinstance(target, t.Load)
        and all(_is_noise(m, one, target.name) or _is_of_itself(m, one, target.name) for one in operands)
    )


def _is_of_itself(m: Machine, register: int, name: str) -> bool:
    """Whether a value is computed from what a name holds and from numbers: not by a network, nor from a gradient."""
    parts = uses.expression(m, register, name)
    moves = any(isinstance(part, t.Call | t.Invoke) and uses.calls_network(m, part) for part in parts)
    moves = moves or any(isinstance(part, t.Attribute | t.Invoke) and part.name == "grad" for part in parts)
    return not moves and not rescaling.from_elsewhere(m, register, name)


def _is_noise(m: Machine, register: int, name: str) -> bool:
    calls = [part for part in uses.expression(m, register, name) if isinstance(part, t.Call | t.Invoke)]
    names = {part.name if isinstance(part, t.Invoke) else naming.text_of(m, part.function) for part in calls}
    return not _DRAWING.isdisjoint(called.rpartition(".")[2] for called in names)


def _loop_of(m: Machine, load: t.Load) -> t.Iterate | None:
    """The head of the loop whose variable a name is, or a part of that: it has been bound to nothing else since."""
    bound = uses.bindings_before(m, load)
    made = m.unit.definitions[bound[0]] if len(bound) == 1 and bound[0] >= 0 else None
    while isinstance(made, t.Unpack) and made.value >= 0:
        made = m.unit.definitions[made.value]
    return made if isinstance(made, t.Iterate) else None


def _through(m: Machine, register: int) -> int:
    """What a loop goes through, without what counts its elements."""
    made = m.unit.definitions[register] if register >= 0 else None
    if isinstance(made, t.Call) and naming.text_of(m, made.function) in _COUNTING and made.arguments:
        return made.arguments[0].register
    return register


def _is_kept(m: Machine, head: t.Iterate) -> bool:
    """Whether a loop goes through a name or a field that holds the same things when a loop around it comes round."""
    register = _through(m, head.iterable)
    made = m.unit.definitions[register] if register >= 0 else None
    value = m.value(register) if register >= 0 else None
    around = uses.loops_around(m, head.site)[:-1]
    if value is None or not value.refs or not around:
        return False
    kept = all(m.state.object(ref).kind in _KEPT and m.state.object(ref).sure is Sure.PROVEN for ref in value.refs)
    if isinstance(made, t.Attribute):
        anew = [store.site for store in m.index.stores.get(made.name, ())]
    elif isinstance(made, t.Load):
        anew = [bind.site for bind in m.index.binds.get(made.name, ())]
    else:
        return False
    return kept and not any(uses.loops_around(m, site)[: len(around)] == around for site in anew)


def _is_data(m: Machine, register: int) -> bool:
    """Whether something is a tensor or an array that nobody trains."""
    objects = [m.state.object(ref) for ref in m.value(register).refs]
    kinds = {obj.kind for obj in objects}
    return (
        bool(objects) and kinds <= BUFFERS - {Kind.PARAMETER} and all(o.requires_grad is not Fact.YES for o in objects)
    )


def _is_given_to_network(m: Machine, name: str, write: Write, head: t.Iterate) -> bool:
    """Whether a network is called with what has been edited, in the same turn."""
    loops = uses.loops_around(m, head.site)
    calls: list[t.Call | t.Invoke] = [*m.index.of(t.Call), *m.index.of(t.Invoke)]
    for call in calls:
        if call.site > write.site and uses.loops_around(m, call.site)[: len(loops)] == loops:
            given = [m.unit.definitions[one.register] for one in call.arguments if one.register >= 0]
            if any(isinstance(one, t.Load) and one.name == name for one in given) and uses.calls_network(m, call):
                return True
    return False
