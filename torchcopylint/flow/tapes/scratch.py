"""Views that are edited as if they were copies: arithmetic on another shape of something, which is used as it was."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import ScratchEdited
from torchcopylint.flow.model import ARGUMENT, ARITHMETIC
from torchcopylint.flow.tapes.rescaling import SYMBOLS, from_elsewhere

if TYPE_CHECKING:
    from torchcopylint.flow.facts import Write
    from torchcopylint.flow.running.machine import Machine

VIEWS = frozenset(
    {"view", "view_as", "reshape", "reshape_as", "flatten", "ravel", "unflatten", "squeeze", "unsqueeze", "unfold"}
    | {"t", "T", "mT", "H", "mH", "adjoint", "transpose", "swapaxes", "swapdims", "permute", "movedim", "moveaxis"}
    | {"view_as_real", "view_as_complex", "real", "imag", "diagonal"}
)
"""Other shapes of the same elements (executed in the tests): who takes a row, edits a part."""
PARTIAL = frozenset({"real", "imag", "diagonal"})
"""Those of them that leave elements out."""
_SHIFTS = frozenset({"+=", "-=", "add_", "sub_"})
"""Who adds something to a diagonal does so for the matrix, and who adds a number that stands there counts."""
_TIDYING = frozenset({"abs_", "clamp_", "clamp_min_", "clamp_max_", "clip_", "relu_", "tanh_", "round_", "floor_"})


def found(m: Machine) -> Iterator[ScratchEdited]:
    """The writes of a unit that make arithmetic of all of a view, from itself alone, of what it has made or was handed.

    Whoever edits a part of something (`row = x[i]; row += 1`), or puts numbers in, does that for the whole, and so does
    who computes a gradient through it.
    """
    mine = ("", ARGUMENT)
    named = {site: one for site, one in m.writes.items() if one.named and one.owner in mine and not one.derived}
    if not named:
        return
    events: list[t.Augment | t.Invoke] = [*m.index.of(t.Augment), *m.index.of(t.Invoke)]
    for event in events:
        write = named.get(event.site)
        if write is not None and _edits(m, event, write) and not _is_recorded(m, write):
            yield ScratchEdited(event.site)


def _is_recorded(m: Machine, write: Write) -> bool:
    """Whether the base has a graph, in which the edit stands, too: `y = x.view(-1); y.mul_(2); x.sum().backward()`."""
    return any(m.state.object(storage).requires_grad > 0 for storage in write.storages)


def _edits(m: Machine, event: t.Augment | t.Invoke, write: Write) -> bool:
    if isinstance(event, t.Augment):
        op, operands = event.symbol, [event.value]
        known = op in SYMBOLS
    else:
        op, operands = event.name, [argument.register for argument in event.arguments]
        known = op in ARITHMETIC or op in _TIDYING
    view = _view(m, write)
    counted = all(isinstance(m.unit.definitions[register], t.Const) for register in operands if register >= 0)
    if not known or not view or (op in _SHIFTS and (counted or view in PARTIAL)):
        return False
    return not any(from_elsewhere(m, register, write.root) for register in operands)


def _view(m: Machine, write: Write) -> str:
    """The operation that all that the written name is bound to before has come from, where it is a view; else empty."""
    bound = [bind for bind in m.index.binds.get(write.root, ()) if bind.site < write.site]
    made = [m.unit.definitions[bind.value] if bind.value >= 0 else None for bind in bound]
    made = [event for event in made if not isinstance(event, t.Augment)]
    names = {_name(m, event) for event in made}
    return names.pop() if len(names) == 1 and names <= VIEWS else ""


def _name(m: Machine, event: t.Event | None) -> str:
    match event:
        case t.Invoke() | t.Attribute():
            return event.name
        case t.Call():
            dotted = m.dotted_of(event)
            return dotted.rpartition(".")[2] if dotted.startswith("torch.") else ""
    return ""
