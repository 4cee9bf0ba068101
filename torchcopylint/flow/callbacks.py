"""Functions that autograd calls: what each of them is handed belongs to autograd."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow.facts import ContextKept
from torchcopylint.flow.model import ARGUMENT, TENSORS, Kind, Object, Sure, Value
from torchcopylint.flow.references import FunctionReference

if TYPE_CHECKING:
    from torchcopylint.flow.facts import Relation
    from torchcopylint.flow.machine import Machine
    from torchcopylint.flow.sites import Arguments

FORWARD, HOOK, PACK = "forward", "gradient hook", "pack hook"
_PACKING = frozenset({"torch.autograd.graph.saved_tensors_hooks"})


def note_hook(m: Machine, name: str, arguments: Arguments) -> None:
    """`tensor.register_hook(function)`: autograd hands the function a gradient. Argument 0 is the receiver."""
    if name != "register_hook" or len(arguments.positional) < 2:
        return
    function = arguments.positional[1]
    _note(m, function, HOOK)
    if isinstance(function.const, FunctionReference) and m.world.is_own(function.const.unit):
        unit = m.world.unit(function.const.unit)
        names = [parameter.name for parameter in unit.parameters[-1:]]
        given = m.number("gradient of a hook")
        m.state.set_object(given, Object(Kind.TENSOR, Sure.PROVEN))
        m.world.note_arguments(m, unit.number, {name: Value((given,), Kind.TENSOR) for name in names})


def note_pack(m: Machine, dotted: str, arguments: Arguments) -> None:
    """`saved_tensors_hooks(pack, unpack)`: autograd hands `pack` what an operation saves."""
    if dotted in _PACKING:
        _note(m, arguments.keywords.get("pack_hook", arguments.at(0)), PACK)


def _note(m: Machine, value: Value, role: str) -> None:
    if isinstance(value.const, FunctionReference):
        m.world.roles.setdefault(value.const.unit, set()).add(role)


def note_context(m: Machine, owner: Object, attribute: str, value: Value, site: int) -> None:
    """An attribute of an argument is set in `forward` of an autograd `Function`: its context, perhaps."""
    if owner.owner == ARGUMENT and owner.text == _context(m) and FORWARD in m.world.roles_of(m.unit):
        m.kept_on_context[site] = (f"{owner.text}.{attribute}", value)


def found(m: Machine) -> list[Relation]:
    """What the unit keeps on its context, once it has been run: inputs, and what it returns."""
    relations: list[Relation] = []
    returned = {ref | 1 for one in m.returned for ref in one.refs}
    for site, (attribute, value) in sorted(m.kept_on_context.items()):
        held = [(ref, m.state.object(ref)) for ref in value.refs]
        outside = all(obj.kind in TENSORS and (obj.owner == ARGUMENT or ref | 1 in returned) for ref, obj in held)
        if held and outside:
            sure = min(obj.sure for _, obj in held)
            relations.append(ContextKept(site, attribute, held[0][1].text, sure))
    return relations


def _context(m: Machine) -> str:
    return m.unit.parameters[0].name if m.unit.parameters else ""
