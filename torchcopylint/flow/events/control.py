"""What is left of a tape: `with`, and results that are dropped, returned or yielded."""

from __future__ import annotations

from torchcopylint.flow import tape as t
from torchcopylint.flow.autograd import autocasting, grads, needed
from torchcopylint.flow.events import methods, timed
from torchcopylint.flow.facts import Discarded, GradModeUnused
from torchcopylint.flow.graphs import copied_terms, terms
from torchcopylint.flow.interprocedural import asked_by_turns
from torchcopylint.flow.library.results import condition
from torchcopylint.flow.model import (
    ANY_ELEMENT,
    CONTAINERS,
    GENERATOR,
    LOCAL,
    TENSORS,
    UNKNOWN,
    Fact,
    How,
    Kind,
    Sure,
    Value,
)
from torchcopylint.flow.networks import modules
from torchcopylint.flow.program import ownership, training_returns
from torchcopylint.flow.running.machine import Machine, handles
from torchcopylint.flow.storages import collecting, reading, slots
from torchcopylint.flow.tape import Dotted
from torchcopylint.flow.tapes import batch_parts, uses
from torchcopylint.flow.values import dtypes, imports, memory, naming
from torchcopylint.flow.values.modes import GRAD_MODES, MODES_BY_NAME
from torchcopylint.flow.values.sites import Arguments
from torchcopylint.flow.values.state import MODE, Mode, kind_of
from torchcopylint.knowledge import table

# -- with


@handles(t.Enter)
def _enter(m: Machine, event: t.Enter) -> None:
    manager = m.value(event.manager)
    # `set_grad_enabled` has taken effect when it was called.
    m.blocks.entered[event.manager] = m.blocks.before.get(event.manager, m.state.mode)
    m.blocks.guards += raises_on_purpose(m, event.manager)
    m.blocks.on_purpose += raises_on_purpose(m, event.manager)
    m.blocks.failing += _expects_failure(m, event.manager)
    m.blocks.casting += autocasting.casts(m, event.manager)
    if manager.kind is Kind.MODE and isinstance(manager.const, Mode):
        if manager.const.recording is Fact.NO:
            m.blocks.has_no_grad = True
        m.state.put(MODE, manager.const)
    elif isinstance(manager.const, Dotted) and table.canonical(manager.const) in GRAD_MODES:
        m.fact(GradModeUnused(event.site, naming.text_of(m, event.manager), "with"))
        # The statement raises; what stands in it is judged as it is meant.
        m.state.put(MODE, GRAD_MODES[table.canonical(manager.const)])
    elif _is_called_like_a_mode(m, event.manager):
        # Somebody's own, which may do what torch's does, or switch off something else.
        m.state.put(MODE, Mode(Fact.UNKNOWN))
    entered = _run_own(m, event.manager, "__enter__", event.site)
    m.set(event.out, entered if entered is not None else _entered(m, manager))


def _run_own(m: Machine, register: int, name: str, site: int) -> Value | None:
    """What a class of the file does where its object is entered or left: `with Noisy(model):`. What it returns that is
    known, else nothing."""
    manager = m.value(register)
    obj = m.state.object(manager.refs[0]) if len(manager.refs) == 1 else None
    if obj is None or obj.kind is not Kind.INSTANCE or m.world.method_of(obj, name) is None:
        return None
    left = [UNKNOWN] * (3 if name == "__exit__" else 0)
    result = modules.call_instance(m, manager, Arguments([manager, *left], {}), site, naming.text_of(m, register), name)
    known = any(m.state.object(ref).kind is not Kind.UNKNOWN for ref in result.refs)
    return result if known else None


def _entered(m: Machine, manager: Value) -> Value:
    """What `as` binds: what a generator hands out, of one that is a context manager, else the manager itself."""
    if len(manager.refs) != 1 or m.state.object(manager.refs[0]).type != GENERATOR:
        return manager
    return slots.slot_value(m, (manager.refs[0], ANY_ELEMENT))


