"""Networks that stand in lists and dictionaries of fields: `self.targets = self.actors`, where both are lists.

Two fields that hold one list hold the same networks, place by place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow.facts import FieldAliased
from torchcopylint.flow.model import FIELD, Kind, Sure

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from torchcopylint.flow.running.machine import Machine

_LISTS = (Kind.LIST, Kind.TUPLE, Kind.DICT)


def field_of_element(m: Machine, modules: Collection[int]) -> str:
    """The field of `self` that has held, since before the method began, a list of which a module is an element."""
    if len(modules) != 1 or m.unit.owner < 0:
        return ""
    (ref,) = modules
    obj = m.state.object(ref)
    owner, dot, rest = obj.text.partition(".")
    field, bracket, _ = rest.partition("[")
    taken = obj.owner == FIELD or any(share.of != ref for share in obj.shares)
    mine = dot and bracket and owner == m.unit.first and field.isidentifier() and rest.endswith("]")
    return field if mine and taken and field not in m.index.stores else ""


def aliased(m: Machine, held: Mapping[tuple[int, ...], Sequence[tuple[int, str]]]) -> Iterator[FieldAliased]:
    """The fields that a constructor leaves with one list, or dictionary, of networks."""
    for refs, places in held.items() if m.unit.name == "__init__" else ():
        (_, source), *others = sorted(places)
        if not others or len(refs) != 1 or m.state.object(refs[0]).kind not in _LISTS:
            continue
        elements = [m.state.object(ref).kind for slot in m.state.slot_names(refs[0]) for ref in m.state.refs_of(slot)]
        if elements and set(elements) <= {Kind.MODULE, Kind.UNKNOWN}:
            for site, field in others:
                if all(m.world.setters(name) <= {m.unit.number} for name in (field, source)):
                    yield FieldAliased(field, source, site, Sure.LIKELY, m.unit.name, only=True)
