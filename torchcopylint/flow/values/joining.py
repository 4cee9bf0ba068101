"""How what a name, a field or an element holds on two paths joins."""

from __future__ import annotations

from torchcopylint.flow.model import MAX_MARKS, MAX_REFS, Cell, Kind, join_kinds, whole_cell
from torchcopylint.flow.references import AppliedReference, ClassReference, FunctionReference, OneOf
from torchcopylint.flow.tape import Dotted

MAX_OPTIONS = 6
"""A name, or a table, has so many functions or classes at most, for each of them to be called."""


def join_cells(a: Cell, b: Cell) -> Cell:
    """One holder on two paths."""
    if a == b:
        return a
    refs = a.refs if a.refs == b.refs else tuple(sorted({*a.refs, *b.refs}))
    marks = a.marks | b.marks
    if len(refs) > MAX_REFS:
        return Cell(site=a.site)
    if len(marks) > MAX_MARKS:
        marks = frozenset(sorted(marks)[:MAX_MARKS])
    same = a.const == b.const and type(a.const) is type(b.const)
    const = a.const if same else None if refs else _either(a.const, b.const)
    kind = join_kinds(a.kind, b.kind) if same or const is None else Kind.FUNCTION
    origin = a.origin if a.origin == b.origin else None
    plain = a.plain or b.plain or (bool(refs) and (_is_plain(a) or _is_plain(b)))
    return whole_cell((refs, kind, const, marks, max(a.site, b.site), origin, plain))


def _either(a: object, b: object) -> OneOf | None:
    """One of two functions or classes: `layer = nn.LSTM if gated else nn.RNN`."""
    options = (*_options(a), *_options(b))
    return OneOf(tuple(dict.fromkeys(options))) if None not in options and len(options) <= MAX_OPTIONS else None


def _options(const: object) -> tuple[object, ...]:
    """What a constant stands for that is called; `None` if it is nothing of the kind."""
    if isinstance(const, OneOf):
        return const.options
    called = isinstance(const, ClassReference | FunctionReference | AppliedReference)
    return (const if called or (isinstance(const, Dotted) and const.startswith("torch.nn.")) else None,)


def _is_plain(cell: Cell) -> bool:
    return not cell.refs and cell.kind in (Kind.NUMBER, Kind.STRING)
