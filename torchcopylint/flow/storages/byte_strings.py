"""What is known to be `bytes` where it is taken for a buffer: nobody may write those."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import Kind
from torchcopylint.flow.tapes import uses

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchcopylint.flow.model import Value
    from torchcopylint.flow.running.machine import Machine

_MAKING = frozenset(
    {
        *("read", "read_bytes", "readexactly", "recv", "recv_bytes", "getvalue", "encode", "tobytes", "to_bytes"),
        *("pack", "dumps", "digest", "compress", "decompress", "SerializeToString"),
        *("b64encode", "b64decode", "hexlify", "unhexlify", "urandom", "token_bytes"),
    }
)
"""Methods and functions that return `bytes`, given that the result is taken for a buffer."""
_MAX_STEPS = 6


def are_given(m: Machine, value: Value, given: Sequence[int]) -> bool:
    """Whether the first argument of a call, a value out of a register, is of `bytes`: as a text, by what made it, or as
    a name or a slice for that: `file.read()[4:]`."""
    objects = [m.state.object(ref) for ref in value.refs]
    if value.kind is Kind.STRING or (objects and all(obj.kind is Kind.STRING for obj in objects)):
        return True
    made = [obj.text.partition("(")[0].rpartition(".")[2] for obj in objects]
    return (bool(made) and all(name in _MAKING for name in made)) or (bool(given) and _is_made(m, given[0], _MAX_STEPS))


def _is_made(m: Machine, register: int, steps: int) -> bool:
    made = m.unit.definitions[register] if register >= 0 and steps else None
    if isinstance(made, t.Load):
        bound = uses.bindings_before(m, made)
        return bool(bound) and all(_is_made(m, one, steps - 1) for one in bound)
    if isinstance(made, t.Item):
        return isinstance(made.subscript[0], t.Slice) and _is_made(m, made.base, steps - 1)
    if isinstance(made, t.Call):
        return m.dotted_of(made).rpartition(".")[2] in _MAKING
    return isinstance(made, t.Invoke) and made.name in _MAKING
