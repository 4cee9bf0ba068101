"""Values that a loop computes anew on each turn on which they are used, whatever else may be under their names."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import CONTAINERS, TENSORS, Fact, Kind
from torchcopylint.flow.tapes import exclusion, same_arms, uses
from torchcopylint.flow.tapes.inlining import HELPERS_NAME, is_result
from torchcopylint.knowledge import table

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

_PASSING_ON = frozenset({"builtins.zip", "builtins.enumerate", "builtins.reversed", "builtins.list"})
_SAME_ELEMENTS = frozenset({"builtins.reversed", "builtins.list", "builtins.tuple", "builtins.iter"})
_MAKING = (t.Call, t.Operate, t.Augment, t.Item, t.Unpack, t.Iterate, t.Const, t.Make, t.Import)


def each_turn(m: Machine, site: int, loop: int = -1, *, written: int = -1) -> bool:
    """Whether the value whose method is called at a site comes from nothing that an earlier turn of the loop around it
    (or another one around it) has left: each name that it is computed from is bound before, in that loop, where the
    conditions are those of the site, or else not in the loop at all.

    `if net.both: out, extra = net(x)`, and behind that `if net.both: (loss + extra).backward()`. An inner loop may fill
    a list that each turn of the outer one begins: what it puts in is asked for in the same way. With `written`, whoever
    has passed that site may begin a sum or a list instead: `optimizer.step()`, and then `loss = 0` on the same arm.
    """
    call = m.unit.definitions[m.index.calls[site]] if site in m.index.calls else None
    loops = uses.loops_around(m, site)
    if not isinstance(call, t.Invoke) or not loops:
        return False
    loop = loop if loop >= 0 else loops[-1]
    pending, seen = [_Part(call.base)], set[_Part]()
    while pending:
        part = pending.pop()
        register, where = part
        event = m.unit.definitions[register] if register >= 0 and part not in seen else None
        seen.add(part)
        if event is None or _is_without_graph(m, register):
            continue
        if isinstance(event, t.Load):
            bound = [bind for bind in m.index.binds.get(event.name, ()) if loop in uses.loops_around(m, bind.site)]
            before = [bind.site for bind in bound if bind.site < event.site and _is_passed(m, bind, event.site)]
            is_bound = any(exclusion.some_follow(m, before, one) for one in (site, event.site))
            is_bound = is_bound or same_arms.bind_before(m, event, loop) or _is_of_call(m, event.name, loop)
            if bound and not is_bound and not is_result(m, event) and not _is_set_anew(m, bound, written):
                return False
            if not bound and _is_filled(m, event.name, loop):
                return False
            pending += [_Part(bind.value, where) for bind in bound]
            inside = where[1:] if where[:1] == (_ANY,) else ()
            pending += [_Part(put, inside) for put in (_put_in(m, event.name, loop) if bound else ())]
        elif isinstance(event, t.Invoke) and event.name == "scale" and len(event.arguments) == 1:
            # `scaler.scale(loss)`: what the scaler has been told on earlier turns is no part of a graph.
            pending.append(_Part(event.arguments[0].register))
        elif isinstance(event, t.Attribute) and any(
            loop in uses.loops_around(m, store.site) for store in m.index.stores.get(event.name, ())
        ):
            return False
        elif isinstance(event, (t.Attribute, t.Invoke, *_MAKING)):
            pending += _comes_from(m, event, where)
        else:
            return False
    return True


def _is_of_call(m: Machine, name: str, loop: int) -> bool:
    """Whether a name is one of a helper that stands in the place of its call in a loop: each call begins without what
    an earlier one has bound to it, on whichever arm. What the helper binds first are its parameters."""
    call = name.partition(HELPERS_NAME)[2]
    sites = [
        bind.site
        for other, binds in m.index.binds.items()
        if call and other.endswith(HELPERS_NAME + call)
        for bind in binds
    ]
    return bool(sites) and loop in uses.loops_around(m, min(sites))


_ANY = -1
"""Any element of a container, as a loop takes it out."""
_MAX_DEPTH = 4
"""So deep in containers the parts of one are told apart."""


class _Part(NamedTuple):
    """What a register holds, or a part of it: the positions that lead there, one container after the other."""

    register: int
    where: tuple[int, ...] = ()


def _comes_from(m: Machine, event: t.Event, where: tuple[int, ...]) -> list[_Part]:
    """What a part of the result of an event is computed from. Of the pairs in a list, who takes out the first of each
    comes upon what stands first in them: `for log_prob, reward in saved:`."""
    if isinstance(event, t.Unpack | t.Iterate):
        taken = event.position if isinstance(event, t.Unpack) else _ANY
        inner = event.value if isinstance(event, t.Unpack) else event.iterable
        return [_Part(inner, (taken, *where)[:_MAX_DEPTH])]
    if isinstance(event, t.Make) and where and not event.keys and not any(event.stars):
        items = event.items[where[0] : where[0] + 1] if where[0] >= 0 else event.items
        return [_Part(item, where[1:]) for item in items]
    if isinstance(event, t.Call) and len(event.arguments) == 1 and m.dotted_of(event) in _SAME_ELEMENTS:
        return [_Part(event.arguments[0].register, where)]
    return [_Part(register) for register in t.operands(event)]


def begun_behind(m: Machine, site: int, written: int) -> bool:
    """Whether the method called at a site is that of an element of lists that are all begun anew behind a write, on
    the same arm: `for loss in losses: loss.backward()`, and then `optimizer.step()` and `losses = []`.

    What stands in them on a later turn was put in since.
    """
    call = m.unit.definitions[m.index.calls[site]] if site in m.index.calls else None
    load = m.unit.definitions[call.base] if isinstance(call, t.Invoke) and call.base >= 0 else None
    bound = uses.bindings_before(m, load)[-1:] if isinstance(load, t.Load) else []
    gone_through = [_gone_through(m, register) for register in bound]
    return bool(gone_through) and all(
        names and all(_is_begun(m, name, written) for name in names) for names in gone_through
    )


def _gone_through(m: Machine, register: int) -> list[str]:
    """The names of what a loop goes through whose element, or a part of it, a register holds; none if there is more."""
    event = m.unit.definitions[register] if register >= 0 else None
    while isinstance(event, t.Unpack):
        event = m.unit.definitions[event.value]
    pending = [event.iterable] if isinstance(event, t.Iterate) else []
    names = []
    while pending:
        made = m.unit.definitions[pending.pop()]
        if isinstance(made, t.Load):
            names.append(made.name)
        elif isinstance(made, t.Call) and m.dotted_of(made) in _PASSING_ON:
            pending += [argument.register for argument in made.arguments]
        else:
            return []
    return names


def _is_begun(m: Machine, name: str, written: int) -> bool:
    """Whether a name is bound to a new list, or its list emptied, by who has passed a write, before it looks at it."""
    for use in uses.of_name(m, name):
        if use.site < written:
            continue
        event = m.consumer_of(use.register) if use.loads else None
        emptied = isinstance(event, t.Invoke) and event.base == use.register and event.name == "clear"
        made = m.unit.definitions[use.register] if use.register >= 0 and not use.loads else None
        if isinstance(made, t.Unpack) and isinstance(several := m.unit.definitions[made.value], t.Make):
            made = m.unit.definitions[several.items[made.position]] if made.position < len(several.items) else None
        begun = emptied or (isinstance(made, t.Make) and not made.items)
        return begun and use.loops == uses.loops_around(m, written) and exclusion.goes_along(m, use.site, written)
    return False


def _is_set_anew(m: Machine, bound: list[t.Bind], written: int) -> bool:
    """Whether one of the bindings of a name sets it to a number, or a new list, behind a site, on the same arm."""
    if written < 0:
        return False
    return _is_begun(m, bound[0].name, written) or any(
        bind.site > written
        and _is_number(m, bind.value)
        and uses.loops_around(m, bind.site) == uses.loops_around(m, written)
        and exclusion.goes_along(m, bind.site, written)
        for bind in bound
    )


def _is_passed(m: Machine, bind: t.Bind, load: int) -> bool:
    """Whether who comes to a load has come by a binding in front of it on the same turn, but for its conditions: it
    stands in the same loops, or in some of them. An inner loop takes a turn where nothing but it binds the name: else
    there were none."""
    around = uses.loops_around(m, bind.site)
    if uses.loops_around(m, load)[: len(around)] == around:
        return True
    elsewhere = any(uses.loops_around(m, one.site)[: len(around)] != around for one in m.index.binds[bind.name])
    return not elsewhere and all(parameter.name != bind.name for parameter in m.unit.parameters)


def _is_without_graph(m: Machine, register: int) -> bool:
    """Whether a register holds tensors that surely have no graph, such as what an environment has been asked for."""
    held = [m.state.object(ref) for ref in m.value(register).refs]
    return bool(held) and all(one.kind is Kind.TENSOR and one.requires_grad is Fact.NO for one in held)


def _put_in(m: Machine, name: str, loop: int) -> list[int]:
    """What methods are given, in a loop, of the container that a name holds: `losses.append(loss)`."""
    found: list[int] = []
    for use in uses.of_name(m, name):
        event = m.consumer_of(use.register) if use.loads and loop in use.loops else None
        if isinstance(event, t.StoreItem):
            found += t.operands(event)
        elif isinstance(event, t.Invoke) and event.base == use.register:
            found += [one.register for one in event.arguments] if m.value(event.base).kind in CONTAINERS else []
    return found


def _is_filled(m: Machine, name: str, loop: int) -> bool:
    """Whether something is put into what a name from in front of a loop holds, there: `losses.append(loss)`."""
    for use in uses.of_name(m, name):
        event = m.consumer_of(use.register) if use.loads and loop in use.loops else None
        if isinstance(event, t.StoreItem | t.StoreAttribute) and event.base == use.register:
            return True
        if isinstance(event, t.Augment) and event.target == use.register:
            return True
        if isinstance(event, t.Invoke) and event.base == use.register and m.value(use.register).refs:
            if _keeps_nothing(m, event) or _is_network(m, event) or _computes(m, event):
                continue
            given = [one.register for one in event.arguments]
            contained = m.value(use.register).kind in CONTAINERS
            if given and (contained or not all(_is_number(m, one) for one in given)):
                # `batches.next()`: who is given nothing puts nothing in.
                return True
    return False


def _keeps_nothing(m: Machine, call: t.Invoke) -> bool:
    """Whether a method of the user's is known to leave nothing of its arguments behind, in its object or elsewhere."""
    known = [m.world.method_of(m.state.object(ref), call.name) for ref in m.value(call.base).refs]
    summaries = [m.world.summary(function) for function in known if function is not None]
    return len(summaries) == len(known) and not any(
        one is None or one.unknown or one.kept or one.added or one.left or one.carries for one in summaries
    )


