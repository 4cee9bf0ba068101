"""Backward over a value without a graph: where the graph was lost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.base.finding import Role
from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import GraphLost
from torchcopylint.flow.graphs import batches, lone_leaves
from torchcopylint.flow.model import CONTAINERS, TENSORS, Fact, Kind, Object, Sure, Value
from torchcopylint.flow.references import FunctionReference
from torchcopylint.flow.tapes.way_back import WayBack
from torchcopylint.flow.values import inside, kinds, naming
from torchcopylint.flow.values.state import kind_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from torchcopylint.flow.running.machine import Machine

_CUTTING = frozenset({"detach", "item", "tolist", "numpy", "argmax", "argmin", "argsort", "long", "int", "bool"})
_CUTTING_FUNCTIONS = frozenset({"argmax", "argmin", "argsort", "detach", "eq", "ne", "gt", "ge", "lt", "le"})
"""The same of torch's functions: what picks a place or compares gives whole numbers, which have no gradient."""
_WRAPPING = frozenset({"torch.tensor", "torch.from_numpy", "torch.as_tensor", "torch.Tensor", "torch.FloatTensor"})
_PASSING = frozenset({"torch.as_tensor"})
"""Those that hand on a tensor that they are given, with its graph."""
_VARIABLE = "torch.autograd.Variable"
"""Makes a new leaf of what has a graph. Of what may have none, it made what was learnt from before tensors could be."""
_NUMBERS = frozenset({"builtins.float", "builtins.int"})
"""What these make of a tensor is a number of Python, and so is what the functions of `math` return."""
_COMPARISONS = frozenset({"==", "!=", "<", ">", "<=", ">="})
_MAX_NESTING = 3
"""So deep lists within lists are looked into."""
MAX_EVENTS = 200
"""So many events are followed back at most."""


def note(m: Machine, value: Value, register: int, site: int, name: str) -> bool:
    """Backward runs over the value of a register. If it surely has no graph, look for what had one and lost it, and
    say whether there is such a thing.

    A leaf that requires grad has no graph either: backward fills its `.grad`, and nothing else.
    """
    if m.blocks.on_purpose:
        return True
    if register >= 0 and len(m.value(register).refs) > 1:
        # A method is called on each of the objects that its receiver may be: this is about all of them.
        value = m.value(register)
    bare, wrapped = _ends_here(m, value)
    if not bare and not wrapped and register >= 0 and kinds.named_loss(name):
        bare = batches.are_all_that_requires_grad(m, register)
    whole = register
    reduced = not bare and not wrapped
    if reduced:
        register, value = _of_which(m, register, value)
        bare, wrapped = _ends_here(m, value)
    found = [m.state.object(ref) for ref in value.refs]
    cut = cut_behind(m, register, site) if bare or wrapped else None
    if cut is not None and wrapped and reduced and cut[2] not in _WRAPPING and _is_named(m, register):
        # `x = Variable(x.data, requires_grad=True)`, and then `x.sum().backward()`: the gradient of `x` is wanted,
        # unless nobody looks at `x` again.
        cut = _computed_from_leaves(m, whole)
        if cut is None:
            return True
    if cut is None and wrapped and kinds.named_loss(name):
        cut = _wrapped_behind(m, register, site) or _wrapped_by_helper(m, register, site)
    elif not bare and not wrapped and kinds.named_loss(name):
        # A helper has reduced the leaf that it made: what it returns is none.
        cut = _wrapped_by_helper(m, register, site)
    if cut is None and not bare:
        # Or this unit has computed with its own, which nobody else asks for its gradient, whatever the loss is called.
        cut = _computed_from_leaves(m, whole)
    wrapped = wrapped or (cut is not None and not bare)
    if cut is not None:
        event, source, op = cut
        known = [obj.sure for obj in found if obj.kind in TENSORS] or [Sure.LIKELY]
        sure = min(Sure.LIKELY, *known) if wrapped else min(known)
        leaf = _wrapped_behind(m, whole, site) if wrapped else None
        wrapper = leaf[0].site if leaf is not None and leaf[0].site != event.site else -1
        m.fact(GraphLost(site, name, naming.spelling(m, source), event.site, op, wrapped, sure, wrapper=wrapper))
    return cut is not None


def note_number(m: Machine, register: int, site: int, name: str) -> None:
    """Backward is asked of a number, which has none. Look for the tensor that it was taken out of."""
    cut = None if m.blocks.on_purpose or m.blocks.guards else cut_behind(m, register, site)
    if cut is not None:
        event, source, op = cut
        m.fact(GraphLost(site, name, naming.spelling(m, source), event.site, op, False, Sure.PROVEN, number=True))


