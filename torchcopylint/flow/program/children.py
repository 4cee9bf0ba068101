"""What the modules are that a constructor puts into a list or dictionary of modules in a field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from torchcopylint.flow.model import WRITES_INPUT, Kind, Object
from torchcopylint.flow.program import chain_layers
from torchcopylint.knowledge import table

if TYPE_CHECKING:
    from torchcopylint.flow.interprocedural.classes import Classes
    from torchcopylint.flow.running.machine import Machine

_LISTS = frozenset({"torch.nn.ModuleList", "torch.nn.Sequential", "torch.nn.ModuleDict"})
_CHILD = "what its elements are"


class Child(NamedTuple):
    """What all modules in a list are: of one class, as far as that is known; layers that work in place (`inplace`), or
    chains that start with one (`writes_input`)."""

    type: str = ""
    inplace: bool = False
    writes_input: bool = False
    layers: tuple[str, ...] = ()
    """The classes of the layers of each, where they are chains."""


_NOTHING = Child()


def learn(m: Machine) -> Mapping[str, Child]:
    """By the name of a field that a constructor leaves behind: what all modules in the list are that it holds.

    `self.blocks = nn.ModuleList([Block(n) for _ in range(4)])`, or a list to which a loop appends them.
    """
    if m.unit.name != "__init__" or m.unit.owner < 0 or not m.unit.parameters:
        return {}
    found: dict[str, Child] = {}
    me = m.number("argument", m.unit.first)
    for slot in m.state.slot_names(me):
        refs = m.state.refs_of(slot)
        if len(refs) != 1 or m.state.object(refs[0]).type not in _LISTS:
            continue
        inner = (one for one in m.state.slot_names(refs[0]) if one[1].startswith("["))
        held = [m.state.object(child) for one in inner for child in m.state.refs_of(one)]
        types = {obj.type for obj in held}
        known = types.pop() if len(types) == 1 else ""
        layers = chain_layers.joined(held) if known == chain_layers.SEQUENTIAL else ()
        child = Child(
            known if known and (layers or _is_known(m, known)) else "",
            bool(held) and all(dict(obj.config).get("inplace") is True for obj in held),
            bool(held) and all(WRITES_INPUT in obj.flags for obj in held),
            layers,
        )
        if child != _NOTHING:
            found[slot[1][1:]] = child
    return found


def _is_known(m: Machine, name: str) -> bool:
    """Whether a class is one of the file, or a layer of `torch.nn`."""
    row = table.module_class(name)
    return m.world.local_class(name) is not None or (row is not None and not row.container)


def marked(world: Classes, owner: str, name: str, field: Object) -> Object:
    """A field that is looked at in another method, with what the constructor has shown of the modules in it."""
    if field.kind is not Kind.MODULE or field.type not in _LISTS:
        return field
    local = world.local_class(owner)
    known = (world.children_of(one).get(name) for one in (world.lineage(local) if local is not None else ()))
    child = next((one for one in known if one), None)
    return field._replace(config=(*field.config, (_CHILD, child))) if child else field


def of(field: Object) -> Child:
    """What the modules in a list are, as far as the constructor has shown it."""
    child = dict(field.config).get(_CHILD) if field.config else None
    return child if isinstance(child, Child) else _NOTHING
