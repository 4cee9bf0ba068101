"""Functions and classes as values."""

from __future__ import annotations

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import Kind, Value
from torchcopylint.flow.program import registering
from torchcopylint.flow.references import ClassReference, FunctionReference
from torchcopylint.flow.running.machine import Machine, handles


@handles(t.Function)
def _function(m: Machine, event: t.Function) -> None:
    for name, register in event.defaults:
        if not _has_no_elements(m, register):
            m.world.note_default(m, event.unit, name, m.value(register))
    m.world.closed_over(m, event.unit)
    m.world.seen_as_defined(m, event)
    made = FunctionReference(event.unit)
    registering.enter(m, event.decorators, made, m.world.program.units[event.unit].name)
    m.set(event.out, Value(kind=Kind.FUNCTION, const=made))


def _has_no_elements(m: Machine, register: int) -> bool:
    """Whether a default is made without elements: `torch.zeros(0, 0)`, `torch.tensor([])`. No write leaves anything."""
    made = m.unit.definitions[register] if register >= 0 else None
    if not isinstance(made, t.Call | t.Invoke) or not m.dotted_of(made).startswith("torch.") or not made.arguments:
        return False
    given = [m.unit.definitions[one.register] for one in made.arguments if not one.keyword]
    if m.dotted_of(made) in ("torch.tensor", "torch.Tensor") and len(given) == 1 and isinstance(given[0], t.Make):
        return not given[0].items
    if len(given) == 1 and isinstance(given[0], t.Make):
        given = [m.unit.definitions[item] for item in given[0].items]
    sized = m.dotted_of(made).rpartition(".")[2] in ("zeros", "ones", "empty", "rand", "randn", "Tensor")
    return sized and any(isinstance(size, t.Const) and size.value == 0 and size.value is not False for size in given)


@handles(t.Class)
def _class(m: Machine, event: t.Class) -> None:
    made = ClassReference(event.number)
    registering.enter(m, event.decorators, made, m.world.program.classes[event.number].name)
    m.set(event.out, Value(kind=Kind.CLASS, const=made))