def _is_called_like_a_mode(m: Machine, manager: int) -> bool:
    made = m.unit.definitions[manager]
    if isinstance(made, t.Call):
        made = m.unit.definitions[made.function]
    return isinstance(made, t.Invoke | t.Load | t.Attribute) and made.name in MODES_BY_NAME


@handles(t.Exit)
def _exit(m: Machine, event: t.Exit) -> None:
    m.blocks.guards -= raises_on_purpose(m, event.manager)
    m.blocks.on_purpose -= raises_on_purpose(m, event.manager)
    m.blocks.failing -= _expects_failure(m, event.manager)
    m.blocks.casting -= autocasting.casts(m, event.manager)
    _run_own(m, event.manager, "__exit__", event.site)
    if event.manager in m.blocks.entered:
        m.state.put(MODE, m.blocks.entered[event.manager])


def raises_on_purpose(m: Machine, manager: int) -> int:
    """1 for `pytest.raises(...)` and its like, whose body is there to fail, else 0."""
    made = m.unit.definitions[manager]
    if isinstance(made, t.Invoke):
        return int(made.name in ("raises", "warns", "assertRaises", "assertRaisesRegex", "assertWarns", "suppress"))
    return 0


def _expects_failure(m: Machine, manager: int) -> int:
    """1 for `pytest.raises(...)` and its like, in whose body something surely fails, else 0."""
    made = m.unit.definitions[manager]
    return int(isinstance(made, t.Invoke) and made.name in ("raises", "assertRaises", "assertRaisesRegex"))


# -- results


_MAKERS = frozenset(f"torch.{name}" for name in ("empty", "zeros", "ones", "full", "rand", "randn", "eye", "arange"))


def _of_constants(m: Machine, made: t.Event | None) -> bool:
    """Whether a call computes something from constants alone: nobody wants that, it warms up a device or a cache."""
    while isinstance(made, t.Invoke | t.Call):
        if m.dotted_of(made) in _MAKERS:
            return True
        registers = [argument.register for argument in made.arguments]
        if isinstance(made, t.Invoke):
            registers.insert(0, made.base)
        tensors = [register for register in registers if m.value(register).refs]
        if not tensors:
            return True
        if len(tensors) > 1:
            return False
        made = m.unit.definitions[tensors[0]]
    return False


def _of_a_result(m: Machine, made: t.Event | None) -> bool:
    """Whether methods are called on what another call has made, which has no name: it was that call's work that counts.

    Whoever drops `net(x).detach()` does not think that it has changed something.
    """
    while isinstance(made, t.Invoke):
        base, value = m.unit.definitions[made.base], m.value(made.base)
        if isinstance(base, t.Call | t.Invoke) and made.base not in m.called.pure:
            if m.dotted_of(base).startswith("torch."):
                # Nobody joins tensors for the work: the result was to go somewhere.
                return False
            objects = [m.state.object(ref) for ref in value.refs]
            return all(obj.site == base.site and all(s.how is How.OWN for s in obj.shares) for obj in objects)
        made = base
    return False


def _shows_values(m: Machine) -> bool:
    """Whether the body of a file says fields, items, sums, sizes and new tensors to nobody: it was a notebook, whose
    cells showed them, or is a lesson that is read and not run."""
    idle = t.Attribute | t.Item | t.Operate
    dropped = [m.unit.definitions[event.value] for event in m.index.of(t.Discard)] if m.unit.kind == "module" else []
    return any(isinstance(made, idle) or _makes_for_nobody(m, made) for made in dropped)


_DRAWN = frozenset({"multinomial", "bernoulli", "poisson", "normal", "rand", "randn", "randint", "randperm"})
_SHOWN = frozenset({"tensor", "zeros", "ones", "eye", "full", "arange", "linspace", "logspace"}) | _DRAWN
_SAID = frozenset({"size", "dim", "numel", "nelement", "ndimension"})
_BY_NUMPY = "sum mean std var min max exp log sqrt abs sin cos tanh dot matmul argmax argmin unique cumsum where shape"
"""Functions of NumPy that compute something and leave what they are given as it is."""
_COMPUTED_BY_NUMPY = frozenset(_BY_NUMPY.split())


