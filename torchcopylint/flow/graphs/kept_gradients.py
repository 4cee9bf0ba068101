"""What an optimizer of the file keeps in its state as it is: gradients, `self.state[p]["previous"] = p.grad`, and
parameters that it moves afterwards, `self.state[p]["old"] = p.data`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import FieldMet, GradientKept, Kept
from torchcopylint.flow.graphs import zeroing
from torchcopylint.flow.model import How, Kind, Sure
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine
    from torchcopylint.flow.tapes.index import UnitIndex

_ALIKE = frozenset({How.OWN, How.DETACH, How.DATA})


def found(m: Machine) -> Iterator[GradientKept]:
    """Where a method of an optimizer puts a gradient into the state, and some method computes with what is there.

    Who sets `.grad` himself may have let go of the one that is kept.
    """
    if m.unit.owner < 0 or not m.backward.gradients or m.world.class_kind(m.unit.owner)[0] is not Kind.OPTIMIZER:
        return
    methods = [unit for unit in m.world.program.units if unit.owner == m.unit.owner]
    if any(store.name == "grad" for unit in methods for store in m.world.index(unit).of(t.StoreAttribute)):
        return
    written = -1
    for event in m.index.of(t.StoreItem):
        key = _key(m, event)
        gradient = _gradient(m, event.value) if key is not None and _is_state(m, event.base) else ""
        read = next((at for unit in methods if (at := _read(m.world.index(unit), key)) >= 0), -1) if gradient else -1
        if read >= 0:
            if written < 0 and not zeroing.drops_gradients(m.world):
                written = zeroing.filled(m.world)
            name = f"{naming.text_of(m, event.base)}[{key!r}]"
            yield GradientKept(event.site, name, gradient, read, Sure.LIKELY, written)


def parameters(m: Machine) -> Iterator[Kept | FieldMet]:
    """Where a method of an optimizer puts the values of a parameter into the state without a copy, and then writes the
    parameter, so that another method finds there what was written.

    Or puts them there the first time only, and takes the difference of the parameter and what is there each time. Or
    another method takes that difference, as of slow weights and fast ones.
    """
    if m.unit.owner < 0 or m.world.class_kind(m.unit.owner)[0] is not Kind.OPTIMIZER:
        return
    others = [unit for unit in m.world.program.units if unit.owner == m.unit.owner and unit is not m.unit]
    for event in m.index.of(t.StoreItem):
        key = _key(m, event)
        if key is None or not _is_state(m, event.base):
            continue
        asked = any(_asks(unit, key) for unit in others)
        value = m.value(event.value)
        obj = m.state.object(value.refs[0]) if len(value.refs) == 1 else None
        taken = m.unit.definitions[event.value] if event.value >= 0 else None
        if obj is None or not isinstance(taken, t.Attribute | t.Invoke) or taken.name not in ("data", "detach"):
            continue
        name = naming.text_of(m, taken.base)
        for share in obj.shares:
            source = m.state.object(share.of)
            if share.how not in (How.DATA, How.DETACH) or source.kind is not Kind.PARAMETER:
                continue
            storages = frozenset(one.storage | 1 for one in obj.shares)
            kept = Kept("state", event.site, share.site, share.how, name, True, obj.sure, m.unit.name, storages)
            met = _differs(m, key, name) if event.site in m.index.on_arms else -1
            if met >= 0:
                yield kept._replace(sources=frozenset({name}), storages=frozenset())
                yield FieldMet(met, "state", m.unit.name, "operand", name, "-", True)
                break
            if asked and _moves(m, name, event.site):
                yield kept
                break
            apart = next(((unit, at) for unit in others if (at := _taken_apart(m.world.index(unit), key)) >= 0), None)
            if apart is not None and not any(m.world.index(unit).stores.get("data") for unit in (m.unit, *others)):
                yield kept._replace(sources=frozenset({name}), storages=frozenset())
                yield FieldMet(apart[1], "state", apart[0].name, "operand", name, "-")
                break


def _differs(m: Machine, key: str, name: str) -> int:
    """Where the unit takes the difference of a parameter of that name and what stands at a key of the state."""
    for event in m.unit.definitions:
        if not isinstance(event, t.Operate) or event.symbol != "-":
            continue
        named = [_named(m.index, operand) for operand in event.operands]
        sides = [{_side(m, made, key) for made in one if not isinstance(made, t.Augment | None)} for one in named]
        texts = [naming.text_of(m, operand).removesuffix(".data") for operand in event.operands]
        if any(sides[at] == {True} and texts[1 - at] == name for at in (0, 1) if len(sides) == 2):
            return event.site
    return -1


def _side(m: Machine, made: t.Event | None, key: str) -> bool:
    """Whether something was taken out of the state at a key."""
    part = made.subscript[0] if isinstance(made, t.Item) and len(made.subscript) == 1 else None
    return isinstance(made, t.Item) and isinstance(part, int) and m.value(part).const == key and _is_state(m, made.base)


def _taken_apart(index: UnitIndex, key: str) -> int:
    """Where a unit takes the difference of a parameter and what stands for it at a key of the state:
    `p - self.state[p]["slow"]`."""
    definitions = index.unit.definitions
    for event in index.of(t.Operate):
        for at in (0, 1) if event.symbol == "-" and len(event.operands) == 2 and min(event.operands) >= 0 else ():
            other = definitions[event.operands[1 - at]]
            if isinstance(other, t.Attribute) and other.name == "data":
                other = definitions[other.base]
            kept = [made for made in _named(index, event.operands[at]) if isinstance(made, t.Item)]
            tables = [table for made in kept if _constant(index, made) == key for table in _named(index, made.base)]
            owners = [_owner(index, table) for table in tables if isinstance(table, t.Item)]
            if isinstance(other, t.Load) and other.name in owners:
                return event.site
    return -1


def _constant(index: UnitIndex, made: t.Item) -> object:
    """The constant that something is taken out by."""
    part = made.subscript[0] if len(made.subscript) == 1 else None
    named = index.unit.definitions[part] if isinstance(part, int) and part >= 0 else None
    return named.value if isinstance(named, t.Const) else None


def _owner(index: UnitIndex, table: t.Item) -> str:
    """The name of the parameter whose state something is: `self.state[p]`."""
    part = table.subscript[0] if len(table.subscript) == 1 else None
    state = index.unit.definitions[table.base] if table.base >= 0 else None
    named = index.unit.definitions[part] if isinstance(part, int) and part >= 0 else None
    is_state = isinstance(state, t.Attribute) and state.name == "state"
    return named.name if is_state and isinstance(named, t.Load) else ""


def _moves(m: Machine, name: str, site: int) -> bool:
    """Whether a parameter of that name is written on the same turn, once it has been put aside."""
    loops = uses.loops_around(m, site)
    after = [write for write in m.writes.values() if write.site > site and write.root == name]
    return any(write.form in _IN_PLACE and uses.loops_around(m, write.site) == loops for write in after)


_IN_PLACE = frozenset({"method", "augmented", "item"})


def _asks(unit: t.Unit, key: str) -> bool:
    """Whether a unit looks at what stands at a key."""
    for made in unit.definitions:
        part = made.subscript[0] if isinstance(made, t.Item) and len(made.subscript) == 1 else None
        named = unit.definitions[part] if isinstance(part, int) and part >= 0 else None
        if isinstance(named, t.Const) and named.value == key:
            return True
    return False


def _key(m: Machine, event: t.StoreItem) -> str | None:
    part = event.subscript[0] if len(event.subscript) == 1 else None
    key = m.value(part).const if isinstance(part, int) else None
    return key if isinstance(key, str) else None


def _is_state(m: Machine, register: int) -> bool:
    """Whether a value is `self.state[p]`, by that or another name."""
    made = _behind(m, register)
    table = m.unit.definitions[made.base] if isinstance(made, t.Item) else None
    if not isinstance(table, t.Attribute) or table.name != "state":
        return False
    holder = m.unit.definitions[table.base]
    return isinstance(holder, t.Load) and holder.name == m.unit.first


def _behind(m: Machine, register: int) -> t.Event | None:
    """What made a value, also by a name that was bound to it alone or with others: `grad, state = p.grad, state[p]`."""
    made = m.unit.definitions[register] if register >= 0 else None
    if isinstance(made, t.Load):
        bound = uses.bindings_before(m, made)
        made = m.unit.definitions[bound[0]] if len(bound) == 1 and bound[0] >= 0 else None
    if isinstance(made, t.Unpack):
        several = m.unit.definitions[made.value]
        whole = isinstance(several, t.Make) and not any(several.stars) and made.position < len(several.items)
        made = m.unit.definitions[several.items[made.position]] if whole and isinstance(several, t.Make) else None
    return made


def _gradient(m: Machine, register: int) -> str:
    """How the gradient is called that a value is, or sits on as a whole; empty for anything else."""
    value = m.value(register)
    if len(value.refs) != 1:
        return ""
    shares = m.state.object(value.refs[0]).shares
    if not shares or any(one.how not in _ALIKE or one.when or one.region for one in shares):
        return ""
    held = {one | 1 for ref in m.backward.gradients for one in m.state.refs_of((ref, ".grad"))}
    on = {one.storage | 1 for one in shares}
    # On later turns of a loop it is that of this turn or of an earlier one.
    if len(on) != 1 or not on <= held or not (len(shares) > 1 or shares[0].sure):
        return ""
    made = _behind(m, register)
    text = naming.text_of(m, made.out) if isinstance(made, t.Attribute) else ""
    return text if text.endswith(".grad") else ".grad"


def _named(index: UnitIndex, register: int) -> list[t.Event | None]:
    """What made an operand, or, where that is a name, what the name is bound to: one by one, or among others."""
    definitions = index.unit.definitions
    made = definitions[register] if register >= 0 else None
    if not isinstance(made, t.Load):
        return [made]
    found: list[t.Event | None] = []
    for bind in index.binds.get(made.name, ()):
        one = definitions[bind.value] if bind.value >= 0 and bind.site < made.site else None
        several = definitions[one.value] if isinstance(one, t.Unpack) else None
        if isinstance(one, t.Unpack) and isinstance(several, t.Make) and not any(several.stars):
            found += [definitions[item] for item in several.items[one.position : one.position + 1]]
        else:
            found.append(one)
    return found


def _read(index: UnitIndex, key: str | None) -> int:
    """Where a unit takes what stands at a key for an operand."""
    definitions = index.unit.definitions
    for event in definitions:
        if isinstance(event, t.Operate | t.Augment):
            operands = event.operands if isinstance(event, t.Operate) else (event.target, event.value)
        elif isinstance(event, t.Invoke | t.Call):
            operands = tuple(argument.register for argument in event.arguments)
            operands += (event.base,) if isinstance(event, t.Invoke) else ()
        else:
            continue
        for made in (one for register in operands for one in _named(index, register)):
            part = made.subscript[0] if isinstance(made, t.Item) and len(made.subscript) == 1 else None
            named = definitions[part] if isinstance(part, int) and part >= 0 else None
            if isinstance(named, t.Const) and named.value == key:
                return event.site
    return -1
