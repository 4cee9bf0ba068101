"""Conditions: what a test that holds, or does not, says of kinds."""

from __future__ import annotations

from torchcopylint.flow import tape as t
from torchcopylint.flow.autograd import switching
from torchcopylint.flow.library import containers, subscripts
from torchcopylint.flow.model import (
    ARGUMENT,
    CONTAINERS,
    GRADED,
    GRADLESS,
    NO_TENSOR,
    TENSORS,
    TESTED,
    Key,
    Kind,
    Object,
    Sure,
    Value,
)
from torchcopylint.flow.references import ClassReference
from torchcopylint.flow.running.machine import Machine, handles
from torchcopylint.flow.storages import reading, slots, unlike
from torchcopylint.flow.tape import Dotted
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import dtypes, kinds, memory
from torchcopylint.flow.values.state import TRAINING, kind_of
from torchcopylint.knowledge import table

_IS_TENSOR = "torch.is_tensor"


@handles(t.Test)
def _test(m: Machine, event: t.Test) -> None:
    value = m.value(event.register)
    if not value.refs or any(m.state.object(ref).kind not in CONTAINERS for ref in value.refs):
        # Of a container it is asked whether there is anything in it.
        reading.read(m, value, event.site, "test")


@handles(t.Assume)
def _assume(m: Machine, event: t.Assume) -> None:
    assume(m, event.register, event.truth)


def assume(m: Machine, register: int, truth: bool) -> None:
    """A condition holds, or does not."""
    if not 0 <= register < len(m.unit.definitions):
        return
    switching.assume(m, register, truth)
    event = m.unit.definitions[register]
    if event.__class__ is t.Logic:
        if event.symbol == "not":
            assume(m, event.operands[0], not truth)
        elif (event.symbol == "and" and truth) or (event.symbol == "or" and not truth):
            for operand in event.operands:
                assume(m, operand, truth)
        elif event.symbol in ("is", "is not") and len(event.operands) == 2:
            _assume_none(m, event, truth == (event.symbol == "is"))
            _assume_class(m, event, truth == (event.symbol == "is"))
        elif event.symbol in ("in", "not in") and len(event.operands) == 2:
            _assume_class(m, event, truth == (event.symbol == "in"))
    elif event.__class__ is t.Attribute and event.name == "training" and not truth:
        m.state.put(TRAINING, False)
    elif event.__class__ is t.Attribute and event.name == "requires_grad" and not truth:
        _assume_no_grad(m, event.base)
    elif event.__class__ is t.Call:
        function = m.value(event.function)
        if function.const == "builtins.isinstance" and len(event.arguments) == 2:
            _assume_instance(m, event.arguments[0].register, event.arguments[1].register, truth)
        elif function.const == _IS_TENSOR and event.arguments:
            _assume_tensor(m, event.arguments[0].register, truth)
        elif function.const == "builtins.any" and event.arguments and not truth:
            _assume_none_holds(m, event.arguments[0].register)
    elif event.__class__ is t.Invoke:
        base = m.value(event.base)
        if isinstance(base.const, Dotted) and f"{base.const}.{event.name}" == _IS_TENSOR and event.arguments:
            _assume_tensor(m, event.arguments[0].register, truth)
    elif event.__class__ is t.Operate and event.symbol in ("==", "!="):
        if truth == (event.symbol == "=="):
            _assume_same_dtype(m, event)
        elif len(event.operands) == 2:
            unlike.assume(m, event)
        _assume_class(m, event, truth == (event.symbol == "=="))
    elif event.__class__ is t.Load:
        bound = uses.bindings_before(m, event)
        event = m.unit.definitions[bound[0]] if len(bound) == 1 and bound[0] >= 0 else None
    if event.__class__ is t.Invoke and event.name == "is_floating_point":
        _assume_dtype(m, _asked_about(m, event), dtypes.FLOATING if truth else dtypes.INTEGRAL)


