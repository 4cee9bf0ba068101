"""Layers that learn apart: their class gives them nothing but what is cut off from its graph.

Backward needs the weights of a layer for the gradient of what the layer was given. Where nobody wants that, as with a
discriminator that judges `z.detach()`, a step may overwrite them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import Kind, Object
from torchcopylint.knowledge import table

if TYPE_CHECKING:
    from torchcopylint.flow.files.world import World

_BARE = ["torch.nn.Module"], ["torch.nn.modules.Module"]
_LOOKING = frozenset({"parameters", "named_parameters", "state_dict", "load_state_dict", "train", "eval", "zero_grad"})
"""What is asked of a layer without calling it."""
MAX_DEPTH = 5
"""So far what a layer is given is gone back to."""


def fields(world: World, number: int) -> frozenset[str]:
    """The fields of a class that hold one layer of torch each, which every call of it gives what is cut off."""
    if not world.is_own_class(number):
        facts = world.outside.class_facts(number)
        return facts.apart if facts is not None else frozenset()
    methods = [world.unit(method) for method in world.program.classes[number].methods.values()]
    if not any(_cuts(event) for unit in methods for event in _cutting(world, unit)):
        return frozenset()
    if [name for _, name in world.bases(number)] not in _BARE:
        return frozenset()
    layers = {name for name, obj in world.fields(number).items() if _is_layer(obj, trained=True)}
    fed = {name: [_is_fed_cut(world, number, *call) for call in _calls(world, methods, name)] for name in layers}
    return frozenset(name for name, cut in fed.items() if cut and all(cut) and not _is_handed_on(world, methods, name))


def _cutting(world: World, unit: t.Unit) -> Iterable[t.Event]:
    return (*world.index(unit).of(t.Invoke), *world.index(unit).of(t.Attribute))


def _cuts(event: t.Event | None) -> bool:
    invoked = event.__class__ is t.Invoke and event.name == "detach"
    return invoked or (event.__class__ is t.Attribute and event.name == "data")


def _is_layer(obj: Object, *, trained: bool) -> bool:
    row = table.module_class(obj.type) if obj.kind is Kind.MODULE and obj.type else None
    return row is not None and not row.container and not row.nested and bool(row.parameters) == trained


def _is_self(unit: t.Unit, register: int) -> bool:
    made = unit.definitions[register] if register >= 0 else None
    return isinstance(made, t.Load) and made.name == unit.first


def _calls(world: World, methods: list[t.Unit], name: str) -> Iterable[tuple[t.Unit, t.Invoke]]:
    for unit in methods:
        for event in world.index(unit).of(t.Invoke):
            if event.name == name and _is_self(unit, event.base):
                yield unit, event


def _is_fed_cut(world: World, number: int, unit: t.Unit, call: t.Invoke, depth: int = MAX_DEPTH) -> bool:
    given = [argument.register for argument in call.arguments]
    return bool(given) and all(_is_cut(world, number, unit, register, depth) for register in given)


def _is_cut(world: World, number: int, unit: t.Unit, register: int, depth: int) -> bool:
    """Whether a value has no graph: it was cut off, and gone through nothing that has parameters."""
    made = unit.definitions[register] if register >= 0 else None
    if depth == 0 or _cuts(made):
        return depth > 0
    if isinstance(made, t.Load):
        bound = world.index(unit).binds.get(made.name, ())
        return len(bound) == 1 and _is_cut(world, number, unit, bound[0].value, depth - 1)
    if isinstance(made, t.Invoke) and _is_self(unit, made.base):
        held = world.fields(number).get(made.name)
        plain = held is not None and _is_layer(held, trained=False)
        return plain and _is_fed_cut(world, number, unit, made, depth - 1)
    return False


def _is_handed_on(world: World, methods: list[t.Unit], name: str) -> bool:
    """Whether some method does more with a field than to call it, to set it, or to ask for its parameters."""
    for unit in methods:
        index = world.index(unit)
        for event in index.of(t.Attribute):
            used = index.consumers.get(event.out)
            if event.name == name and not (isinstance(used, t.Invoke) and used.name in _LOOKING):
                return True
    return False
