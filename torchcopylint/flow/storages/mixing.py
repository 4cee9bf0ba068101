"""Two modules of which one takes over what the other has, parameter by parameter: `p.lerp_(q, 0.1)`."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import FieldsPaired
from torchcopylint.flow.model import Kind, Value
from torchcopylint.flow.storages import aliasing
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchcopylint.flow.files.world import World
    from torchcopylint.flow.running.machine import Machine

Whole: TypeAlias = t.Invoke
"""A call that gives all that a module has: `model.state_dict()`."""
_WHOLES = frozenset({"parameters", "named_parameters", "state_dict", "buffers", "named_buffers"})
_PASSING = frozenset({"items", "values", "get", "copy", "detach", "clone", "to", "cpu", "cuda", "float", "type_as"})
_REPLACING = frozenset({"copy_", "set_", "fill_"})
_TAKING = frozenset({"dict", "list", "tuple", "OrderedDict", "reversed", "sorted", "iter", "next"})
MAX_STEPS = 40
"""So many events are gone through to find where a value comes from."""


def note(m: Machine) -> None:
    """Once a unit has been run: the pairs of modules of which one writes what it has by what the other has."""
    wholes = [event for event in m.index.of(t.Invoke) if event.name in _WHOLES]
    if len(wholes) < 2:
        return
    for site, target, sources, goes_on in _writes(m):
        others = dict.fromkeys(whole for source in sources for whole in leaves(m, source))
        for one in origins(m, target):
            form = aliasing.AVERAGE if goes_on or one in others else "mix"
            for other in others:
                if one.site != other.site:
                    _pair(m, one, other, site, form)


def _writes(m: Machine) -> Iterator[tuple[int, int, tuple[int, ...], bool]]:
    """Where what is written in place, what is put into it, and whether the old value surely counts."""
    for event in m.index.of(t.Invoke):
        if event.name.endswith("_") and not event.name.endswith("__"):
            given = tuple(argument.register for argument in event.arguments)
            yield event.site, event.base, given, event.name not in _REPLACING
    for augment in m.index.of(t.Augment):
        yield augment.site, augment.target, (augment.value,), True
    for stored in m.index.of(t.StoreAttribute):
        if stored.name == "data":
            yield stored.site, stored.base, (stored.value,), False


def _pair(m: Machine, one: Whole, other: Whole, site: int, form: str) -> None:
    values = m.value(one.base), m.value(other.base)
    modules = _modules(m, values[0]), _modules(m, values[1])
    if all(modules):
        aliasing.note_met(m, *values, modules, site, form)


def _modules(m: Machine, value: Value) -> frozenset[int]:
    """What is asked for all its parameters, by name, is a module."""
    known = all(m.state.object(ref).kind in (Kind.MODULE, Kind.UNKNOWN) and not ref & 1 for ref in value.refs)
    return frozenset(value.refs) if known else frozenset()


def leaves(m: Machine, register: int, depth: int = 5) -> list[Whole]:
    """Of which modules the terms of an expression are parts."""
    event = m.unit.definitions[register] if register >= 0 else None
    if isinstance(event, t.Operate | t.Call) and depth:
        return [whole for operand in t.operands(event) for whole in leaves(m, operand, depth - 1)]
    if isinstance(event, t.Invoke) and depth and event.name not in (*_WHOLES, *_PASSING):
        return [whole for operand in t.operands(event) for whole in leaves(m, operand, depth - 1)]
    return origins(m, register)


def origins(m: Machine, register: int) -> list[Whole]:
    """The calls from whose results the value of a register is taken: by a key, in a loop, under another name."""
    found: list[Whole] = []
    pending: list[tuple[int, tuple[int, ...]]] = [(register, ())]
    for _ in range(MAX_STEPS):
        if not pending:
            break
        current, positions = pending.pop()
        event = m.unit.definitions[current] if current >= 0 else None
        match event:
            case t.Load():
                pending += [(bound, positions) for bound in uses.bindings_before(m, event)]
            case t.Item():
                pending.append((event.base, positions))
            case t.Augment():
                pending.append((event.target, positions))
            case t.Attribute() if event.name == "data":
                pending.append((event.base, positions))
            case t.Make() if positions and not any(event.stars) and 0 <= positions[-1] < len(event.items):
                pending.append((event.items[positions[-1]], positions[:-1]))
            case t.Unpack():
                pending.append((event.value, (*positions, event.position)))
            case t.Iterate():
                pending += _elements(m, event.iterable, positions)
            case t.Invoke() if event.name in _WHOLES:
                found.append(event)
            case t.Invoke() if event.name in _PASSING or event.name.endswith("_"):
                pending.append((event.base, positions))
            case t.Call() if event.arguments and naming.text_of(m, event.function).rpartition(".")[2] in _TAKING:
                pending.append((event.arguments[0].register, positions))
    return found


def _elements(m: Machine, iterable: int, positions: tuple[int, ...]) -> list[tuple[int, tuple[int, ...]]]:
    """Where the element of what a loop goes through comes from, of which the part at some positions is taken."""
    event = m.unit.definitions[iterable] if iterable >= 0 else None
    text = naming.text_of(m, event.function) if isinstance(event, t.Call) else ""
    if isinstance(event, t.Call) and text in ("zip", "enumerate"):
        place = positions[-1] if positions else -1
        if text == "enumerate":
            place = 0 if place == 1 else -1
        if not 0 <= place < len(event.arguments):
            return []
        return _elements(m, event.arguments[place].register, positions[:-1])
    if (
        isinstance(event, t.Invoke)
        and event.name in ("items", "named_parameters", "named_buffers")
        and positions[-1:] == (0,)
    ):
        # The name of a parameter.
        return []
    return [(iterable, ())]


def by_constructor(world: World) -> set[int]:
    """The constructors that keep two arguments in fields which meet in a method; their summaries say so from now on.

    Returns the units that make instances of these classes.
    """
    makers: set[int] = set()
    for info in world.program.classes:
        initial = info.methods.get("__init__", -1)
        summary = world.summary(initial) if initial in world.machines else None
        if summary is None:
            continue
        kept = _fields_of_parameters(world.machines[initial])
        machines = [world.machines[number] for number in info.methods.values() if number in world.machines]
        met = [fact for m in machines for facts in m.facts.values() for fact in facts if isinstance(fact, FieldsPaired)]
        given = [(kept.get(f.field), kept.get(f.other), f.form) for f in met if not f.handed]
        # What the constructor itself puts into both fields is no matter of who makes an instance.
        pairs = {(one, other, form) for one, other, form in given if one and other and one != other}
        if not pairs <= set(summary.pairs):
            world.machines[initial].fields.pairs |= pairs
            world.tell(initial, summary._replace(pairs=tuple(sorted(pairs | set(summary.pairs)))))
            loads = {unit.number for unit in world.program.units for e in unit.definitions if _loads(e, info.name)}
            makers |= loads & world.machines.keys() - {0}
    return makers


def _loads(event: t.Event | None, name: str) -> bool:
    return isinstance(event, t.Load) and event.name == name


def _fields_of_parameters(m: Machine) -> dict[str, str]:
    """The fields that a constructor sets, once, to what it is handed in, as it is."""
    names = {parameter.name for parameter in m.unit.parameters}
    found: dict[str, str] = {}
    for field, stores in m.index.stores.items():
        made = m.unit.definitions[stores[0].value] if stores[0].value >= 0 else None
        owner = m.unit.definitions[stores[0].base]
        own = isinstance(owner, t.Load) and owner.name == m.unit.first
        if own and len(stores) == 1 and isinstance(made, t.Load) and made.name in names - m.index.binds.keys():
            found[field] = made.name
    return found
