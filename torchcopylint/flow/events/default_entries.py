"""What a `defaultdict` makes for a key that it has not seen: an object for each, which the table holds from then on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow.interprocedural import applying
from torchcopylint.flow.model import ANY_ELEMENT, Kind, Value
from torchcopylint.flow.networks import making
from torchcopylint.flow.references import ClassReference, FunctionReference
from torchcopylint.flow.storages import slots
from torchcopylint.flow.values.sites import Arguments

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

_FACTORY = ".default_factory"


def note(m: Machine, made: Value, factory: Value, site: int) -> None:
    """A table makes its entries by a class or a function of this file."""
    if isinstance(factory.const, ClassReference | FunctionReference):
        slots.bind_slot(m, (made.refs[0], _FACTORY), Value(kind=Kind.FUNCTION, const=factory.const), site)


def entry(m: Machine, table: Value, key: object, site: int, text: str) -> Value | None:
    """The entry that is made where none is; `None` where one is there, and of other tables."""
    ref = table.refs[0]
    factory = m.state.cell((ref, _FACTORY))
    slot = (ref, f"[{key!r}]" if key is not None else ANY_ELEMENT)
    if factory is None or m.state.cell(slot) is not None or m.state.cell((ref, ANY_ELEMENT)) is not None:
        return None
    if isinstance(factory.const, ClassReference):
        made = making.instantiate(m, factory.const, Arguments([], {}), site, text)
    elif isinstance(factory.const, FunctionReference):
        made = applying.call(m, factory.const, Arguments([], {}), site, text)
    else:
        return None
    for one in made.refs:
        obj = m.state.object(one)
        if obj.site == site:
            m.state.set_object(one, obj._replace(text=text))
    slots.bind_slot(m, slot, made._replace(root=None), site)
    return slots.slot_value(m, slot)
