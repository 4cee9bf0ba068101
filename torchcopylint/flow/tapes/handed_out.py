"""What functions, methods and properties of the user's hand out: another way to get at what an object keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import Kind
from torchcopylint.flow.references import FunctionReference
from torchcopylint.knowledge import table

if TYPE_CHECKING:
    from torchcopylint.flow.facts import Write
    from torchcopylint.flow.running.machine import Machine


def is_all(m: Machine, write: Write) -> bool:
    """Whether all that the written name is bound to before is what a method or property of the user's returns, and that
    is what a field holds which is not called so itself: of a property of which nothing is known, that holds."""
    bound = [bind for bind in m.index.binds.get(write.root, ()) if bind.site < write.site]
    field = write.owner_name.rpartition(".")[2]
    made = [m.unit.definitions[bind.value] if bind.value >= 0 else None for bind in bound]
    made = [event for event in made if not isinstance(event, t.Augment)]
    return bool(made) and all(
        isinstance(event, t.Invoke | t.Attribute)
        and event.name != field
        and (_is_method(m, event) if isinstance(event, t.Invoke) else _is_look(m, event))
        for event in made
    )


def is_call(m: Machine, site: int) -> bool:
    """Whether a function of the user's is called at a site, and not an operation."""
    event = m.unit.definitions[m.index.calls[site]] if site in m.index.calls else None
    if isinstance(event, t.Invoke):
        return _is_method(m, event)
    return isinstance(event, t.Call) and isinstance(m.value(event.function).const, FunctionReference)


def is_look(m: Machine, site: int) -> bool:
    """Whether a property of an object of the user's is looked at, or a loop goes through such an object."""
    looks: list[t.Attribute | t.Iterate] = [*m.index.of(t.Attribute), *m.index.of(t.Iterate)]
    return any(event.site == site and _is_look(m, event) for event in looks)


def _is_method(m: Machine, event: t.Invoke) -> bool:
    kinds = {m.state.object(ref).kind for ref in m.value(event.base).refs}
    return kinds <= {Kind.INSTANCE, Kind.MODULE} and table.tensor_method(event.name) is None


def _is_look(m: Machine, event: t.Attribute | t.Iterate) -> bool:
    base = event.base if isinstance(event, t.Attribute) else event.iterable
    objects = [m.state.object(ref) for ref in m.value(base).refs]
    name = event.name if isinstance(event, t.Attribute) else "__iter__"
    return bool(objects) and all(m.world.method_of(obj, name) is not None for obj in objects)
