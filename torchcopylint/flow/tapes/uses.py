"""Where a unit uses a name, and what an expression is made of: looked up when a candidate for a fact turns up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import Kind
from torchcopylint.flow.tapes import liveness
from torchcopylint.flow.tapes.index import Use

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
MAX_EXPRESSION = 60
"""So many registers of one expression are looked at."""


def of_name(m: Machine, name: str) -> list[Use]:
    """Every load and binding of a name in a unit, in source order."""
    return m.index.uses.get(name, [])


def from_iteration(m: Machine, register: int) -> bool:
    """Whether a register holds an element of what a `for` loop goes through, or a part of one."""
    event = m.unit.definitions[register] if register >= 0 else None
    while event.__class__ is t.Unpack:
        event = m.unit.definitions[event.value]
    return event.__class__ is t.Iterate


def is_shown(m: Machine, register: int) -> bool:
    """Whether a value is printed, put into a text, or dropped as a notebook's last line, and nothing else."""
    used = m.consumer_of(register)
    if isinstance(used, t.Call):
        return m.dotted_of(used) == "builtins.print"
    return isinstance(used, t.Text | t.Discard)


def is_of_each_turn(m: Machine, register: int) -> bool:
    """Whether a register was loaded from a name that loops alone bind: it is another thing at each turn."""
    load = m.unit.definitions[register] if register >= 0 else None
    bound = bindings_before(m, load) if isinstance(load, t.Load) else []
    return bool(bound) and all(from_iteration(m, one) for one in bound)


def is_dead_in_loop(m: Machine, name: str, site: int, *, measured: bool = False) -> bool:
    """Whether a loop variable that is bound anew at `site` is not looked at again before the loop binds it itself;
    `measured` is whether to ask for its size is no look at it."""
    uses = of_name(m, name)
    bound = next((use for use in uses if use.site == site and not use.loads), None)
    if bound is None or not bound.loops or seen_from_inside(m, name):
        return False
    head = [u for u in uses if not u.loads and u.position < bound.position and from_iteration(m, u.register)]
    if not head or head[-1].loops != bound.loops[: len(head[-1].loops)] or not head[-1].loops:
        return False
    loop = head[-1].loops
    for use in uses:
        if use.position <= bound.position:
            continue
        if use.loads:
            seen = m.consumer_of(use.register)
            gives_up = isinstance(seen, t.StoreAttribute) and seen.base == use.register and seen.name == "grad"
            size = measured and seen is not None and use.register in _of_no_value(m, seen)
            if isinstance(seen, t.Discard) or gives_up or size:
                continue
            return False
        if use.loops[: len(loop)] != loop:
            # Behind the loop, it is bound to something else before it is looked at.
            return True
    return True


def method_named(m: Machine, register: int) -> t.Attribute | None:
    """What may be a method that has been given a name of its own, where that is loaded: `keep = losses.append`."""
    made = m.unit.definitions[register] if register >= 0 else None
    found = bindings_before(m, made) if made.__class__ is t.Load else []
    method = m.unit.definitions[found[0]] if len(found) == 1 and found[0] >= 0 else None
    return method if method.__class__ is t.Attribute else None


def is_dead(m: Machine, name: str, site: int) -> bool:
    """Whether nobody looks at a name of the unit again after it is bound at `site`: neither later on, nor at the next
    turn of a loop."""
    uses = of_name(m, name)
    bound = next((use for use in uses if use.site == site and not use.loads), None)
    if bound is None or name not in m.unit.bound or seen_from_inside(m, name):
        return False
    later = [use for use in uses if use.loads and use.position > bound.position]
    if any(not isinstance(m.consumer_of(use.register), t.Discard) for use in later):
        return False
    turns = [use for use in uses if bound.loops and use.loops[: len(bound.loops)] == bound.loops]
    return not turns or not turns[0].loads


def seen_from_inside(m: Machine, name: str) -> bool:
    """Whether a function inside this unit speaks of the name."""
    return name in m.world.names_inside.get(m.unit.number, ())


def expression(m: Machine, register: int, name: str) -> list[t.Event]:
    """The events that a value is computed by, the outermost first, through other names down to the loads of `name`."""
    known = m.index.expressions.get((register, name))
    if known is not None:
        return known
    bound_before = m.index.bound_before
    found = m.index.expressions[register, name] = []
    pending = [register]
    seen: set[int] = set()
    while pending and len(found) < MAX_EXPRESSION:
        current = pending.pop()
        if current < 0 or current in seen:
            continue
        seen.add(current)
        event = m.unit.definitions[current]
        if event is None:
            continue
        found.append(event)
        if event.__class__ is t.Load:
            if event.name != name:
                pending += bound_before.get(event.out, ())
            continue
        if event.__class__ is t.Item:
            pending += [part for part in event.subscript if isinstance(part, int)]
        elif event.__class__ is t.Make:
            pending += m.index.collected.get(current, ())
        pending += reversed(t.operands(event))
    return found