def _ends_here(m: Machine, value: Value) -> tuple[bool, bool]:
    """Whether a value surely has no graph, and whether it is a leaf that requires grad all the same."""
    found = [m.state.object(ref) for ref in value.refs]
    if not found or any(obj.kind not in TENSORS for obj in found):
        return False, False
    wrapped = all(
        obj.requires_grad is Fact.YES and (obj.leaf is Fact.YES or (obj.leaf is Fact.UNKNOWN and not obj.graph))
        for obj in found
    )
    return all(obj.requires_grad is Fact.NO for obj in found), wrapped


def _of_which(m: Machine, register: int, value: Value) -> tuple[int, Value]:
    """What a value was computed from, and nothing else: `torch.tensor(losses)` behind its `.mean()`."""
    for _ in range(MAX_EVENTS):
        made = _definition(m, register)
        if not isinstance(made, t.Invoke) or made.arguments or not m.value(made.base).refs:
            break
        if called_unit(m, made) is not None:
            # `self.loss()`: computed by a method of the file, not out of its object.
            break
        register, value = made.base, m.value(made.base)
    return register, value


def _is_named(m: Machine, register: int) -> bool:
    """Whether somebody can ask what a register holds for its gradient: it has a name, or a field holds it."""
    return isinstance(m.unit.definitions[register], t.Load | t.Attribute | t.Item)


def _definition(m: Machine, register: int) -> t.Event | None:
    """What made a register; of a name that is loaded, what its last binding bound."""
    made = m.unit.definitions[register] if 0 <= register < len(m.unit.definitions) else None
    if isinstance(made, t.Load):
        bound = _bound_before(m, made.name, made.site)
        return m.unit.definitions[bound[-1]] if bound else None
    return made


def _wrapped_behind(m: Machine, register: int, site: int) -> tuple[t.Event, int, str] | None:
    """The call that made a leaf of a loss of which nobody knows whether it had a graph: it has none now.

    Of constants, a leaf is made to learn something from.
    """
    way = WayBack(m, register, MAX_EVENTS)
    for event in way:
        if isinstance(event, t.Load):
            way.go_on(_bound_before(m, event.name, site)[-1:])
        if isinstance(event, t.Invoke | t.Call) and event.arguments and m.dotted_of(event) in (*_WRAPPING, _VARIABLE):
            taken, op = event.arguments[0].register, m.dotted_of(event)
            made_of_it = not _is_constant(m, taken) and not (op == _VARIABLE and _is_bare(m, taken))
            return (event, taken, op) if made_of_it and not (op in _PASSING and _may_pass(m, taken)) else None
        if isinstance(event, t.Invoke) and not event.arguments:
            # `torch.tensor(losses, requires_grad=True).mean()`
            way.go_on([event.base])
    return None


def _computed_from_leaves(m: Machine, register: int) -> tuple[t.Event, int, str] | None:
    """The call that made a leaf which nobody looks at, if a value hangs on nothing but such ones."""
    made = lone_leaves.behind(
        m, register, lambda leaf: cuts(m, leaf) is not None and carries(m, leaf.arguments[0].register)
    )
    return None if made is None else (made, made.arguments[0].register, m.dotted_of(made))


def _wrapped_by_helper(m: Machine, register: int, site: int) -> tuple[t.Event, int, str] | None:
    """The call of a function or method of this file, or of a loss that is a module, that returns such a leaf."""
    event = _definition(m, register)
    unit = called_unit(m, event) if isinstance(event, t.Call | t.Invoke) else None
    # What has not been run yet is not run for this, out of its order; whoever asks for its summary is run again.
    helper = m.world.machines.get(unit) if unit is not None and m.world.summary(unit) is not None else None
    if helper is None or not isinstance(event, t.Call | t.Invoke):
        return None
    # A method may take what it computes from out of its object.
    taken = [one.register for one in event.arguments] or ([event.base] if isinstance(event, t.Invoke) else [])
    returned = helper.index.of(t.Return)
    ended = [
        _wrapped_behind(helper, one.value, one.site + 1)
        or (_ends_here(helper, helper.value(one.value))[0] and cut_behind(helper, one.value, one.site + 1))
        or _computed_from_leaves(helper, one.value)
        for one in returned
    ]
    made = [cut for cut in ended if cut]
    if not taken or not returned or len(made) < len(ended):
        return None
    last, _, op = made[-1]
    inside.note(m, event.site, Role.CUT, inside.innermost(helper, last.site, Role.CUT, op, given=False))
    return event, taken[0], f"{text_of_call(m, event)}(...)"


