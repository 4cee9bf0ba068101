"""What comes into a container with what is put there: `history.append((step, loss))`, `logs.append({"loss": loss})`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.graphs import runs
from torchcopylint.flow.model import ANY_ELEMENT, CONTAINERS, Kind, Value
from torchcopylint.flow.values import naming

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

MAX_PARTS = 12
"""So many parts of what is put in are looked at."""


def by(m: Machine, item: Value, text: str, register: int = t.NO_REGISTER) -> tuple[Value, str]:
    """What carries a graph of what is put in, and how one would write it: a part of it, if it is one tuple, list,
    dictionary or record that holds such a thing. `register` is where it stands, if it is put in here."""
    whole = item.refs[0] if len(item.refs) == 1 else -1
    if whole < 0 or m.state.object(whole).kind not in CONTAINERS | {Kind.INSTANCE}:
        return item, text
    written = _written(m, register)
    for slot in m.state.slot_names(whole)[:MAX_PARTS]:
        cell = m.state.cell(slot)
        if cell is not None and slot[1] != ANY_ELEMENT and runs.carries(m, cell.refs):
            made = register >= 0 and isinstance(m.unit.definitions[register], t.Call | t.Invoke)
            named = m.state.object(cell.refs[0]).text if made else f"{text}{slot[1]}"
            return Value(cell.refs, cell.kind), written.get(slot[1], named)
    return item, text


def _written(m: Machine, register: int) -> dict[str, str]:
    """By the slots of a tuple, list or dictionary that is written out, what stands there."""
    made = m.unit.definitions[register] if register >= 0 else None
    if not isinstance(made, t.Make) or any(made.stars):
        return {}
    keys: list[object] = [m.value(key).const for key in made.keys] or list(range(len(made.items)))
    return {f"[{key!r}]": naming.spelling(m, part) for key, part in zip(keys, made.items, strict=False)}