def _makes_for_nobody(m: Machine, made: t.Event | None) -> bool:
    """Whether a call makes a tensor of numbers or draws them, asks one for its size, or has NumPy compute something:
    that alone, as a statement, is there to be seen."""
    if isinstance(made, t.Invoke) and made.name in _SAID and not made.arguments:
        return bool(m.value(made.base).refs)
    package, _, name = imports.ahead(m, made).rpartition(".") if isinstance(made, t.Call | t.Invoke) else ("", "", "")
    return (package == "torch" and name in _SHOWN) or (package == "numpy" and name in _COMPUTED_BY_NUMPY)


_COMPUTING = frozenset({"+", "-", "*", "/", "//", "%", "**", "@"})
_SENDING = frozenset({"to", "cuda", "cpu"})


def _note_arithmetic(m: Machine, event: t.Discard, made: t.Operate) -> None:
    """`old * decay + new * (1 - decay)` as a statement computes an average for nobody.

    The first tensor has to come from elsewhere: to compute something with tensors of its own is how a test asks whether
    that can be computed.
    """
    for register in _operands(m, made):
        value = m.value(register)
        objects = [m.state.object(ref) for ref in value.refs]
        if objects and all(obj.kind in TENSORS for obj in objects):
            shares = [share for obj in objects for share in obj.shares]
            owners = {m.state.object(share.storage).owner for share in shares} or {obj.owner for obj in objects}
            if not owners & {"", LOCAL}:
                sure = min(obj.sure for obj in objects)
                name = naming.text_of(m, register)
                m.fact(Discarded(event.site, name, made.symbol, False, m.blocks.guards > 0, sure, operator=True))
            return


def _operands(m: Machine, made: t.Operate) -> list[int]:
    """The registers that arithmetic is made of, from left to right."""
    found: list[int] = []
    pending = list(reversed(made.operands))
    while pending:
        register = pending.pop()
        inner = m.unit.definitions[register] if register >= 0 else None
        if isinstance(inner, t.Operate):
            pending += reversed(inner.operands)
        elif register >= 0:
            found.append(register)
    return found


def _is_only_look(m: Machine, made: t.Event | None) -> bool:
    """Whether a method is called on what this unit made, under a name that nothing else looks at: to warm something up.

    Whoever thinks that a call changes something wants to see that later.
    """
    base = m.unit.definitions[made.base] if isinstance(made, t.Invoke) else None
    if not isinstance(made, t.Invoke) or not isinstance(base, t.Load) or m.unit.kind == "module":
        return False
    if not m.value(made.base).refs:
        return False
    loads = {use.register for use in uses.of_name(m, base.name) if use.loads}
    own = all(m.state.object(ref).owner in ("", LOCAL) for ref in m.value(made.base).refs)
    held = all(share.how is How.OWN for ref in m.value(made.base).refs for share in m.state.object(ref).shares)
    holders = {(key, ref) for ref in m.value(made.base).refs for key in m.state.holders.get(ref, ())}
    others = [key for key, ref in holders if key != base.name and ref in m.state.refs_of(key)]
    return own and held and not others and loads <= {made.base, *(argument.register for argument in made.arguments)}


def _moves_a_slice(m: Machine, made: t.Event | None) -> bool:
    """Whether a slice is moved or converted (`x[:1].to(device)`): no part of a tensor has a device of its own, so that
    nobody thinks it stays there. It is tried, to see whether it raises."""
    base = m.unit.definitions[made.base] if isinstance(made, t.Invoke) and made.name in _SENDING else None
    return isinstance(base, t.Item) and any(isinstance(part, t.Slice) for part in base.subscript)