def text_of_call(m: Machine, event: t.Call | t.Invoke) -> str:
    """How the function or method of a call is written there."""
    if isinstance(event, t.Invoke):
        return f"{naming.text_of(m, event.base)}.{event.name}"
    return naming.text_of(m, event.function)


def called_unit(m: Machine, event: t.Call | t.Invoke) -> int | None:
    """The unit of this file that a call runs: a function, a method, the `forward` of a module, or the `__call__` of
    anything else."""
    if isinstance(event, t.Invoke):
        owners = m.value(event.base).refs
        return m.world.method_of(m.state.object(owners[0]), event.name) if len(owners) == 1 else None
    function = m.value(event.function)
    if isinstance(function.const, FunctionReference):
        return function.const.unit
    obj = m.state.object(function.refs[0]) if len(function.refs) == 1 else None
    number = m.world.local_class(obj.type) if obj is not None else None
    if obj is None or number is None:
        return None
    return m.world.method(number, "forward" if obj.kind is Kind.MODULE else "__call__")


def _is_bare(m: Machine, register: int) -> bool:
    """Whether a register holds what surely has no graph, or nothing that anybody knows."""
    found = [m.state.object(ref) for ref in m.value(register).refs]
    return not found or any(obj.kind not in TENSORS or obj.requires_grad is Fact.NO for obj in found)


def _may_pass(m: Machine, register: int) -> bool:
    """Whether a register may hold a tensor: what is a list, an array or a number is known to be none."""
    return kind_of(m.value(register), m.state) in (Kind.UNKNOWN, *TENSORS)


def _is_constant(m: Machine, register: int) -> bool:
    """Whether a register holds a number that is written down, or a list of some."""
    value = m.value(register)
    made = m.unit.definitions[register]
    return value.const is not None or isinstance(made, t.Const | t.Make)


def cut_behind(m: Machine, register: int, site: int) -> tuple[t.Event, int, str] | None:
    """The event behind a register that took something with a graph and gave something without: it, what it took, and
    how it is called. Names are followed to all their bindings before `site`."""
    way = WayBack(m, register, MAX_EVENTS)
    for event in way:
        cutting = cuts(m, event)
        if cutting is not None and carries(m, cutting[0]):
            return event, cutting[0], cutting[1]
        helped = cut_elsewhere(m, event)
        if helped is not None:
            return helped
        way.go_on(behind(m, event, site))
    return None


def cut_elsewhere(m: Machine, event: t.Event) -> tuple[t.Event, int, str] | None:
    """The same for a call, of something that cuts off all that it returns."""
    return (
        _cut_by_helper(m, event) or _cut_by_mode(m, event) or _cut_by_forward(m, event) or _cut_while_called(m, event)
    )


def _cut_by_helper(m: Machine, event: t.Event) -> tuple[t.Event, int, str] | None:
    """The same for a call of a function or method of this file, which returns something that surely has no graph."""
    if not isinstance(event, t.Call | t.Invoke) or (
        called_unit(m, event) is None
        if isinstance(event, t.Invoke)
        else not isinstance(m.value(event.function).const, FunctionReference)
    ):
        return None
    called = called_unit(m, event)
    summary = m.world.summary(called) if called is not None else None
    # As it was returned: what requires grad by now may have been switched on since.
    made = [m.state.object(ref) for ref in m.value(event.out).refs] if summary is None else [summary.result]
    if not made or any(obj.kind not in TENSORS or obj.requires_grad is not Fact.NO for obj in made):
        return None
    taken = [order for order, argument in enumerate(event.arguments) if carries(m, argument.register)]
    if not taken:
        return None
    helper = m.world.machines.get(called) if called is not None else None
    cut = _cut_of_arguments(helper, passed_for(helper, event, taken)) if helper is not None else None
    if helper is not None and cut is not None:
        inside.note(m, event.site, Role.CUT, inside.innermost(helper, cut[0], Role.CUT, cut[1], given=False))
    return event, event.arguments[taken[0]].register, f"{text_of_call(m, event)}(...)"


def passed_for(m: Machine, call: t.Call | t.Invoke, orders: list[int]) -> frozenset[str]:
    """The parameters of a unit that some of the arguments of a call of it are passed for."""
    names = [parameter.name for parameter in m.unit.parameters][1 if m.unit.owner >= 0 else 0 :]
    passed = [(call.arguments[order].keyword, order) for order in orders]
    return frozenset(keyword or names[order] for keyword, order in passed if keyword or order < len(names))


