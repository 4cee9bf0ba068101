"""Integer dtypes that follow from how a tensor is made: literals, ranges, random integers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow.model import Kind, Value

if TYPE_CHECKING:
    from torchcopylint.flow.machine import Machine
    from torchcopylint.flow.sites import Arguments

INTEGERS = frozenset({"int8", "int16", "int32", "int64", "uint8", "bool"})
FLOATS = frozenset({"float16", "float32", "float64", "bfloat16"})
KEEPING = frozenset(
    {"clone", "detach", "flip", "roll", "repeat", "cat", "stack", "zeros_like", "ones_like", "empty_like"}
)
"""Operations that make something new of the dtype that they are given."""
MAX_LITERAL = 40
"""So many numbers of a literal are looked at."""


def made(m: Machine, short: str, arguments: Arguments) -> str:
    """The dtype, if it is an integer one, of what a factory makes without being told a dtype; else an empty text."""
    if short in ("randint", "randperm"):
        return "int64"
    if short in ("arange", "range"):
        return "int64" if short == "arange" and _literal(m, list(arguments.positional)) == "int64" else ""
    if short in ("tensor", "as_tensor"):
        return _literal(m, [arguments.at(0)])
    if short == "full" and len(arguments.positional) > 1:
        return _literal(m, [arguments.at(1)])
    return ""


def _literal(m: Machine, values: list[Value]) -> str:
    """The dtype of some numbers, lists of numbers included, if every one of them is known."""
    found: set[type] = set()
    pending = list(values)
    looked = 0
    while pending:
        value = pending.pop()
        looked += 1
        if looked > MAX_LITERAL:
            return ""
        if not value.refs:
            found.add(type(value.const))
            continue
        for ref in value.refs:
            slots = m.state.slot_names(ref)
            if m.state.object(ref).kind not in (Kind.LIST, Kind.TUPLE) or not slots:
                return ""
            for slot in slots:
                cell = m.state.cell(slot)
                pending.append(Value(cell.refs, cell.kind, cell.const) if cell is not None else Value())
    return {frozenset({int}): "int64", frozenset({bool}): "bool"}.get(frozenset(found), "")
