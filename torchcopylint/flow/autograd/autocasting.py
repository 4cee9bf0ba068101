"""Autocast, in which layers compute with copies of their weights in another dtype: those are what backward needs.

Executed with torch 2.13: linear layers, convolutions and the like hand such copies to their operations. Layers that
normalise take their weights as they are, so that a step in between is refused for these.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

_NORMALISING = re.compile(r"Norm(?:\d[dD])?$")


def casts(m: Machine, manager: int) -> int:
    """1 for `autocast(...)`, in whose body layers cast what they are given, else 0. Who says whether it is `enabled`
    may run the same without it."""
    made = m.unit.definitions[manager] if manager >= 0 else None
    if not isinstance(made, t.Call | t.Invoke):
        return 0
    told = any(argument.keyword == "enabled" or argument.stars for argument in made.arguments)
    dotted = m.dotted_of(made)
    return int(dotted.startswith("torch.") and dotted.endswith(".autocast") and not told)


def keeps_copies(m: Machine, layer: str = "") -> bool:
    """Whether what a layer, or a network of nothing but such layers as far as the file shows, keeps for backward of its
    weights are copies."""
    if not m.blocks.casting:
        return False
    if layer:
        return not _NORMALISING.search(layer)
    return not any(_normalises(m, unit) for unit in m.world.program.units)


def _normalises(m: Machine, unit: t.Unit) -> bool:
    index = m.world.index(unit)
    named = [one.name for one in index.of(t.Attribute)] + [one.name for one in index.of(t.Load)]
    return any(map(_NORMALISING.search, [*named, *(one.name for one in index.of(t.Invoke))]))
