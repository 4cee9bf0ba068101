"""The states that recurrent layers are given: `h = cell(x, h)`, `y, (h, c) = lstm(x, (h, c))`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow.autograd import saving
from torchcopylint.flow.facts import Saved
from torchcopylint.flow.model import CONTAINERS, Value
from torchcopylint.flow.storages import slots
from torchcopylint.flow.values import naming
from torchcopylint.flow.values.state import kind_of

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine
    from torchcopylint.flow.values.sites import Arguments
    from torchcopylint.knowledge import table

_STATE = "hx"
"""What torch calls the state in `forward` of all recurrent layers."""
_FIRST = 4
"""The numbers 4 and 5 of a site are those of the states that backward needs."""


def saved(m: Machine, row: table.ModuleOp, arguments: Arguments, site: int, name: str) -> frozenset[int]:
    """Under which numbers backward keeps the state that a recurrent layer is given, of an LSTM the two of them: its
    weights are multiplied with it."""
    if _STATE not in row.takes:
        return frozenset()
    given = arguments.keywords.get(_STATE, arguments.at(row.takes.index(_STATE)))
    if kind_of(given, m.state) in CONTAINERS and len(given.refs) == 1:
        parts = [slots.slot_value(m, (given.refs[0], f"[{place}]")) for place in range(2)]
    else:
        parts = [given]
    found: list[int] = []
    for number, part in enumerate(parts, site * 8 + _FIRST):
        source = naming.key_text(m, part.root) or _spelled(m, part)
        found += saving.save(m, part, number, Saved(site, f"{name}(...)", "input", source))
    return frozenset(found)


def _spelled(m: Machine, value: Value) -> str:
    return m.state.object(value.refs[0]).text or "its state" if value.refs else "its state"