def _cut_of_arguments(m: Machine, names: frozenset[str]) -> tuple[int, str] | None:
    """Where a unit first takes the values alone of what it computes from some arguments, and returns what it computes
    from those; and by which operation."""
    returned = m.index.of(t.Return)
    end = returned[-1].site + 1 if returned else 0
    found: list[tuple[int, str]] = []
    way = WayBack(m, t.NO_REGISTER, MAX_EVENTS)
    way.go_on(event.value for event in returned)
    for event in way:
        cutting = cuts(m, event)
        if cutting is not None and is_of_arguments(m, names, cutting[0], end):
            found.append((event.site, cutting[1]))
        elif isinstance(event, t.Call | t.Invoke) and (event.site, Role.CUT) in m.called.inside:
            found.append((event.site, ""))
        else:
            way.go_on(behind(m, event, end))
    return min(found, default=None)


def is_of_arguments(m: Machine, names: frozenset[str], register: int, site: int) -> bool:
    """Whether a value is computed from parameters of some names, with their graph; names are followed to `site`."""
    way = WayBack(m, register, MAX_EVENTS)
    for event in way:
        if isinstance(event, t.Load) and event.name in names:
            return True
        way.go_on(behind(m, event, site) if cuts(m, event) is None else ())
    return False


def behind(m: Machine, event: t.Event, site: int) -> list[int]:
    """What an event has its result from: of a name, what it is bound to before a site."""
    if isinstance(event, t.Load):
        return _bound_before(m, event.name, site) + _appended(m, event.name, site)
    found = list(m.index.collected.get(event.out, ())) if isinstance(event, t.Make) else []
    if isinstance(event, t.Attribute):
        found += _stored_before(m, naming.text_of(m, event.out), site)
    return [*found, *t.operands(event)]


def _network_without_graph(m: Machine, event: t.Call | t.Invoke, refs: Sequence[int]) -> Object | None:
    """The network among some objects, if it may be trained, and what the call has made of it has no graph."""
    networks = [m.state.object(ref) for ref in refs]
    made = [m.state.object(ref) for ref in m.value(event.out).refs]
    trained = len(networks) == 1 and networks[0].kind is Kind.MODULE and networks[0].requires_grad is not Fact.NO
    if not trained or not made or any(obj.kind not in TENSORS or obj.requires_grad is not Fact.NO for obj in made):
        return None
    return networks[0]


def _cut_by_mode(m: Machine, event: t.Event) -> tuple[t.Event, int, str] | None:
    """The same for a network that is called where nothing is recorded, or has a method that switches that off."""
    if not isinstance(event, t.Call | t.Invoke):
        return None
    register = event.function if isinstance(event, t.Call) else event.base
    refs = m.value(register).refs
    if isinstance(event, t.Invoke) and len(refs) == 1 and event.site in m.called.muted:
        # `self.net(x)`: a network in a field.
        field = m.state.refs_of((refs[0], f".{event.name}"))
        if _network_without_graph(m, event, field) is not None:
            return event, event.out, "torch.no_grad()"
    if _network_without_graph(m, event, refs) is None:
        return None
    if isinstance(event, t.Call) or event.name == "forward":
        return (event, register, "torch.no_grad()") if event.site in m.called.muted else None
    called = called_unit(m, event)
    helper = m.world.machines.get(called) if called is not None else None
    return (
        (event, register, f"{text_of_call(m, event)}(...)")
        if helper is not None and helper.state.mode.recording is Fact.NO
        else None
    )


def _cut_by_forward(m: Machine, event: t.Event) -> tuple[t.Event, int, str] | None:
    """The same for a network of this file, whose `forward` cuts off all that it returns from what it has computed."""
    if not isinstance(event, t.Call | t.Invoke) or (isinstance(event, t.Invoke) and event.name != "forward"):
        return None
    register = event.function if isinstance(event, t.Call) else event.base
    network = _network_without_graph(m, event, m.value(register).refs)
    if network is None:
        return None
    called = m.world.method_of(network, "forward")
    helper = m.world.machines.get(called) if called is not None and m.world.is_own(called) else None
    returned = helper.index.of(t.Return) if helper is not None else []
    cuts = [cut_behind(helper, one.value, one.site + 1) for one in returned] if helper is not None else []
    found = [cut for cut in cuts if cut is not None]
    if helper is None or not found or len(found) < len(cuts):
        return None
    last = found[-1]
    inside.note(m, event.site, Role.CUT, inside.innermost(helper, last[0].site, Role.CUT, last[2], given=False))
    return event, register, f"{naming.text_of(m, register)}(...)"