def _converts_nothing(m: Machine, made: t.Event | None, value: Value) -> bool:
    """Whether a conversion surely hands back what it was given: `x.float()` of floats. Nobody loses anything by it."""
    if not isinstance(made, t.Invoke) or not value.refs:
        return False
    given = m.value(made.base).refs
    if value.refs == given:
        return True
    objects = [m.state.object(ref) for ref in value.refs]
    before = {m.state.object(ref).dtype for ref in given}
    fits = len(before) == 1 and all(dtypes.same(next(iter(before)), obj.dtype) is Fact.YES for obj in objects)
    shares = [share for obj in objects for share in obj.shares if share.how is How.CONDITIONAL and share.of in given]
    same = ((s.sure and not s.when) or (fits and s.when == condition("dtype")) for s in shares)
    return bool(shares) and all(same)


_MOVING = frozenset({"to", "cuda", "cpu", "float", "double", "half"})
_OF_DATA = frozenset({"torch.tensor", "torch.as_tensor", "torch.from_numpy"})


def _wakes_device(m: Machine, made: t.Event | None) -> bool:
    """Whether what is made right there is moved, and has no name: nothing was to change, but a device may have been
    waited for: `torch.zeros(1).cuda()`."""
    moved = False
    while isinstance(made, t.Invoke) and made.name in _MOVING:
        made, moved = m.unit.definitions[made.base], True
    return moved and isinstance(made, t.Call | t.Invoke) and m.dotted_of(made) in _MAKERS | _OF_DATA


def _is_repeated(m: Machine, event: t.Discard) -> bool:
    """Whether a loop does nothing else, and the same in each turn: to time it, or to warm something up."""
    for loop in m.index.of(t.Loop) if uses.loops_around(m, event.site) else ():
        if loop.body and loop.body[-1] == event:
            bound = {one.name for one in loop.body if isinstance(one, t.Bind)}
            loaded = {one.name for one in loop.body if isinstance(one, t.Load)}
            calls = [one for one in loop.body if isinstance(one, t.Call | t.Invoke)]
            return not bound & loaded and len(calls) <= 1 and not any(t.inner_tapes(one) for one in loop.body)
    return False


def _collected(m: Machine, register: int) -> int:
    """What a list comprehension that is a statement collects, if it does so in one place; else the value itself."""
    if m.unit.definitions[register].__class__ is not t.Make:
        return register
    items = [one.item for one in m.index.of(t.Collect) if one.container == register]
    return items[0] if len(items) == 1 and items[0] in m.called.pure else register


@handles(t.Discard)
def _discard(m: Machine, event: t.Discard) -> None:
    value = m.value(event.value)
    made = m.unit.definitions[event.value]
    if value.kind is Kind.MODE and isinstance(made, t.Invoke | t.Call) and isinstance(value.const, Mode):
        if event.value in m.blocks.factories:
            m.fact(GradModeUnused(event.site, naming.text_of(m, event.value).removesuffix("()"), "statement"))
        return
    if (made.__class__ is t.Invoke or made.__class__ is t.Call) and made.site in m.writes:
        m.writes[made.site] = m.writes[made.site]._replace(dropped=True)
    computes = made.__class__ is t.Operate and made.symbol in _COMPUTING and len(made.operands) == 2
    register = _collected(m, event.value)
    if register != event.value:
        made, value = m.unit.definitions[register], m.value(register)
    if not (computes or register in m.called.pure) or _is_repeated(m, event) or _shows_values(m):
        return
    if timed.is_timed(m, event) or timed.warms_up(m, event):
        return
    if isinstance(made, t.Operate):
        _note_arithmetic(m, event, made)
        return
    if _converts_nothing(m, made, value) or _wakes_device(m, made) or _moves_a_slice(m, made):
        return
    if not _of_constants(m, made) and not _of_a_result(m, made) and not _is_only_look(m, made):
        name, op, method, sure = m.called.pure[register]
        if sure < Sure.LIKELY and op in _SENDING and isinstance(made, t.Invoke) and batch_parts.is_part(m, made.base):
            sure = Sure.LIKELY
        m.fact(Discarded(event.site, name, op, method, m.blocks.guards > 0, sure))
        if sure is Sure.NOT and isinstance(made, t.Invoke):
            # What is done with it later may show what it is.
            for ref in m.value(made.base).refs:
                m.shown.dropped.setdefault(ref, []).append(event.site)


