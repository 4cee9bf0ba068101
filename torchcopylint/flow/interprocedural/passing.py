"""Which parameter of a function gets what a call passes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow.library import containers
from torchcopylint.flow.model import Kind, Object, Sure, Value
from torchcopylint.flow.storages import slots
from torchcopylint.flow.values import memory

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine
    from torchcopylint.flow.tape import Parameter, Unit
    from torchcopylint.flow.values.sites import Arguments


def bind(unit: Unit, arguments: Arguments) -> dict[str, Value]:
    """The parameters that get one argument each: by their places, or by their names."""
    plain = [parameter for parameter in unit.parameters if parameter.kind == "plain"]
    by_place = [parameter.name for parameter in plain if not parameter.by_name]
    bound = dict(zip(by_place, arguments.positional, strict=False))
    if arguments.keywords:
        named = {parameter.key or parameter.name: parameter.name for parameter in plain if not _is_numbered(parameter)}
        bound.update({named[key]: value for key, value in arguments.keywords.items() if key in named})
    return bound


def _rest(unit: Unit, arguments: Arguments) -> dict[str, dict[str, Value]]:
    """What a call passes beside the plain parameters, by slots of the parameters that gather it."""
    gathering = {parameter.kind: parameter.name for parameter in unit.parameters if parameter.kind != "plain"}
    if not gathering:
        return {}
    plain = [parameter for parameter in unit.parameters if parameter.kind == "plain" and not parameter.of]
    found: dict[str, dict[str, Value]] = {}
    if "star" in gathering:
        beside = arguments.positional[sum(not parameter.by_name for parameter in plain) :]
        found[gathering["star"]] = {f"[{place}]": value for place, value in enumerate(beside)}
    if "stars" in gathering:
        names = {parameter.name for parameter in plain} | {"**"}
        named = {f"[{key!r}]": value for key, value in arguments.keywords.items() if key not in names}
        found[gathering["stars"]] = named
    return found


def with_rest(m: Machine, unit: Unit, bound: dict[str, Value], arguments: Arguments, site: int) -> dict[str, Value]:
    """The arguments of a call by name, with the tuple and the dictionary of those that a function gathers."""
    held = _rest(unit, arguments)
    kinds = {parameter.name: parameter.kind for parameter in unit.parameters}
    others = arguments.keywords.get("**")
    for name, parts in held.items():
        star = kinds[name] == "star"
        if not parts and (star or others is None):
            continue
        made = Object(Kind.TUPLE if star else Kind.DICT, Sure.PROVEN, text="...")
        whole = memory.fresh(m, site, made, f"rest {name}")
        for source in others.refs if others is not None and not star else ():
            containers.copy_elements(m, source, whole.refs[0], site)
        for slot, value in parts.items():
            slots.bind_slot(m, (whole.refs[0], slot), value, site)
        bound = {**bound, name: whole}
    return bound


def _is_numbered(parameter: Parameter) -> bool:
    """Whether a parameter is a part of `*args`, which nobody passes by a name."""
    return bool(parameter.of) and not parameter.key