def _assume_none_holds(m: Machine, register: int) -> None:
    """`any(t.requires_grad for t in (x, y))` does not hold, nor does any of a list that is written down."""
    made = m.unit.definitions[register] if register >= 0 else None
    collected = [event.item for event in m.index.of(t.Collect) if event.container == register]
    for item in (*collected, *(made.items if isinstance(made, t.Make) else ())):
        assume(m, item, False)


def _assume_tensor(m: Machine, register: int, truth: bool) -> None:
    """`torch.is_tensor(x)` holds, or does not."""
    if truth:
        _become(m, register, Object(Kind.TENSOR, Sure.PROVEN))
    else:
        _become_no_tensor(m, register)


def _assume_class(m: Machine, event: t.Logic | t.Operate, truth: bool) -> None:
    """`type(x) is C`, `type(x) == C` or `type(x) in (C, D)` holds, or does not: it says what `isinstance` would."""
    asked = m.unit.definitions[event.operands[0]] if event.operands[0] >= 0 else None
    if asked.__class__ is t.Call and len(asked.arguments) == 1 and m.value(asked.function).const == "builtins.type":
        _assume_instance(m, asked.arguments[0].register, event.operands[1], truth)


def _assume_no_grad(m: Machine, register: int) -> None:
    """Here, a value requires no grad. Where paths meet again the flag goes, and what was known before holds."""
    for ref in m.value(register).refs:
        obj = m.state.object(ref)
        if obj.kind in TENSORS:
            m.state.set_object(ref, obj._replace(flags=obj.flags | {GRADLESS}))


def _asked_about(m: Machine, event: t.Invoke) -> Value:
    """What `x.is_floating_point()` or `torch.is_floating_point(x)` is about."""
    base = m.value(event.base)
    return m.value(event.arguments[0].register) if isinstance(base.const, Dotted) and event.arguments else base


def _assume_same_dtype(m: Machine, event: t.Operate) -> None:
    """`x.dtype == torch.uint8` holds."""
    asked, named = (m.unit.definitions[register] for register in event.operands)
    if isinstance(asked, t.Attribute) and asked.name == "dtype" and named is not None:
        _assume_dtype(m, m.value(asked.base), dtypes.of_constant(m.value(event.operands[1])))


def _assume_dtype(m: Machine, asked: Value, dtype: str) -> None:
    for ref in asked.refs:
        obj = m.state.object(ref)
        if not obj.dtype or (obj.dtype in (dtypes.FLOATING, dtypes.INTEGRAL) and dtype):
            m.state.set_object(ref, obj._replace(dtype=dtype))


def _assume_none(m: Machine, event: t.Logic, is_none: bool) -> None:
    other = m.value(event.operands[1])
    if other.kind is not Kind.NONE or other.refs:
        return
    source = m.unit.definitions[event.operands[0]]
    if isinstance(source, t.Attribute) and source.name == "grad" and not is_none:
        for ref in m.value(source.base).refs:
            obj = m.state.object(ref)
            m.state.set_object(ref, obj._replace(flags=obj.flags | {GRADED}))
    elif isinstance(source, t.Load) and is_none:
        cell = m.state.cell(source.name)
        if cell is not None and cell.refs and not m.first_turn and _is_bound_by_first_turn(m, source.name, event.site):
            m.state.die()
        elif cell is not None:
            m.state.put_cell(source.name, cell._replace(refs=(), kind=Kind.NONE, const=None, marks=frozenset()))


def _is_bound_by_first_turn(m: Machine, name: str, site: int) -> bool:
    """Whether a loop asks in each turn if a name is `None`, binds it to something where it is, and never to `None`.

    From its second turn on, `if features is None:` does not hold.
    """
    around = uses.loops_around(m, site)
    loop = next((one for one in m.index.of(t.Loop) if around and one.site == around[-1]), None)
    if loop is None or not any(event.site == site for event in loop.body):
        return False
    binds = [use for use in uses.of_name(m, name) if not use.loads and around[-1] in use.loops]
    made = [_bound(m, use.register) for use in binds]
    asked = any(_binds_where_none(m, event, name, site) for event in loop.body if event.__class__ is t.Branch)
    return asked and not any(one is None or (isinstance(one, t.Const) and one.value is None) for one in made)


