"""What a forward hook keeps of the output of a layer that the next layer overwrites: it is called in between.

net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(inplace=True))
net[0].register_forward_hook(lambda m, args, out: seen.update(conv=out.detach()))
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import HookedSpoilt
from torchcopylint.flow.graphs import callbacks
from torchcopylint.flow.interprocedural import forward_hooks
from torchcopylint.flow.model import Kind, Sure
from torchcopylint.flow.networks import hooked_inputs, written_down
from torchcopylint.flow.networks.chains import SEQUENTIAL
from torchcopylint.flow.networks.neighbours import FRESH_IN_PLACE
from torchcopylint.flow.references import FunctionReference
from torchcopylint.flow.tape import Dotted
from torchcopylint.flow.tapes import callees, uses
from torchcopylint.knowledge import table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchcopylint.flow.running.machine import Machine

MAX_STEPS = 6
"""By so many names and fields, a layer is followed back to where its chain is made."""


def found(m: Machine) -> Iterator[HookedSpoilt]:
    """The hooks that a unit registers and that keep such an output as it is."""
    for event in m.index.of(t.Invoke):
        given = [one.register for one in event.arguments if one.keyword in ("", "hook")][:1]
        if event.name != forward_hooks.REGISTERING or not given:
            continue
        site, op = next((found for found in _all_overwritten(m, event.base) if found[1]), (-1, ""))
        value = m.value(given[0])
        function = callbacks.called(m, given[0], value).const if op else None
        hook = m.world.machines.get(function.unit) if isinstance(function, FunctionReference) else None
        if hook is None or not m.world.is_own(hook.unit.number):
            continue
        parameter = hooked_inputs.parameter_of(m, hook, value, 2)
        for put in hook.index.events if parameter else ():
            holder = hooked_inputs.holder_of(hook, put, parameter, hooked_inputs.is_output)
            if holder:
                yield HookedSpoilt(put.site, holder, op, site, Sure.LIKELY)
                break


def _all_overwritten(m: Machine, register: int) -> Iterator[tuple[int, str]]:
    """The same of the layer in a register, or of each that the unit is handed for the parameter that this is."""
    yield _overwritten(m, register)
    load = m.unit.definitions[register] if register >= 0 else None
    if isinstance(load, t.Load):
        yield from _of_loop(m, load)
    names = [parameter.name for parameter in m.unit.parameters if parameter.kind == "plain"]
    if not isinstance(load, t.Load) or load.name not in names or m.index.binds.get(load.name):
        return
    for other in m.world.machines.values():
        calls: list[t.Call | t.Invoke] = [*other.index.of(t.Call), *other.index.of(t.Invoke)]
        for call in calls:
            given = _passed(other, call, m, names.index(load.name), load.name)
            if given >= 0:
                yield _overwritten(other, given)


_ALL = frozenset({"modules", "named_modules", "children", "named_children"})


def _of_loop(m: Machine, load: t.Load) -> Iterator[tuple[int, str]]:
    """The same of the layers that a loop goes through: those of a display, or the parts of a network, all of them or
    those of a class: `for name, layer in net.named_modules(): if isinstance(layer, nn.Conv2d): ...`"""
    bound = uses.bindings_before(m, load)
    made = m.unit.definitions[bound[0]] if len(bound) == 1 and bound[0] >= 0 else None
    if isinstance(made, t.Unpack) and made.value >= 0:
        made = m.unit.definitions[made.value]
    through = m.unit.definitions[made.iterable] if isinstance(made, t.Iterate) and made.iterable >= 0 else None
    if isinstance(through, t.Make) and through.kind in ("list", "tuple"):
        for item in through.items:
            yield _overwritten(m, item)
    number = _class_of(m, through.base) if isinstance(through, t.Invoke) and through.name in _ALL else None
    unit = m.world.method(number, "forward") if number is not None else None
    forward = m.world.machines.get(unit) if unit is not None else None
    wanted = _tested_for(m, load)
    if number is None or forward is None or wanted is None:
        return
    for call in forward.index.of(t.Invoke):
        refs = forward.value(call.base).refs if uses.is_self(forward, call.base) else ()
        held = [forward.state.object(one) for ref in refs for one in forward.state.refs_of((ref, f".{call.name}"))]
        if held and all(obj.kind is Kind.MODULE and (not wanted or obj.type in wanted) for obj in held):
            yield _by_forward(m, number, call.name)


def _tested_for(m: Machine, load: t.Load) -> set[str] | None:
    """The classes that a loop picks its layers by, with `isinstance`; none if it takes all, `None` if it picks them in
    another way."""
    if load.site not in m.index.on_arms:
        return set()
    found: set[str] = set()
    for call in m.index.of(t.Call):
        given = [m.unit.definitions[one.register] for one in call.arguments if one.register >= 0]
        subject = given[0] if len(given) == 2 and m.dotted_of(call) == "builtins.isinstance" else None
        if isinstance(subject, t.Load) and subject.name == load.name:
            option = m.value(call.arguments[1].register).const
            found |= {table.canonical(str(option))} if isinstance(option, Dotted) else set()
    return found or None


def _passed(m: Machine, call: t.Call | t.Invoke, of: Machine, position: int, name: str) -> int:
    """The register that a call passes for a parameter of another unit, if that is surely what it calls."""
    called = callees.called(m, call) if callees.may_lead(m, call) else None
    if called is None or called.number != of.unit.number:
        return t.NO_REGISTER
    behind = position - (1 if called.base >= 0 else 0)
    plain = [one for one in call.arguments if not one.keyword and not one.stars]
    named = [one.register for one in call.arguments if one.keyword == name]
    return named[0] if named else plain[behind].register if 0 <= behind < len(plain) else t.NO_REGISTER


def _overwritten(m: Machine, register: int) -> tuple[int, str]:
    """Where, and by what, the output of a layer is overwritten once its hooks have run; an empty text if it is not."""
    layer = m.unit.definitions[register] if register >= 0 else None
    if isinstance(layer, t.Item) and len(layer.subscript) == 1:
        return _by_next(m, layer)
    number = _class_of(m, layer.base) if isinstance(layer, t.Attribute) else None
    return _by_forward(m, number, layer.name) if isinstance(layer, t.Attribute) and number is not None else (-1, "")


def _class_of(m: Machine, register: int) -> int | None:
    """The class of the file that a register holds an instance of."""
    if m.unit.owner >= 0 and uses.is_self(m, register):
        return m.unit.owner
    refs = m.value(register).refs
    number = m.world.local_class(m.state.object(refs[0]).type) if len(refs) == 1 else None
    return number if number is not None and m.world.is_own_class(number) else None


def _by_next(m: Machine, layer: t.Item) -> tuple[int, str]:
    """The same for a layer of a chain that is written down: the next one may work in place."""
    place = m.value(layer.subscript[0]).const if isinstance(layer.subscript[0], int) else None
    where, layers = _layers(m, layer.base)
    if type(place) is not int:
        return -1, ""
    place += len(layers) if place < 0 else 0
    refs = where.value(layers[place + 1]).refs if 0 <= place < len(layers) - 1 else ()
    obj = where.state.object(refs[0]) if len(refs) == 1 else None
    short = obj.type.rpartition(".")[2] if obj is not None else ""
    if obj is None or not hooked_inputs.works_in_place(obj) or short in FRESH_IN_PLACE:
        return -1, ""
    return obj.site, f"{short}(...)"


def _layers(m: Machine, register: int) -> tuple[Machine, list[int]]:
    """The layers that the chain in a register is made of, and the machine of the unit where; none if nobody knows."""
    chain = m.unit.definitions[register] if register >= 0 else None
    if isinstance(chain, t.Attribute) and (number := _class_of(m, chain.base)) is not None:
        made = written_down.of_class(m, number, chain.name, MAX_STEPS)
    else:
        made = written_down.made(m, register, MAX_STEPS)
    where, call = made if made is not None else (m, None)
    if not isinstance(call, t.Call | t.Invoke) or where.dotted_of(call) != SEQUENTIAL:
        return m, []
    plain = all(not one.keyword and not one.stars for one in call.arguments)
    return where, [one.register for one in call.arguments] if plain else []


def _by_forward(m: Machine, number: int, name: str) -> tuple[int, str]:
    """The same for a layer in a field, whose result the `forward` of its network writes in place, whichever way."""
    unit = m.world.method(number, "forward")
    forward = m.world.machines.get(unit) if unit is not None else None
    if forward is None:
        return -1, ""
    writes = [(s, write) for s, write in sorted(forward.writes.items()) if s not in forward.index.on_arms]
    for call in forward.index.of(t.Invoke):
        refs = forward.value(call.out).refs if call.name == name and uses.is_self(forward, call.base) else ()
        own = {share.storage for ref in refs for share in forward.state.object(ref).shares}
        for site, write in writes:
            if len(refs) == 1 and site > call.site and own & set(write.storages):
                return site, write.op
    return -1, ""
