"""Whether a value may hang on a graph that was there before a loop's turn began."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import CONTAINERS, TENSORS, Fact, Kind, Object, Value
from torchcopylint.flow.references import FunctionReference
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import kinds, naming
from torchcopylint.knowledge import table

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine


_CUTTING = frozenset({"detach", "data", "item", "numpy", "tolist", "detach_"})
MAX_STEPS = 12
"""So many events are gone back over from a value to where it was made."""


def may_come_from_before(m: Machine, loop: t.Loop, event: t.Event) -> bool:
    """Whether something that an event of a loop works on may carry a graph that was made before the loop.

    It does not if all that comes from there is known: modules and parameters, data, arguments of the function. What
    an unknown call returned there may be what a network computed.
    """
    inside = {each.site for part in (loop.test, loop.body) for each in t.events(part)}
    bound = _bindings(m.unit.tape)
    if isinstance(event, t.Invoke) and _is_handed_over(m, event.base, bound, inside):
        return True
    pending = list(t.operands(event))
    seen: set[int] = set()
    while pending:
        register = pending.pop()
        made = m.unit.definitions[register] if register >= 0 else None
        if made is None or register in seen:
            continue
        seen.add(register)
        if isinstance(made, t.Load):
            places = bound.get(made.name, ())
            within = [value for value, site in places if site in inside]
            arms = m.index.on_arms
            if len(within) == 1 and made.site not in arms and any(site in inside & arms for _, site in places):
                # Bound anew on some turns only: on the others, it is what an earlier one has made.
                return True
            going_on = [value for value in within if _goes_on(m, value, made.name)]
            goes_on = bool(going_on)
            anew = len(going_on) < len(within)
            if not anew and any(_carries_on(m, value, made.name, inside) for value in going_on):
                # It hangs on what earlier turns have made of it.
                return True
            # What is made of itself on each turn is made of what was there before the loop on the first.
            pending += [value for value, _ in places] if goes_on or not within else within
        elif isinstance(made, t.Invoke) and made.name == "detach":
            continue
        elif made.site in inside:
            pending += t.operands(made)[1:] if isinstance(made, t.Call) else t.operands(made)
            if isinstance(made, t.Call):
                pending += _closed_over(m, made.function, bound)
        elif isinstance(made, t.Make) or (isinstance(made, t.Call | t.Invoke) and not _is_known(m, made)):
            if _may_carry(m, m.value(register)):
                return True
        else:
            pending += t.operands(made)[1:] if isinstance(made, t.Call) else t.operands(made)
    return False


def comes_from_arguments(m: Machine, event: t.Event) -> bool:
    """Whether what backward runs over is what a criterion says of arguments of the function, or of parts of them: then
    it is these that have a graph, which was there before any loop.

    What a network computes of an argument has the network's graph; the argument is data then. One that is counted with
    (`x @ w`) may be a leaf.
    """
    names = {parameter.name for parameter in m.unit.parameters[1 if m.unit.owner >= 0 else 0 :]}
    bound = _bindings(m.unit.tape)
    pending = [(register, False) for register in t.operands(event)]
    seen, found = set[int](), False
    while pending:
        register, judged = pending.pop()
        made = m.unit.definitions[register] if register >= 0 else None
        if made is None or register in seen:
            continue
        seen.add(register)
        if isinstance(made, t.Load):
            found = found or (judged and made.name in names)
            pending += [(value, judged) for value, _ in bound.get(made.name, ())]
        elif isinstance(made, t.Call | t.Invoke):
            judges = _is_criterion(m, made)
            if not judges and not _is_known(m, made):
                return False
            method = isinstance(made, t.Invoke) and not judges
            pending += [(one, judged or judges) for one in (t.operands(made)[:1] if method else t.operands(made)[1:])]
        elif isinstance(made, t.Operate) and judged:
            return False
        elif isinstance(made, t.Item):
            pending.append((made.base, judged))
        elif not isinstance(made, t.Attribute | t.Iterate):
            pending += [(one, judged) for one in t.operands(made)]
    return found


def _is_criterion(m: Machine, call: t.Call | t.Invoke) -> bool:
    """Whether a call is one of something called a criterion, and of nothing that the file says itself."""
    if isinstance(m.value(call.function).const if isinstance(call, t.Call) else None, FunctionReference):
        return False
    if isinstance(call, t.Invoke) and m.world.is_method(call.name):
        return False
    name = naming.text_of(m, call.function) if isinstance(call, t.Call) else call.name
    return kinds.named_criterion(name) or name.endswith(("_loss", "cross_entropy"))


def _closed_over(m: Machine, register: int, bound: dict[str, list[tuple[int, int]]]) -> list[int]:
    """What the functions that a call may run, made in this unit, look at of the unit's own names: `lambda: f(output)`.

    They may be kept in a container that they are taken from: `losses[name]()`.
    """
    found: list[int] = []
    pending, seen = [register], {-1}
    while pending:
        one = pending.pop()
        made = m.unit.definitions[one] if one >= 0 else None
        if made is None or one in seen:
            continue
        seen.add(one)
        if isinstance(made, t.Load):
            stores = [e.value for e in m.index.of(t.StoreItem) if naming.text_of(m, e.base) == made.name]
            pending += [value for value, _ in bound.get(made.name, ())] + stores
        elif isinstance(made, t.Function):
            names = _free_names(m, made.unit) & bound.keys()
            found += [value for name in sorted(names) for value, _ in bound[name]]
        elif isinstance(made, t.Call):
            pending.append(made.function)
        elif isinstance(made, t.Invoke | t.Item | t.Iterate | t.Unpack | t.Make):
            pending += t.operands(made)
    return found


def _free_names(m: Machine, number: int) -> set[str]:
    """The names that a unit, or one inside it, loads and does not bind."""
    units = m.world.program.units
    names = {event.name for event in units[number].definitions if isinstance(event, t.Load)}
    for unit in units:
        if unit.parent == number:
            names |= _free_names(m, unit.number)
    return names - units[number].bound


def _carries_on(m: Machine, register: int, name: str, inside: set[int]) -> bool:
    """Whether a value with a graph is made of what a loop's earlier turn has left under a name."""
    loads = [part for part in uses.expression(m, register, name) if isinstance(part, t.Load) and part.name == name]
    computed = any(m.state.object(ref).requires_grad > 0 for ref in m.value(register).refs)
    return computed and any(load.site in inside for load in loads)