def _bound(m: Machine, register: int) -> t.Event | None:
    """What makes the value of a register; of a tuple that is written out and taken apart, its item."""
    made = m.unit.definitions[register] if register >= 0 else None
    if isinstance(made, t.Unpack):
        whole = m.unit.definitions[made.value] if made.value >= 0 else None
        if isinstance(whole, t.Make) and 0 <= made.position < len(whole.items) and not any(whole.stars):
            return _bound(m, whole.items[made.position])
    return made


def _binds_where_none(m: Machine, branch: t.Branch, name: str, site: int) -> bool:
    """Whether an arm of a branch, which starts from the condition at a site, binds a name in any case."""
    for arm in branch.arms:
        head = arm[0] if arm else None
        made = m.unit.definitions[head.register] if isinstance(head, t.Assume) and head.truth else None
        if made is not None and made.site == site:
            return any(isinstance(event, t.Bind) and event.name == name for event in arm)
    return False


def _assume_instance(m: Machine, subject: int, classes: int, truth: bool) -> None:
    named = m.value(classes)
    options = [named]
    if named.refs and kind_of(named, m.state) is Kind.TUPLE:
        options = [slots.slot_value(m, slot) for slot in m.state.slot_names(named.refs[0])]
    objects = [instance_of(m, option) for option in options]
    found = {obj.kind for obj in objects if obj is not None}
    if not truth:
        if Kind.TENSOR in found:
            _become_no_tensor(m, subject)
        elif None not in objects:
            _place_of(m, subject)
        return
    if None not in objects and not found & TENSORS:
        # Tests are right more often than annotations are.
        _become_no_tensor(m, subject)
    if len(found) == 1 and None not in objects and objects[0] is not None:
        _become(m, subject, objects[0])
    elif objects and all(obj is not None and obj.kind not in TENSORS for obj in objects):
        _become(m, subject, Object(Kind.OTHER, Sure.PROVEN))
    elif found and None not in objects:
        _become_one_of(m, subject, frozenset(found))


def instance_of(m: Machine, option: Value) -> Object | None:
    """What `isinstance(x, option)` says of `x`."""
    if isinstance(option.const, ClassReference):
        return m.world.instance(option.const.number)
    if isinstance(option.const, Dotted):
        name = option.const.removeprefix("builtins.")
        kind = kinds.ANNOTATIONS.get(table.canonical(name))
        if kind is not None:
            return kinds.of_kind(kind)
        return kinds.from_class_name(m, name) or Object(Kind.OTHER, Sure.PROVEN)
    return None


def _become(m: Machine, register: int, obj: Object) -> None:
    """A value is known to be of a kind where its own kind was not known, or was only guessed."""
    if obj.kind is Kind.MODULE and obj.type and _is_told_apart(m, register, obj):
        return
    for ref in m.value(register).refs:
        before = m.state.object(ref)
        if before.kind is Kind.UNKNOWN or before.sure < obj.sure:
            kind = before.kind if before.kind is obj.kind else obj.kind
            m.state.set_object(ref, before._replace(kind=kind, sure=obj.sure, type=obj.type or before.type))
        elif before.kind is obj.kind and not before.type:
            m.state.set_object(ref, before._replace(type=obj.type))
        if obj.kind in TENSORS:
            tested = m.state.object(ref)
            m.state.set_object(ref, tested._replace(flags=tested.flags | {TESTED}))