def is_computed_from(m: Machine, register: int, name: str) -> bool:
    """Whether a value is computed, by an operator or a call, from what a name holds."""
    known = m.index.computed.get((register, name))
    if known is None:
        parts = expression(m, register, name)
        unused = {register for part in parts for register in _of_no_value(m, part)}
        loads = any(part.__class__ is t.Load and part.name == name and part.out not in unused for part in parts)
        known = loads and any(isinstance(part, t.Operate | t.Invoke | t.Call) for part in parts)
        m.index.computed[register, name] = known
    return known


def _of_no_value(m: Machine, event: t.Event) -> tuple[int, ...]:
    """The registers of which an event uses no value: what something is converted to the like of, what is measured."""
    if event.__class__ is t.Invoke:
        arguments = tuple(argument.register for argument in event.arguments)
        return arguments if event.name in _LIKE else (event.base,) if event.name in _MEASURES else ()
    if event.__class__ is t.Attribute:
        return (event.base,) if event.name in _MEASURES else ()
    if event.__class__ is t.Call:
        function = m.unit.definitions[event.function]
        measured = isinstance(function, t.Load) and function.name == "len"
        return tuple(argument.register for argument in event.arguments) if measured else ()
    return ()


_LIKE = frozenset({"to", "type_as", "view_as", "expand_as", "reshape_as"})
"""Methods that ask what they are given for its dtype, its device or its shape alone."""
_MEASURES = frozenset({"shape", "dtype", "device", "ndim", "size", "dim", "numel"})


def is_last_look(m: Machine, name: str, register: int, result: int) -> bool:
    """Whether what a name holds is not looked at again once `register` has been loaded from it, to make `result`."""
    if seen_from_inside(m, name):
        return False
    found = of_name(m, name)
    look = next((use for use in found if use.loads and use.register == register), None)
    if look is None:
        return False
    if any(not use.loads and _leads_to(m, use.register, result) for use in found):
        # `x = torch.Tensor(x).to(device)`: from here on, the name stands for something else.
        return True
    return _is_of_this_turn(found, look) and not any(use.loads and use.position > look.position for use in found)


def _leads_to(m: Machine, register: int, source: int) -> bool:
    """Whether a register holds another one, or what methods have made of that in turn: `source.to(device).float()`."""
    while register >= 0 and register != source:
        event = m.unit.definitions[register]
        register = event.base if isinstance(event, t.Invoke) else -1
    return register == source


def ends_in(m: Machine, name: str, site: int) -> bool:
    """Whether the call at a site is the last to look at what a name holds: nothing behind it does, nor a loop's next
    turn."""
    found = of_name(m, name)
    register = m.index.calls.get(site, -1)
    if register < 0 or seen_from_inside(m, name):
        return False
    parts = [event.out for event in expression(m, register, name) if event.__class__ is t.Load]
    mine = any(use.loads and use.register in parts for use in found)
    return mine and not liveness.is_looked_at_again(m.unit, name, register)


def _is_of_this_turn(found: list[Use], look: Use) -> bool:
    """Whether a name was bound in the very turn of the loop in which it is looked at."""
    return not look.loops or any(
        not use.loads and use.position < look.position and use.loops == look.loops for use in found
    )


def is_second_name(m: Machine, name: str, other: str, site: int) -> bool:
    """Whether a name was bound at a site to just what another name held: `old = grid`."""
    bound = [bind.value for bind in m.index.binds.get(name, ()) if bind.site == site]
    made = [m.unit.definitions[register] if register >= 0 else None for register in bound]
    return bool(made) and all(isinstance(event, t.Load) and event.name == other for event in made)


def is_flag(m: Machine, register: int) -> bool:
    """Whether a value is true or false by what it is made of: a comparison, or a parameter whose default is one."""
    event = m.unit.definitions[register] if register >= 0 else None
    if isinstance(event, t.Load):
        mine = [parameter for parameter in m.unit.parameters if parameter.name == event.name]
        if not mine or len(of_name(m, event.name)) > len([use for use in of_name(m, event.name) if use.loads]):
            return False
        if mine[0].annotation is not None and mine[0].annotation.name == "bool":
            return True
        return isinstance(default_of(m, event.name), bool)
    if isinstance(event, t.Logic):
        return event.symbol not in ("and", "or") or all(is_flag(m, operand) for operand in event.operands)
    return isinstance(event, t.Operate) and event.symbol in _COMPARISONS


