"""Functions and classes as values."""

from __future__ import annotations

from torchcopylint.flow import tape as t
from torchcopylint.flow.machine import Machine, handles
from torchcopylint.flow.model import Kind, Value
from torchcopylint.flow.references import ClassReference, FunctionReference


@handles(t.Function)
def _function(m: Machine, event: t.Function) -> None:
    for name, register in event.defaults:
        m.world.note_default(m, event.unit, name, m.value(register))
    m.set(event.out, Value(kind=Kind.FUNCTION, const=FunctionReference(event.unit)))


@handles(t.Class)
def _class(m: Machine, event: t.Class) -> None:
    m.set(event.out, Value(kind=Kind.CLASS, const=ClassReference(event.number)))