@handles(t.Return)
def _return(m: Machine, event: t.Return) -> None:
    if event.value != t.NO_REGISTER:
        value = m.value(event.value)
        if m.world.runs_over_returned(m.unit):
            _run_over(m, value, event)
        reading.read(m, value, event.site, "return")
        needed.by_backward(m, value, event.site, "return")
        for held in (value, *_elements(m, value)):
            ownership.note_used(m, held, event.site, "")
        for held in _elements(m, value):
            needed.by_backward(m, held, event.site, "return")
        slots.field_read(m, value.root, event.site, "return")
        if value.refs or value.kind is not Kind.NONE:
            m.results.returned.append(value)
    if event.manager in m.blocks.entered:
        m.state.put(MODE, m.blocks.entered[event.manager])
    m.leave()


def _run_over(m: Machine, value: Value, event: t.Return) -> None:
    """Whoever calls the method runs backward over what it returns, or over the loss in the dictionary that it is."""
    register, name = event.value, naming.text_of(m, event.value)
    if kind_of(value, m.state) is Kind.DICT:
        cell = m.state.cell((value.refs[0], f"[{training_returns.LOSS!r}]"))
        register, name = _at_key(m, register, training_returns.LOSS), training_returns.LOSS
        value = Value(cell.refs, cell.kind) if cell is not None else UNKNOWN
    elif m.unit.name == training_returns.COMPUTED or training_returns.by_base(m.world, m.unit):
        register = _first_of_pair(m, register)
        name, value = naming.text_of(m, register), m.value(register)
    kind = kind_of(value, m.state)
    if not value.refs or kind not in (*TENSORS, Kind.UNKNOWN):
        return
    m.results.registers[event.site] = register
    if kind is Kind.UNKNOWN:
        grads.backward(m, value, event.site, Arguments([value], {}), name)
        copied_terms.note(m, register, event.site)
        terms.note(m, register, event.site)
    else:
        methods.run_backward(m, Arguments([value], {}), register, event.site, name)


def _first_of_pair(m: Machine, register: int) -> int:
    """The loss in `(loss, outputs) if return_outputs else loss`, or in either of them."""
    made = m.unit.definitions[register]
    if isinstance(made, t.Logic) and made.operands:
        register = made.operands[-1]
        made = m.unit.definitions[register]
    return made.items[0] if isinstance(made, t.Make) and made.kind == "tuple" and made.items else register


def _at_key(m: Machine, register: int, key: str) -> int:
    """The register of what stands at a key of a dictionary that is written out."""
    made = m.unit.definitions[register]
    for at, item in zip(made.keys, made.items, strict=True) if isinstance(made, t.Make) else ():
        named = m.unit.definitions[at] if at >= 0 else None
        if isinstance(named, t.Const) and named.value == key:
            return item
    return t.NO_REGISTER


def _elements(m: Machine, value: Value, depth: int = 2) -> list[Value]:
    """What stands in a container, and in the tuples that stand in it: `(z, mean), state`."""
    found = []
    for ref in value.refs if depth else ():
        if m.state.object(ref).kind in CONTAINERS:
            for slot in m.state.slot_names(ref):
                cell = m.state.cell(slot)
                if cell is not None:
                    held = Value(cell.refs, cell.kind)
                    packed = all(m.state.object(inner).kind is Kind.TUPLE for inner in held.refs)
                    found += [held, *(_elements(m, held, depth - 1) if packed else ())]
    return found


@handles(t.Yield)
def _yield(m: Machine, event: t.Yield) -> None:
    if event.value != t.NO_REGISTER:
        value = m.value(event.value)
        reading.read(m, value, event.site, "yield")
        if value.refs and not asked_by_turns.is_asked(m):
            collecting.hand_out(m, value, event.site)
        m.results.yielded[event.site] = value
    m.set(event.out, memory.unknown(m, event.site, "..."))


@handles(t.Raise)
def _raise(m: Machine, event: t.Raise) -> None:
    m.state.die()