def default_of(m: Machine, name: str) -> object:
    """The default of a parameter, if that is a constant."""
    if all(parameter.name != name for parameter in m.unit.parameters):
        return None
    outer = m.world.program.units[m.unit.parent].definitions if m.unit.parent >= 0 else ()
    made = next((e for e in outer if isinstance(e, t.Function) and e.unit == m.unit.number), None)
    default = dict(made.defaults).get(name, t.NO_REGISTER) if made is not None else t.NO_REGISTER
    constant = outer[default] if default != t.NO_REGISTER else None
    return constant.value if isinstance(constant, t.Const) else None


def is_number(m: Machine, load: t.Load) -> bool:
    """Whether a name is a parameter that is a whole number where nobody passes it, and is nothing else later."""
    default = default_of(m, load.name)
    return isinstance(default, int) and not isinstance(default, bool) and not bindings_before(m, load)


def is_only_written(m: Machine, name: str) -> bool:
    """Whether nobody reads what a name is bound to once the first write has gone into it.

    What a write itself reads (`rows[rows < 0] = 0`) and what was read before it tells nobody what it did.
    """
    if seen_from_inside(m, name):
        return False
    uses = of_name(m, name)
    loads = [use for use in uses if use.loads]
    written = [use for use in loads if _is_write(m, use.register)]
    if len(written) == len(loads):
        return True
    bound = [use for use in uses if not use.loads and not isinstance(m.unit.definitions[use.register], t.Augment)]
    straight = len({use.loops for use in uses}) == 1 and len(bound) == 1
    last = [_last_operand(m, use.register) for use in written]
    return straight and bool(last) and all(use.register <= last[0] or use in written for use in loads)


def _last_operand(m: Machine, register: int) -> int:
    """The last register that a write through a register takes: of events, the later ones have higher numbers."""
    event = m.consumer_of(register)
    while isinstance(event, t.Item):
        register, event = event.out, m.consumer_of(event.out)
    if isinstance(event, t.StoreItem):
        return max(register, event.value, *[part for part in event.subscript if isinstance(part, int)])
    return max((register, *t.operands(event))) if event is not None else register


def _is_write(m: Machine, register: int) -> bool:
    event = m.consumer_of(register)
    if isinstance(event, t.Item) and event.base == register:
        return _is_write(m, event.out)
    if isinstance(event, t.Invoke):
        written = event.base == register and event.name.endswith("_")
        return written and isinstance(m.consumer_of(event.out), t.Discard)
    if isinstance(event, t.StoreItem):
        return event.base == register
    return isinstance(event, t.Augment) and event.target == register


def bindings_before(m: Machine, load: t.Load) -> list[int]:
    """What a name was bound to before it is loaded: the last binding, and the one before unless the last one surely
    took its place: they may be the arms of one condition."""
    known = m.index.bindings.get(load.out)
    if known is None:
        known = m.index.bindings[load.out] = _bindings_before(m, load)
    return known


def _bindings_before(m: Machine, load: t.Load) -> list[int]:
    uses = of_name(m, load.name)
    look = next((use for use in uses if use.register == load.out and use.loads), None)
    bound = [use for use in uses if not use.loads and look is not None and use.position < look.position]
    alone = look is not None and bool(bound) and look.loops[: len(bound[-1].loops)] == bound[-1].loops
    if alone and bound[-1].site not in m.index.on_some_paths:
        return [bound[-1].register]
    return [use.register for use in bound[-2:]]


def loops_around(m: Machine, site: int) -> tuple[int, ...]:
    """The loops that the event at a site stands in, the outermost first."""
    return m.index.loops.get(site, ())


def calls_network(m: Machine, event: t.Call | t.Invoke) -> bool:
    """Whether a network is called that a name or a field holds: `model(x)`, `self.model(x)`."""
    if isinstance(event, t.Call):
        refs = m.value(event.function).refs
    else:
        base = m.value(event.base).refs
        refs = m.state.refs_of((base[0], f".{event.name}")) if len(base) == 1 else ()
    return bool(refs) and all(m.state.object(ref).kind is Kind.MODULE for ref in refs)


def on_some_paths(m: Machine, site: int) -> bool:
    """Whether the event at a site stands on an arm of a condition."""
    return site in m.index.on_arms