def _is_network(m: Machine, call: t.Invoke) -> bool:
    """Whether what looks like a method is a network in a field, `self.net(x)`, which is not known to keep anything."""
    cells = [m.state.cell((ref, f".{call.name}")) for ref in m.value(call.base).refs]
    held = [m.state.object(ref) for cell in cells if cell is not None for ref in cell.refs]
    forward = [m.world.method_of(one, "forward") for one in held]
    summaries = [m.world.summary(function) for function in forward if function is not None]
    keeping = any(one is not None and (one.kept or one.added or one.left or one.carries) for one in summaries)
    return None not in cells and bool(held) and all(one.kind is Kind.MODULE for one in held) and not keeping


_OF_OTHERS = frozenset({"add", "copy", "count", "get", "index", "put", "union"})


def _computes(m: Machine, call: t.Invoke) -> bool:
    """Whether a method is one of tensors that makes a new one of what it is given: `real.mul(epsilon)`."""
    op = table.tensor_method(call.name) if call.name not in _OF_OTHERS else None
    computes = op is not None and op.differentiable and not op.writes and op.shares == "fresh"
    return computes and all(m.state.object(ref).kind in (*TENSORS, Kind.UNKNOWN) for ref in m.value(call.base).refs)


def _is_number(m: Machine, register: int) -> bool:
    """Whether a register holds no tensor, nor anything that may hold one: `env.step(action.item())`."""
    value = m.value(register)
    return not value.refs and (value.const is not None or value.kind in (Kind.NUMBER, Kind.STRING))
