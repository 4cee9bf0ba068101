"""Values that other files of the project define, where a file uses what it has imported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import GLOBAL, Cell, How, Kind, Object, Share, Value
from torchcopylint.flow.references import AppliedReference, ClassReference, FunctionReference
from torchcopylint.flow.tape import Dotted
from torchcopylint.flow.values import memory
from torchcopylint.flow.values.outside import MODULE, Foreign, Target
from torchcopylint.knowledge import table

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine


def loaded(m: Machine, name: str, cell: Cell) -> Cell:
    """What a name holds that was imported from the project: it is followed where it is used.

    A function or a class is not put in the place of the name: on the path that has not used it yet, and before the
    first turn of a loop that does, it would be another thing.
    """
    assert isinstance(cell.const, Foreign)
    found = value(m, cell.const)
    if found.const == cell.const:
        return cell
    if not found.refs:
        return cell._replace(kind=found.kind, const=found.const)
    memory.bind(m, name, found, cell.site)
    return m.state.cell(name) or cell


def ahead(m: Machine, event: t.Call | t.Invoke) -> str:
    """The canonical dotted name of what a call calls, or will call: it may not have been run yet."""
    if isinstance(event, t.Invoke):
        return table.canonical(f"{_named(m, event.base)}.{event.name}")
    return table.canonical(_named(m, event.function))


def _named(m: Machine, register: int) -> str:
    """The dotted name of what a register will hold, if it is a name of the file's imports or an attribute of one."""
    made = m.unit.definitions[register] if register >= 0 else None
    if isinstance(made, t.Attribute):
        base = _named(m, made.base)
        return f"{base}.{made.name}" if base else ""
    if not isinstance(made, t.Load):
        return ""
    cell = m.state.cell(made.name)
    if made.name not in m.unit.bound:
        const = m.world.outer(m, made.name).const
    else:
        const = cell.const if cell is not None else None
    return const if isinstance(const, Dotted) else ""


def member(m: Machine, owner: Dotted, name: str) -> Value:
    """`owner.name`, where `owner` is something imported."""
    if owner.__class__ is Foreign:
        return value(m, Foreign(f"{owner}{name}" if owner.endswith(".") else f"{owner}.{name}"))
    return Value(kind=Kind.IMPORTED, const=Dotted(table.canonical(f"{owner}.{name}")))


def value(m: Machine, dotted: Foreign) -> Value:
    """What a name is that a file of the project may define; the name itself where that is not known."""
    target = m.world.outside.target(dotted)
    if target is None or target.name is MODULE:
        return Value(kind=Kind.IMPORTED, const=dotted)
    return of_target(m, target, dotted)


def of_target(m: Machine, target: Target, dotted: str) -> Value:
    """The value of what a name was followed to; nothing known for what has no value that could be known."""
    outside = m.world.outside
    if target.dotted:
        return Value(kind=Kind.IMPORTED, const=Dotted(table.canonical(target.dotted)))
    name = target.name
    if name.function >= 0:
        number = outside.function_number(name.path, name.function)
        return Value() if number is None else Value(kind=Kind.FUNCTION, const=FunctionReference(number))
    if name.class_number >= 0:
        number = outside.class_number(name.path, name.class_number)
        if name.kind is Kind.FUNCTION:
            return Value(kind=Kind.FUNCTION, const=AppliedReference(number))
        return Value(kind=Kind.CLASS, const=ClassReference(number))
    if name.obj is not None:
        return _object(m, outside.localised(name.obj), dotted)
    return Value(kind=name.kind, const=name.const)


def _object(m: Machine, obj: Object, dotted: str) -> Value:
    """An object that another file has made; the same at every look."""
    ref = m.number("outside", dotted)
    if m.state.get(ref) is None:
        text = dotted.rpartition(".")[2]
        m.state.set_object(ref, obj._replace(shares=(Share(ref, How.OWN, -1, ref),), text=text, owner=GLOBAL))
    return Value((ref,), obj.kind)
