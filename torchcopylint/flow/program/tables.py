"""Tables of functions and classes, and what is called through them: `ACT = {"relu": nn.ReLU, "elu": nn.ELU}`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from torchcopylint.flow.model import PARTIAL, Cell, Kind
from torchcopylint.flow.references import ClassReference, FunctionReference
from torchcopylint.flow.tape import Dotted

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

Called: TypeAlias = "tuple[tuple[str, object], ...]"
"""The slots of a list or dictionary that hold functions or classes, with these."""
MAX_ENTRIES = 40


def is_called(const: object) -> bool:
    """Whether a constant stands for something that is called."""
    return isinstance(const, Dotted) or const.__class__ is FunctionReference or const.__class__ is ClassReference


def called_in(m: Machine, refs: Sequence[int]) -> Called:
    """The functions and classes in a list or dictionary; nothing of a large one."""
    names = m.state.slot_names(refs[0]) if len(refs) == 1 else []
    cells = [(slot[1], m.state.cell(slot)) for slot in names] if len(names) <= MAX_ENTRIES else []
    if names and m.state.object(refs[0]).type == PARTIAL:
        # `relu = partial(nn.ReLU, inplace=True)`, if all that it was given is constant.
        given = [(key, cell.const) for key, cell in cells if cell is not None and not cell.refs]
        return tuple(given) if len(given) == len(names) and None not in dict(given).values() else ()
    return tuple((key, cell.const) for key, cell in cells if cell is not None and is_called(cell.const))


def bind(m: Machine, ref: int, called: Called) -> None:
    """An object that stands for a table holds what is in there."""
    for key, const in called:
        if m.state.cell((ref, key)) is None:
            kind = Kind.FUNCTION if is_called(const) else Kind.UNKNOWN
            m.state.put_cell((ref, key), Cell((), kind, const, site=-1))