def from_before(m: Machine, loop: t.Loop, through: frozenset[int]) -> t.Bind | None:
    """The last of the bindings at the sites `through` that stands before a loop which reads the name and never binds
    it: each turn starts from what it holds."""
    inside = [event for part in (loop.test, loop.body) for event in t.events(part)]
    bound = {event.name for event in inside if isinstance(event, t.Bind)}
    read = {event.name for event in inside if isinstance(event, t.Load)} - bound
    before = [
        event
        for event in m.index.of(t.Bind)
        if event.site in through
        and event.name in read
        and not event.name.startswith(("%", "."))
        and "#" not in event.name
    ]
    return before[-1] if before else _field_from_before(m, inside, through)


def _field_from_before(m: Machine, inside: list[t.Event], through: frozenset[int]) -> t.Bind | None:
    """The same of a field: `self.loss = f(x)` before a loop that reads it, and in which nothing can set it."""
    first = min((event.site for event in inside), default=-1)
    calls = {naming.text_of(m, event.base) for event in inside if isinstance(event, t.Invoke)}
    stored = {event.name for event in inside if isinstance(event, t.StoreAttribute)}
    read = {(naming.text_of(m, event.base), event.name) for event in inside if isinstance(event, t.Attribute)}
    for event in reversed(m.index.of(t.StoreAttribute)):
        owner = naming.text_of(m, event.base)
        if event.site not in through or event.site >= first or (owner, event.name) not in read:
            continue
        elsewhere = owner in calls and m.world.setters(event.name) - {m.unit.number}
        if event.name not in stored and not elsewhere and owner.isidentifier():
            return t.Bind(f"{owner}.{event.name}", event.value, event.site)
    return None


