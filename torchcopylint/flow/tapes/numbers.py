"""Writes whose outcome depends on numbers: into a dtype that has no fractions, and through an index that repeats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.facts import AccumulatedOnce, Truncated
from torchcopylint.flow.model import BUFFERS, REPEATS, REPEATS_LIKELY, How, Kind, Sure, Value
from torchcopylint.flow.values import dtypes, naming
from torchcopylint.flow.values.state import kind_of

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine
    from torchcopylint.flow.values.sites import Arguments

_ARITHMETIC = frozenset({"+=", "-=", "*=", "//=", "%=", "**=", "add_", "sub_", "mul_", "pow_", "remainder_", "fmod_"})
_DIVISION = frozenset({"/=", "div_", "divide_", "true_divide_"})


def note_stored(m: Machine, target: Value, value: Value, op: str, site: int, name: str) -> None:
    """A value is stored into a tensor or an array as it is: a fraction is cut off by an integer dtype."""
    found = _integers(m, target)
    if found is None:
        return
    if isinstance(value.const, float) and not value.refs and not value.const.is_integer():
        m.fact(Truncated(site, name, op, found[0], found[1], "stored", found[2]))


def note_arithmetic(m: Machine, target: Value, value: Value, op: str, site: int, name: str) -> None:
    """Arithmetic in place, whose result has fractions and no place to put them: this raises."""
    found = _integers(m, target)
    if found is None or found[0] == "bool":
        return
    fraction = isinstance(value.const, float) and not value.refs
    number = value.kind is Kind.NUMBER and not value.refs
    if (op in _ARITHMETIC and fraction) or (op in _DIVISION and number):
        m.fact(Truncated(site, name, op, found[0], found[1], "raises", found[2]))


def note_method(m: Machine, name: str, arguments: Arguments, site: int, text: str) -> None:
    """A method that writes its receiver with a number."""
    if len(arguments.positional) == 2 and not arguments.keywords:
        target, value = arguments.positional
        if name == "fill_":
            note_stored(m, target, value, name, site, text)
        elif name in _ARITHMETIC or name in _DIVISION:
            note_arithmetic(m, target, value, name, site, text)


def _integers(m: Machine, target: Value) -> tuple[str, int, Sure] | None:
    """The integer dtype of what is written, where it was made, and how sure that is."""
    if len(target.refs) != 1:
        return None
    obj = m.state.object(target.refs[0])
    if obj.kind not in BUFFERS or obj.dtype not in dtypes.INTEGERS:
        return None
    return obj.dtype, obj.site, obj.sure


def note_accumulated(m: Machine, item: t.Item, symbol: str, site: int, text: str) -> None:
    """`x[index] += v`: an element that the index names twice is counted once."""
    if symbol not in ("+=", "-="):
        return
    parts = [_repeats(m, m.value(part)) for part in item.subscript if not isinstance(part, t.Slice)]
    sures = [sure for sure in parts if sure is not None]
    if sures and min(sures) is not Sure.NOT:
        index = naming.index_text(m, item.subscript)
        m.fact(AccumulatedOnce(site, text, index, symbol, min(sures)))


def _repeats(m: Machine, value: Value) -> Sure | None:
    """How sure it is that an index names an element twice; `None` for a plain number, which is no matter."""
    if not value.refs:
        return None if value.kind is Kind.NUMBER or value.const is ... else Sure.NOT
    if kind_of(value, m.state) is Kind.LIST:
        return Sure.PROVEN if dtypes.has_twins(m, value) else Sure.NOT
    if len(value.refs) != 1 or kind_of(value, m.state) not in BUFFERS:
        return Sure.NOT
    shares = m.state.object(value.refs[0]).shares
    if any(share.how in (How.INDEX, How.ROW) for share in shares):
        # One of them, or some: these may be different.
        return Sure.NOT
    flags = {flag for share in shares for flag in m.state.object(share.storage).flags}
    return Sure.PROVEN if REPEATS in flags else Sure.LIKELY if REPEATS_LIKELY in flags else Sure.NOT
