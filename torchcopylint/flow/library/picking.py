"""Views of a part whose place is told by arguments: `x.narrow(0, start, length)`, `x.select(0, i)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.library import indexing
from torchcopylint.flow.library.bounds import bound
from torchcopylint.flow.model import Bound, How, Object, Part, Region, Value
from torchcopylint.flow.values import memory

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine
    from torchcopylint.flow.values.sites import Arguments

_PLACES = {
    "as_strided": ("size", "stride", "storage_offset"),
    "diagonal": ("offset",),
    "narrow": ("dim", "start", "length"),
    "select": ("dim", "index"),
}
"""The arguments behind the tensor, as far as they tell the place."""
COMPONENTS = frozenset({"real", "imag"})


def part(m: Machine, source: Value, name: str, arguments: Arguments, how: How, made: Object, site: int) -> Value:
    """The view of `source` that the operation `name` takes at a site: of all of it, or of the part that it is told."""
    if name in COMPONENTS:
        return component(m, source, name, how, made, site)
    if name not in _PLACES:
        return memory.alias(m, source, site, how, made)
    region = _region(m, name, arguments, site)
    value = memory.alias(m, source, site, how, made, region=region)
    for one in region:
        # Bound anew, the names that say which part it is say something else.
        for told in indexing.names_of(one):
            m.shown.region_names.setdefault(told, set()).add(value.refs[0])
    return value


def component(m: Machine, source: Value, name: str, how: How, made: Object, site: int, tag: str = "") -> Value:
    """The view that `x.real` or `x.imag` takes: of one half of each element."""
    # Of some elements, whose place stands in front already, it is not told: `x[0].real`.
    placed = any(share.region for ref in source.refs for share in m.state.object(ref).shares)
    region = () if placed else (Part("component", name),)
    return memory.alias(m, source, site, how, made, region=region, tag=tag)


def _region(m: Machine, name: str, arguments: Arguments, site: int) -> Region:
    """The part that a view covers; empty if it cannot be told apart from all of it."""
    register = m.index.calls.get(site, -1)
    event = m.unit.definitions[register] if register >= 0 else None
    if not isinstance(event, t.Call | t.Invoke):
        return ()
    plain = sum(not (argument.keyword or argument.stars) for argument in event.arguments)
    told = _told(event, name, method=len(arguments.positional) > plain)
    if name in ("as_strided", "diagonal"):
        place = told.get(_PLACES[name][-1])
        return () if place is None or isinstance(bound(m, place), int) else (Part("?"),)
    if len(told) < len(_PLACES[name]):
        # Who passes on what he was given (`*args`) takes some part or other.
        return (Part("?"),)
    dimension = m.value(told["dim"]).const
    picked = _selected(m, told["index"]) if name == "select" else _narrowed(m, told["start"], told["length"])
    if isinstance(dimension, int) and dimension >= 0:
        return (*[Part("all")] * dimension, picked)
    # Counted from the end, or by a name: of parts that a loop takes, the next turn's is another one.
    constant = picked.kind != "?" and all(isinstance(bound, int | None) for bound in (picked.value, picked.upper))
    if constant and isinstance(dimension, int):
        # As `x[..., a:b, :]` does it.
        return (Part("?", (picked, *[Part("all")] * (-dimension - 1))),)
    return () if constant else (Part("?"),)


def _told(event: t.Call | t.Invoke, name: str, *, method: bool) -> dict[str, int]:
    """The registers of the arguments that tell the place, by their names. A function takes the tensor before them."""
    plain = [argument.register for argument in event.arguments if not (argument.keyword or argument.stars)]
    told = dict(zip(_PLACES[name], plain if method else plain[1:], strict=False))
    told.update({argument.keyword: argument.register for argument in event.arguments})
    return {key: told[key] for key in _PLACES[name] if key in told}


def _selected(m: Machine, index: int) -> Part:
    place = m.value(index).const
    return Part("int", int(place)) if isinstance(place, int) else indexing.named(m, index)


def _narrowed(m: Machine, start: int, length: int) -> Part:
    lower, size = bound(m, start), bound(m, length)
    if isinstance(lower, int) and isinstance(size, int):
        end = lower + size
        return Part("slice", lower, end if lower >= 0 else end or None)
    if lower == 0:
        return Part("slice", None, size)
    upper = f"({lower} + {size})" if Bound.UNTOLD not in (lower, size) else Bound.UNTOLD
    return Part("slice", lower, upper)