def _goes_on(m: Machine, register: int, name: str) -> bool:
    """Whether a value is made of what a name holds, with nothing in between that cuts the graph: `x = x[kept]`."""
    parts = uses.expression(m, register, name)
    cut = any(isinstance(part, t.Invoke | t.Attribute) and part.name in _CUTTING for part in parts)
    return not cut and any(isinstance(part, t.Load) and part.name == name for part in parts)


def _is_handed_over(m: Machine, register: int, bound: dict[str, list[tuple[int, int]]], inside: set[int]) -> bool:
    """Whether a value is one of those that a loop goes through, or takes out of a list, as it is: they were computed
    before, all of them."""
    for _ in range(MAX_STEPS):
        made = m.unit.definitions[register] if register >= 0 else None
        if isinstance(made, t.Load):
            places = [value for value, site in bound.get(made.name, ()) if site in inside]
            if len(places) != 1:
                return False
            register = places[0]
        elif isinstance(made, t.Unpack):
            register = made.value
        elif isinstance(made, t.Item):
            # `losses[i]`, of a list that the loop does not make.
            base = m.unit.definitions[made.base]
            return isinstance(base, t.Load) and not any(site in inside for _, site in bound.get(base.name, ()))
        else:
            return isinstance(made, t.Iterate)
    return False


def _bindings(tape: t.Tape) -> dict[str, list[tuple[int, int]]]:
    """For each name, the registers that it is bound to, and where."""
    found: dict[str, list[tuple[int, int]]] = {}
    for event in t.events(tape):
        if isinstance(event, t.Bind):
            found.setdefault(event.name, []).append((event.value, event.site))
    return found


def _is_known(m: Machine, call: t.Call | t.Invoke) -> bool:
    """Whether a call makes its result of its operands and of nothing else."""
    if isinstance(call, t.Invoke):
        return table.tensor_method(call.name) is not None
    function = m.unit.definitions[call.function]
    return isinstance(function, t.Import) and function.dotted.partition(".")[0] in ("torch", "numpy")


def _may_carry(m: Machine, value: Value) -> bool:
    """Whether a value, or what a container holds, is of unknown origin."""
    if not value.refs:
        return value.kind is Kind.UNKNOWN and value.const is None
    objects: list[Object] = []
    for ref in value.refs:
        obj = m.state.object(ref)
        slots = m.state.slot_names(ref) if obj.kind in CONTAINERS else ()
        objects += [m.state.object(held) for slot in slots for held in m.state.refs_of(slot)]
        if obj.kind not in CONTAINERS:
            objects.append(obj)
    return any(
        obj.kind in (*TENSORS, Kind.UNKNOWN) and obj.leaf <= 0 and obj.requires_grad is not Fact.NO for obj in objects
    )


def is_begun_on_arms(m: Machine, site: int, name: str) -> bool:
    """Whether the arms of a condition, one behind the other, begin a sum that the turn goes on with later.

    `if a: loss = f(x)` and `elif b: loss = g(x)`: that neither holds is not meant to happen. What begins it under one
    condition alone may be meant to begin it once, or now and then.
    """
    loop = _innermost(m.unit.tape, site)
    body = loop.body if loop is not None else ()
    while body:
        around: t.Tape = ()
        for event in body:
            if any(inner.site == site for part in t.inner_tapes(event) for inner in t.events(part)):
                around = next(
                    part for part in t.inner_tapes(event) if any(inner.site == site for inner in t.events(part))
                )
                break
            if isinstance(event, t.Branch):
                begun = [one.value for one in t.events((event,)) if isinstance(one, t.Bind) and one.name == name]
                made = [m.unit.definitions[register] if register >= 0 else None for register in begun]
                anew = all(isinstance(one, t.Operate | t.Call | t.Invoke | t.Load) for one in made)
                if len(begun) > 1 and anew and not any(uses.is_computed_from(m, register, name) for register in begun):
                    return True
        body = around
    return False


def _innermost(tape: t.Tape, site: int) -> t.Loop | None:
    found: t.Loop | None = None
    while True:
        inner = next(
            (
                (event, part)
                for event in tape
                for part in t.inner_tapes(event)
                if any(one.site == site for one in t.events(part))
            ),
            None,
        )
        if inner is None:
            return found
        found = inner[0] if isinstance(inner[0], t.Loop) else found
        tape = inner[1]
