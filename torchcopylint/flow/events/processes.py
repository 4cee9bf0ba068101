"""What `multiprocessing` makes and starts: queues, contexts, processes that run a function of the file."""

from __future__ import annotations

from torchcopylint.flow import tape as t
from torchcopylint.flow.autograd import unknowns
from torchcopylint.flow.interprocedural import passing
from torchcopylint.flow.model import Kind, Value
from torchcopylint.flow.references import FunctionReference
from torchcopylint.flow.running.machine import Machine
from torchcopylint.flow.running.special import special
from torchcopylint.flow.storages import queues, slots
from torchcopylint.flow.values import kinds, naming
from torchcopylint.flow.values.sites import Arguments

_SPAWNING = ("spawn", "start_processes")


@special(*kinds.QUEUES)
def _queue(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    return queues.make(m, event.site, naming.text_of(m, event.out))


@special(*(f"{package}.get_context" for package in kinds.MULTIPROCESSING))
def _context(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    """A context has what the package has."""
    return Value(const=t.Dotted(kinds.MULTIPROCESSING[0]))


@special(*(f"{package}.{name}" for package in kinds.MULTIPROCESSING for name in ("Process", *_SPAWNING)))
def _start(m: Machine, arguments: Arguments, event: t.Call | t.Invoke, name: str) -> Value:
    """A function is handed to another process: evidence for what its parameters are."""
    spawned = name.rpartition(".")[2] in _SPAWNING
    target = (
        arguments.keywords.get("fn", arguments.at(0)) if spawned else arguments.keywords.get("target", arguments.at(1))
    )
    given = arguments.keywords.get("args", arguments.at(1 if spawned else 3))
    if isinstance(target.const, FunctionReference) and len(given.refs) == 1 and m.world.is_own(target.const.unit):
        # What is spawned is told its number first.
        values = [Value(kind=Kind.NUMBER)] if spawned else []
        while m.state.cell((given.refs[0], f"[{len(values) - spawned}]")) is not None:
            values.append(slots.slot_value(m, (given.refs[0], f"[{len(values) - spawned}]")))
        unit = m.world.unit(target.const.unit)
        m.world.note_arguments(m, unit.number, passing.bind(unit, Arguments(values, {})))
    return unknowns.call_unknown(m, arguments, event.site, name)
