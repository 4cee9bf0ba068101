"""Writes that make of a value what is wanted for the moment, from itself alone: `image -= image.min()`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import EditedAlone
from torchcopylint.flow.model import Kind
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.tapes.inlining import HELPERS_NAME

if TYPE_CHECKING:
    from torchcopylint.flow.facts import Write
    from torchcopylint.flow.running.machine import Machine

_SYMBOLS = frozenset({"+=", "-=", "*=", "/=", "//=", "**="})
_FUNCTIONS = (
    "sqrt",
    "rsqrt",
    "exp",
    "log",
    "log1p",
    "log2",
    "log10",
    "neg",
    "negative",
    "reciprocal",
    "sigmoid",
    "square",
)
_BINARY = ("add", "sub", "subtract", "mul", "multiply", "div", "divide", "true_divide", "pow", "cumsum", "cumprod")
_ARITHMETIC = frozenset(f"{name}_" for name in (*_FUNCTIONS, *_BINARY))
"""What done twice gives something else again. To clamp, to round or to fill a state is to keep it in order."""


def found(m: Machine) -> Iterator[EditedAlone]:
    """What a unit that has been run says of its writes; an initialiser, an average and the like write what they own."""
    candidates = {site for site, write in m.writes.items() if write.named and write.reads_old}
    if not candidates or m.world.context(m):
        return
    alone = set(_alone(m, candidates))
    others = [write for site, write in m.writes.items() if site not in alone]
    in_helpers = _in_helpers(m) if others else frozenset()
    for site in sorted(alone):
        # Where something else comes in as well, in the same method, the field is brought up to date. That an optimizer
        # trains what a helper was given, to make something else of it, is not that.
        beside = {s for write in others if site not in in_helpers or write.form != "step" for s in write.storages}
        if not beside & set(m.writes[site].storages):
            yield EditedAlone(site, _parameter(m, m.writes[site]), _goes_on(m, m.writes[site]))


def _goes_on(m: Machine, write: Write) -> bool:
    """Whether the name that is written is bound anew behind it, to what is computed from it: `x -= a; x = x / b`."""
    return any(
        bind.site > write.site
        and not isinstance(m.unit.definitions[bind.value], t.Augment)
        and uses.is_computed_from(m, bind.value, write.root)
        for bind in m.index.binds.get(write.root, ())
        if bind.value >= 0
    )


def _in_helpers(m: Machine) -> frozenset[int]:
    """The augmented assignments to names of helpers that stand in the places of their calls: see `inlining`."""
    loads = [(event.site, m.unit.definitions[event.target]) for event in m.index.of(t.Augment)]
    return frozenset(site for site, loaded in loads if isinstance(loaded, t.Load) and HELPERS_NAME in loaded.name)


def _parameter(m: Machine, write: Write) -> str:
    """The parameter or buffer of a module that a write reaches."""
    of_module = any(m.state.object(storage).kind is Kind.MODULE for storage in write.storages)
    return write.chain[-1].result if of_module and write.chain else ""


def _alone(m: Machine, candidates: set[int]) -> Iterator[int]:
    events: list[t.Augment | t.Invoke] = [*m.index.of(t.Augment), *m.index.of(t.Invoke)]
    for event in events:
        if event.site not in candidates:
            continue
        if isinstance(event, t.Augment):
            operands, edits = [event.value], event.symbol in _SYMBOLS
        else:
            operands, edits = [argument.register for argument in event.arguments], event.name in _ARITHMETIC
        # A helper's name is not spelled as it is on the tape, where it was put in.
        target = m.unit.definitions[event.target if isinstance(event, t.Augment) else event.base]
        root = target.name if isinstance(target, t.Load) else m.writes[event.site].root
        if edits and not any(_from_elsewhere(m, register, root) for register in operands):
            yield event.site


def _from_elsewhere(m: Machine, register: int, root: str) -> bool:
    """Whether a value hangs on an argument of the unit, or on what a loop visits, other than by way of `root`."""
    parts = uses.expression(m, register, root)
    me = m.unit.first if m.unit.owner >= 0 else ""
    handed = {parameter.name for parameter in m.unit.parameters} - {me, root}
    loads = {part.name for part in parts if isinstance(part, t.Load)}
    return bool(loads & handed) or any(isinstance(part, t.Iterate) for part in parts)
