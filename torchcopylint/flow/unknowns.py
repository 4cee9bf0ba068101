"""Calls of what nobody knows: they look at their arguments, make something, and train by their name."""

from __future__ import annotations

import re

from torchcopylint.flow import grads, kinds, memory, naming, reading, slots, writing
from torchcopylint.flow.machine import Machine
from torchcopylint.flow.model import Kind, Sure, Value
from torchcopylint.flow.sites import Arguments

_TRAINING_NAME = re.compile(
    r"(?:^|[._])(?:train|fit|run_epoch|epoch|optimi[sz]e|learn|train_step|training_step)(?:_\w+)?$"
)

BACKWARD_NAMES = frozenset({"backward", "manual_backward"})


def call_unknown(m: Machine, arguments: Arguments, site: int, name: str) -> Value:
    """Nobody knows what is called: it looks at its arguments, and makes something."""
    for value in (*arguments.positional, *arguments.keywords.values()):
        reading.read(m, value, site, "argument", name)
        slots.field_read(m, value.root, site, "argument", name)
    maybe_trains(m, arguments, site, name)
    maybe_backward(m, arguments, site, name)
    return memory.unknown(m, site, f"{name}(...)")


def maybe_backward(m: Machine, arguments: Arguments, site: int, name: str) -> None:
    """`accelerator.backward(loss)`, `self.manual_backward(loss)`: somebody else runs backward over a loss."""
    if name.rpartition(".")[2] in BACKWARD_NAMES and arguments.positional:
        loss = arguments.positional[0]
        grads.backward(m, loss, site, arguments, naming.key_text(m, loss.root) or "the loss")


def maybe_trains(m: Machine, arguments: Arguments, site: int, name: str) -> None:
    """A call that by its name trains the models it is given, writes their parameters."""
    if not _TRAINING_NAME.search(name):
        return
    for value in (*arguments.positional, *arguments.keywords.values()):
        for ref in value.refs:
            obj = m.state.object(ref)
            if obj.kind is Kind.UNKNOWN and kinds.named_model(obj.text):
                memory.refine(m, Value((ref,)), Kind.MODULE, Sure.HINT)
                obj = m.state.object(ref)
            if obj.kind is Kind.MODULE:
                target = Value((ref,), obj.kind, None, value.marks, value.root)
                writing.write(m, target, site, op=f"{name}(...)", form="step", name=obj.text, cause=f"{name}(...)")
