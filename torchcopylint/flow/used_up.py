"""Values that an expression makes and uses up: something new is computed of them, and nobody holds them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.knowledge import table

if TYPE_CHECKING:
    from torchcopylint.flow.machine import Machine

MAX_STEPS = 8
"""So many calls of one chain are looked at."""
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


def is_used_up(m: Machine, register: int, dtype: str) -> bool:
    """Whether something new is computed of a tensor in a register, of a known `dtype`, or of views of it, at once."""
    for _ in range(MAX_STEPS):
        event = m.consumer_of(register)
        if isinstance(event, t.Operate):
            return True
        if isinstance(event, t.Call) and m.dotted_of(event).startswith("torch."):
            op = table.function(m.dotted_of(event))
            return op is not None and op.shares == "fresh" and not op.writes and op.result == "tensor"
        if not isinstance(event, t.Invoke) or event.base != register:
            return False
        op = table.tensor_method(event.name)
        if op is None or op.writes:
            return False
        if op.shares == "fresh" or _CONVERTING.get(event.name, dtype) != dtype:
            return True
        register = event.out
    return False
