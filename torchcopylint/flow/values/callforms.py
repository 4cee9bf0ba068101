"""Which row of the table a call means, where an operation does different things by how it is called.

`x.max()` is a number in a tensor, `x.max(dim=1)` is two tensors, of which the second says where the values were found.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchcopylint.flow.model import CONTAINERS, TENSORS, Kind, Value
from torchcopylint.flow.values.state import kind_of
from torchcopylint.knowledge import table

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine
    from torchcopylint.flow.values.sites import Arguments
    from torchcopylint.knowledge.table import Op

_SWITCHES = ("as_tuple", "return_indices", "return_inverse", "inplace")
"""Keywords that say `True` for more results; a form of their own."""
_OF_ONE = frozenset(
    {"abs", "absolute", "ceil", "cos", "exp", "floor", "log", "negative", "sin", "sqrt", "square", "tanh"}
)
_OF_TWO = frozenset(
    {"add", "subtract", "multiply", "divide", "true_divide", "floor_divide", "power", "mod", "remainder"}
    | {"maximum", "minimum"}
)
"""Functions of numpy that take `out` behind their one or two operands."""
PLACES = frozenset({"max", "min", "median", "nanmedian", "mode", "kthvalue", "sort", "topk", "cummax", "cummin"})
"""Operations that return values, and where they were found."""
CHECKING = frozenset({"cholesky"})
"""Operations that are called to see whether they raise: here, whether a matrix is positive definite."""


def of_call(m: Machine, op: Op, arguments: Arguments) -> Op:
    """The row for this call; `op` itself where it has one row only, or nothing says which of them it is."""
    if not op.forms or not arguments.positional:
        return op
    base = op.name.partition("(")[0]
    if base == "numpy.array" and may_share(arguments):
        # Of old it copied where it had to; now it raises there.
        as_it_is = table.function("numpy.asarray")
        return of_call(m, as_it_is, arguments) if as_it_is is not None else op
    for form in _forms(m, op, base, arguments):
        name = f"{base}({form})"
        found = table.function(name) if name in op.forms else None
        if found is not None:
            return found
    if f"{base}(dim)" in op.forms and len(arguments.positional) > 1:
        # A number or a tensor beside it, and nobody knows which: the one returns two tensors, the other one.
        return op._replace(result="unknown", saves=frozenset(), saved=())
    return op


def may_share(arguments: Arguments) -> bool:
    """Whether a call says that nothing need be copied: `copy=False`, `copy=None`."""
    told = arguments.keywords.get("copy")
    return told is not None and (told.const is False or (told.kind is Kind.NONE and not told.refs))


def finds_places(op: Op) -> bool:
    """Whether a pooling also returns where it has found each maximum."""
    return op.result == "tensors" and "max_pool" in op.name


def out_by_place(op: Op, arguments: Arguments) -> Arguments:
    """The arguments of a function of numpy with `out` by its name, where it stands behind the operands."""
    short = op.name.removeprefix("numpy.")
    place = 3 if short == "clip" else 2 if short in _OF_TWO else 1 if short in _OF_ONE else 0
    if not place or short == op.name or len(arguments.positional) != place + 1:
        return arguments
    given = arguments.positional
    return arguments._replace(positional=given[:-1], keywords={**arguments.keywords, "out": given[-1]})


def inplace_by_name(op: Op, arguments: Arguments) -> Arguments:
    """The arguments of an activation with `inplace` by its name: it is the last of its parameters, and the only one
    that can be `True`, but for `training` before it. `F.leaky_relu(x, 0.2, True)`."""
    given = arguments.positional
    if not op.inplace_keyword or len(given) < 2 or given[-1].const is not True:
        return arguments
    last = op.short
    before = 3 if "dropout" in last else 4 if last == "rrelu" else len(given) - 1
    if len(given) - 1 != before:
        return arguments
    return arguments._replace(positional=given[:-1], keywords={**arguments.keywords, "inplace": given[-1]})


def argument(op: Op, arguments: Arguments, which: int | str) -> Value:
    """The argument that a row speaks of, whether it was passed by position or by keyword."""
    value = arguments.at(which)
    if not value.refs and isinstance(which, int) and which < len(op.arguments):
        return arguments.keywords.get(op.arguments[which], value)
    return value


def _forms(m: Machine, op: Op, base: str, arguments: Arguments) -> list[str]:
    first = kind_of(arguments.positional[0], m.state)
    second = arguments.at(1)
    kind = kind_of(second, m.state)
    if isinstance(second.const, str) and _repeats_in_group(second.const):
        return ["grouped"]
    found = [name for name in _SWITCHES if arguments.flag(name) is True]
    if may_share(arguments):
        found.append("copy=False")
    if "max_norm" in arguments.keywords:
        found.append("max_norm")
    if "dim" in arguments.keywords or "keepdim" in arguments.keywords or _is_number(second, kind):
        found.append("dim")
    if len(arguments.positional) > 2 and kind not in TENSORS:
        found.append("dim")
    if _has_axis(m, arguments):
        found.append("axis")
    if len(arguments.positional) == 1 and not arguments.keywords:
        found.append("condition")
    if "other" in arguments.keywords or kind in TENSORS or _has_graph(m, second):
        found.append("other")
    if first in TENSORS:
        found.append("tensor")
    elif first in (Kind.ARRAY, Kind.BYTES):
        found.append("array")
    elif first in CONTAINERS or first is Kind.NUMBER:
        found.append("list")
    return found


def _has_graph(m: Machine, value: Value) -> bool:
    """Whether a value that is nothing known hangs on a graph, as no number does: what a network has returned."""
    objects = [m.state.object(ref) for ref in value.refs]
    return bool(objects) and all(obj.kind is Kind.UNKNOWN and obj.graph for obj in objects)


def _has_axis(m: Machine, arguments: Arguments) -> bool:
    """Whether a function of NumPy is to go along some of the dimensions, so that it makes an array."""
    axis = arguments.keywords.get("axis", arguments.at(1))
    kind = kind_of(axis, m.state)
    told = "axis" in arguments.keywords or _is_number(axis, kind) or kind is Kind.TUPLE
    return (told and kind is not Kind.NONE) or arguments.flag("keepdims") is True


def _repeats_in_group(pattern: str) -> bool:
    """Whether a pattern of `einops` puts an axis that was not there beside another one: `b x -> (b h) x`."""
    before, arrow, after = pattern.partition("->")
    known = set(re.findall(r"\w+", before)) | {"1"}
    groups = (group.split() for group in re.findall(r"\(([^)]*)\)", after))
    return bool(arrow) and any(len(group) > 1 and not known.issuperset(group) for group in groups)


def _is_number(value: Value, kind: Kind) -> bool:
    return (isinstance(value.const, int) and not isinstance(value.const, bool)) or (kind is Kind.NUMBER)
