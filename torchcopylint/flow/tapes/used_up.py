"""Values that an expression makes and uses up: something new is computed of them, and nobody holds them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.references import FunctionReference
from torchcopylint.flow.tapes import uses
from torchcopylint.flow.values import imports
from torchcopylint.flow.values.outside import Foreign
from torchcopylint.knowledge import table

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

MAX_STEPS = 8
"""So many calls of one chain are looked at."""
MAX_NAMES = 2
"""So many names are gone through."""
_MOVING = frozenset({"to", "cuda", "cpu"})
"""Methods whose result is the tensor itself, or a copy."""
_CONVERTING = {
    "bool": "bool",
    "byte": "uint8",
    "char": "int8",
    "double": "float64",
    "float": "float32",
    "half": "float16",
    "bfloat16": "bfloat16",
    "int": "int32",
    "long": "int64",
    "short": "int16",
}
"""Methods that convert, and copy what is of another dtype."""


def is_used_up(m: Machine, register: int, dtype: str, *, named: bool) -> bool:
    """Whether something new is computed of a tensor in a register, of a known `dtype`, or of views of it, and no more.

    `named` is whether it may have a name, if that is all that is done with the name.
    """
    return _is_used_up(m, register, dtype, MAX_NAMES if named else 0)


def _is_used_up(m: Machine, register: int, dtype: str, depth: int) -> bool:
    for _ in range(MAX_STEPS):
        event = m.consumer_of(register)
        if isinstance(event, t.Operate):
            return True
        if isinstance(event, t.Bind):
            return depth > 0 and _is_name_used_up(m, event, dtype, depth - 1)
        if isinstance(event, t.Make):
            # A list of what is joined.
            event = m.consumer_of(event.out)
        dotted = imports.ahead(m, event) if isinstance(event, t.Call | t.Invoke) else ""
        if dotted.startswith("torch."):
            op = table.function(dotted)
            return op is not None and op.shares == "fresh" and not op.writes and op.result == "tensor"
        if isinstance(event, t.Call):
            return _is_only_read(m, event, register)
        if not isinstance(event, t.Invoke) or event.base != register:
            return False
        if event.name not in _MOVING:
            op = table.tensor_method(event.name)
            if op is None or op.writes:
                return False
            if op.shares == "fresh" or _CONVERTING.get(event.name, dtype) != dtype:
                return True
        register = event.out
    return False


def _is_name_used_up(m: Machine, bind: t.Bind, dtype: str, depth: int) -> bool:
    """Whether all that is done with what a binding has put under a name is to compute something new of it."""
    loads = [event for event in m.index.of(t.Load) if event.name == bind.name]
    mine = [load for load in loads if bind.value in uses.bindings_before(m, load)]
    if not mine or m.unit.kind == "module" or uses.seen_from_inside(m, bind.name):
        return False
    return all(_is_used_up(m, load.out, dtype, depth) for load in mine)


def _is_only_read(m: Machine, call: t.Call, register: int) -> bool:
    """Whether a call hands a value to a function of the project that neither writes nor keeps it."""
    load = m.unit.definitions[call.function] if call.function >= 0 else None
    if not isinstance(load, t.Load) or load.name in m.unit.bound or any(a.stars for a in call.arguments):
        return False
    const = m.world.outer(m, load.name).const
    const = imports.value(m, const).const if isinstance(const, Foreign) else const
    summary = m.world.summary(const.unit) if isinstance(const, FunctionReference) else None
    if summary is None or summary.unknown:
        return False
    named = dict(zip(summary.parameters, (a.register for a in call.arguments if not a.keyword), strict=False))
    named |= {a.keyword: a.register for a in call.arguments if a.keyword}
    touched = {write.parameter for write in summary.writes} | {kept.kept for kept in summary.kept}
    touched |= {added.added for added in summary.added} | {name for pair in summary.pairs for name in pair}
    taking = {name for name, given in named.items() if given == register}
    return bool(taking) and taking <= set(summary.parameters) - touched