def runs_before(m: Machine, one: int, other: int) -> bool:
    """Whether whoever comes to the event at the site `other` has come by that at `one`, as far as conditions go."""
    if one >= other:
        return False
    arms = [arm for branch in m.index.of(t.Branch) for arm in branch.arms] if on_some_paths(m, one) else []
    sites = ({event.site for event in t.events(arm)} for arm in arms)
    return all(other in inside for inside in sites if one in inside)


def own_calls(m: Machine) -> frozenset[str]:
    """The methods of the same object that a method calls, and those that these call.

    What a constructor that is inherited calls is what the class makes of it.
    """
    found: set[str] = set()
    # Of a unit with helpers in it, the calls stand in the one without.
    pending = [m.world.program.units[m.unit.number]]
    above = m.world.method_above(m.unit.owner, m.unit.name) if m.unit.name == "__init__" and m.unit.owner >= 0 else None
    pending += [m.world.unit(above)] if above is not None and m.world.is_own(above) else []
    while pending:
        unit = pending.pop()
        me = unit.first
        for event in unit.definitions:
            if event.__class__ is not t.Invoke or event.name in found:
                continue
            base = unit.definitions[event.base]
            if not isinstance(base, t.Load) or base.name != me:
                continue
            found.add(event.name)
            number = m.world.method(m.unit.owner, event.name)
            if number is not None and m.world.is_own(number):
                pending.append(m.world.unit(number))
    return frozenset(found)


def own_callers(m: Machine) -> frozenset[str]:
    """The methods of the same class, or of those that inherit from it, that call a method on their own object.

    And those that some loop of the file calls beside it, on one object: `env.step(a)`, `env.record()`.
    """
    found = set(_beside_in_loops(m))
    pending = [m.unit.name, *found]
    lineages = {unit.owner: m.world.lineage(unit.owner) for unit in m.world.program.units if unit.owner >= 0}
    mine = [unit for unit in m.world.program.units if m.unit.owner in lineages.get(unit.owner, ())]
    while pending:
        name = pending.pop()
        for unit in mine:
            me = unit.first
            if unit.name not in found and any(
                event.name == name and isinstance(base := unit.definitions[event.base], t.Load) and base.name == me
                for event in m.world.index(unit).of(t.Invoke)
            ):
                found.add(unit.name)
                pending.append(unit.name)
    return frozenset(found)


def _beside_in_loops(m: Machine) -> set[str]:
    """The methods that a loop calls on the object on which it calls the method that is run."""
    found: set[str] = set()
    for unit in m.world.program.units:
        index = m.world.index(unit)
        calls = [event for event in index.of(t.Invoke) if index.loops.get(event.site)]
        places = {
            (_place(unit, event.base), index.loops[event.site][0]) for event in calls if event.name == m.unit.name
        }
        for event in calls if places else ():
            place = _place(unit, event.base)
            if place and (place, index.loops[event.site][0]) in places:
                found.add(event.name)
    return found - {m.unit.name}


def _place(unit: t.Unit, register: int) -> str:
    """The name or field of `self` that a register was loaded from."""
    event = unit.definitions[register] if register >= 0 else None
    if isinstance(event, t.Attribute):
        base = unit.definitions[event.base]
        return f"{base.name}.{event.name}" if isinstance(base, t.Load) else ""
    return event.name if isinstance(event, t.Load) else ""


_MAX_STEPS = 8
_ELEMENTWISE = frozenset({"add", "sub", "mul", "div", "to", "view", "view_as", "reshape"})


def put_at(m: Machine, site: int) -> int:
    """The site of the write that puts the result of the operation at a site, or what arithmetic makes of it, into
    something: `p.copy_(w + step * d)`, or the copy that it is into its place: `p.data = w.clone()`. -1 if it goes
    anywhere else."""
    event: t.Event | None = m.index.operations.get(site)
    copied = isinstance(event, t.Invoke) and event.name == "clone"
    for _ in range(_MAX_STEPS):
        out = event.out if isinstance(event, t.Operate | t.Invoke) else t.NO_REGISTER
        used = m.consumer_of(out) if out >= 0 else None
        if isinstance(used, t.Invoke) and used.name == "copy_" and used.base != out:
            return used.site
        if copied and isinstance(used, t.StoreAttribute) and used.name == "data" and used.value == out:
            return used.site
        if not isinstance(used, t.Operate) and not (isinstance(used, t.Invoke) and used.name in _ELEMENTWISE):
            return -1
        copied = copied and isinstance(used, t.Invoke) and used.name == "to"
        event = used
    return -1


def is_self(m: Machine, register: int) -> bool:
    """Whether a register holds the object that the method was called on."""
    event = m.unit.definitions[register] if register >= 0 else None
    return isinstance(event, t.Load) and event.name == m.unit.first