def _cut_while_called(m: Machine, event: t.Event) -> tuple[t.Event, int, str] | None:
    """The same for a function or method of this file that calls a network while nothing is recorded, and returns
    nothing but what it has computed from that."""
    if not isinstance(event, t.Call | t.Invoke):
        return None
    called = called_unit(m, event)
    helper = m.world.machines.get(called) if called is not None and m.world.is_own(called) else None
    made = [m.state.object(ref) for ref in m.value(event.out).refs]
    if helper is None or not made or any(o.kind not in TENSORS or o.requires_grad is not Fact.NO for o in made):
        return None
    cuts = [_muted_behind(helper, one.value, one.site + 1) for one in helper.index.of(t.Return)]
    found = [cut for cut in cuts if cut is not None]
    if not found or len(found) < len(cuts):
        return None
    inside.note(m, event.site, Role.CUT, inside.innermost(helper, found[-1], Role.CUT, "torch.no_grad()", given=False))
    return event, event.out, f"{text_of_call(m, event)}(...)"


def _muted_behind(m: Machine, register: int, site: int) -> int | None:
    """Where a value comes from a network that was called while nothing was recorded."""
    way = WayBack(m, register, MAX_EVENTS)
    for event in way:
        if _cut_by_mode(m, event) is not None:
            return event.site
        way.go_on(behind(m, event, site))
    return None


def _bound_before(m: Machine, name: str, site: int) -> list[int]:
    return [event.value for event in m.index.binds.get(name, ()) if event.site < site]


def _appended(m: Machine, name: str, site: int) -> list[int]:
    """What is put at the end of the list that a name holds."""
    puts = (e for e in m.index.appends if e.site < site)
    return [e.arguments[0].register for e in puts if naming.text_of(m, e.base) == name]


def _stored_before(m: Machine, text: str, site: int) -> list[int]:
    stored = m.index.stores.get(text.rpartition(".")[2], ())
    return [e.value for e in stored if e.site < site and f"{naming.text_of(m, e.base)}.{e.name}" == text]


def cuts(m: Machine, event: t.Event) -> tuple[int, str] | None:
    """What an event takes and gives back without a graph, if it is of the kind that does so."""
    if event.__class__ is t.Attribute:
        return (event.base, ".data") if event.name == "data" else None
    if event.__class__ is t.Operate and event.symbol in _COMPARISONS:
        return next((o for o in event.operands if carries(m, o)), event.operands[0]), event.symbol
    if event.__class__ is not t.Call and event.__class__ is not t.Invoke:
        return None
    dotted = m.dotted_of(event) if event.arguments else ""
    if dotted.startswith("torch.") and dotted.count(".") == 1 and dotted[6:] in _CUTTING_FUNCTIONS:
        return event.arguments[0].register, f"{dotted}()"
    if event.__class__ is t.Invoke and event.name in _CUTTING:
        return event.base, f"{event.name}()"
    if dotted in _NUMBERS or dotted.startswith("math."):
        return event.arguments[0].register, f"{dotted.removeprefix('builtins.')}()"
    return (event.arguments[0].register, dotted) if dotted in _WRAPPING or dotted == _VARIABLE else None


def _leaves_of(m: Machine, refs: Iterable[int], depth: int) -> list[int]:
    """What some values are, or hold if they are containers: `[[c, -s], [s, c]]` holds four."""
    found: list[int] = []
    for ref in refs:
        if m.state.object(ref).kind in CONTAINERS and depth:
            for slot in m.state.slot_names(ref):
                found += _leaves_of(m, m.state.refs_of(slot), depth - 1)
        else:
            found.append(ref)
    return found


def carries(m: Machine, register: int) -> bool:
    """Whether the value of a register, or what it holds, has a graph: surely, or if it is a tensor at all."""
    objects = [m.state.object(ref) for ref in _leaves_of(m, m.value(register).refs, _MAX_NESTING)]
    if objects and all(obj.requires_grad > 0 or (obj.requires_grad is Fact.UNKNOWN and obj.graph) for obj in objects):
        return True
    root = m.value(register).root
    field = isinstance(root, tuple) and m.state.object(root[0]).owner == "self" and root[1].startswith(".")
    return isinstance(root, tuple) and field and m.world.holds_traced(m.state.object(root[0]).type, root[1][1:])