def _is_told_apart(m: Machine, register: int, obj: Object) -> bool:
    """Whether a loop goes through modules of any class, and takes this one for one of the class that it was asked for.

    It is an object of its own from here on: what the arm keeps of it are modules of that class, whatever the others
    are that the loop comes upon. `[layer for layer in net.modules() if isinstance(layer, nn.Linear)]`.
    """
    event, value = m.unit.definitions[register], m.value(register)
    if not isinstance(event, t.Load) or len(value.refs) != 1 or not uses.is_of_each_turn(m, register):
        return False
    before, cell = m.state.object(value.refs[0]), m.state.cell(event.name)
    if before.kind not in (Kind.MODULE, Kind.UNKNOWN) or before.type or cell is None or cell.refs != value.refs:
        return False
    made = memory.beside(m, value.refs[0], event.site, before._replace(kind=obj.kind, sure=obj.sure, type=obj.type))
    m.state.put_cell(event.name, cell._replace(refs=made.refs, kind=obj.kind))
    return True


def _become_one_of(m: Machine, register: int, options: frozenset[Kind]) -> None:
    """A value is of one of several kinds, so that a guess at another one was wrong."""
    for ref in m.value(register).refs:
        before = m.state.object(ref)
        if before.kind not in options and before.sure < Sure.PROVEN:
            tensors = options <= TENSORS
            kind, sure = (Kind.TENSOR, Sure.PROVEN) if tensors else (Kind.UNKNOWN, before.sure)
            m.state.set_object(ref, before._replace(kind=kind, sure=sure))


def _become_no_tensor(m: Machine, register: int) -> None:
    """Here, a value is no tensor. Where paths meet again the flag goes: it holds on one of them only.

    A name, or an element of a container, that is known to hold a tensor holds something else here.
    """
    value, place = m.value(register), _place_of(m, register)
    cell = m.state.cell(place) if place is not None else None
    if place is not None and cell is not None and cell.refs == value.refs:
        held = {ref: m.state.object(ref) for ref in value.refs}
        others = tuple(ref for ref, obj in held.items() if obj.kind not in TENSORS or obj.sure < Sure.PROVEN)
        if others and others != value.refs:
            value = value._replace(refs=others)
            m.state.put_cell(place, cell._replace(refs=others))
        elif held and not others:
            known = held[value.refs[0]]
            made = m.unit.definitions[register]
            site = made.site if made is not None else -1
            other = memory.fresh(m, site, Object(owner=known.owner, text=known.text), "no tensor")
            # Nobody has put it into the container here.
            memory.bind(m, place, other, site if isinstance(place, str) else -1)
            return
    for ref in value.refs:
        obj = m.state.object(ref)
        if obj.owner == ARGUMENT and value.root == obj.text:
            m.results.tested.add(obj.text)
        if NO_TENSOR not in obj.flags:
            m.state.set_object(ref, obj._replace(flags=obj.flags | {NO_TENSOR}))


def _place_of(m: Machine, register: int) -> Key | None:
    """The name or the element of a container that a value was loaded from, if it is there to be found again.

    An element that is tested is this one from here on, on either side of the test: `isinstance(states[0], tuple)`.
    """
    event, value = m.unit.definitions[register], m.value(register)
    if isinstance(event, t.Load):
        return event.name
    if not isinstance(event, t.Item) or not all(m.state.object(ref).kind in TENSORS for ref in value.refs):
        return None
    holders, key = m.value(event.base).refs, subscripts.constant(m, event.subscript)
    if key is None or len(holders) != 1 or m.state.object(holders[0]).kind not in _WITH_PLACES or not value.refs:
        return None
    key = containers.position(m, holders[0], key)
    if key is None:
        return None
    slot = (holders[0], f"[{key!r}]")
    if m.state.cell(slot) is None:
        memory.bind(m, slot, value._replace(root=None), -1)
    return slot


_WITH_PLACES = frozenset({Kind.TUPLE, Kind.LIST, Kind.DICT})
