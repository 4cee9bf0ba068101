"""Dtypes that calls name, or that follow from how a tensor is made: literals, ranges, random integers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torchcopylint.flow import tape as t
from torchcopylint.flow.model import ANY_ELEMENT, BUFFERS, REPEATS, REPEATS_LIKELY, UNKNOWN, Fact, Kind, Value
from torchcopylint.flow.tape import Dotted
from torchcopylint.flow.values import array_dtypes

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine
    from torchcopylint.flow.values.sites import Arguments

INTEGERS = frozenset({"int8", "int16", "int32", "int64", "uint8", "bool"})
FLOATS = frozenset({"float16", "float32", "float64", "bfloat16"})
_NAMED = INTEGERS | FLOATS | {"complex64", "complex128"}
_PYTHON_TYPES = {"builtins.int": "int64", "builtins.float": "float64", "builtins.bool": "bool"}
_ALIASES = {
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "long": "int64",
    "int": "int32",
    "short": "int16",
    "float_": "float64",
    "bool_": "bool",
    "FloatTensor": "float32",
    "DoubleTensor": "float64",
    "HalfTensor": "float16",
    "BFloat16Tensor": "bfloat16",
    "LongTensor": "int64",
    "IntTensor": "int32",
    "ShortTensor": "int16",
    "CharTensor": "int8",
    "ByteTensor": "uint8",
    "BoolTensor": "bool",
}
"""Other names of dtypes; the old tensor types, which `x.type(torch.FloatTensor)` is given, stand for one each."""
FLOATING, INTEGRAL, DEFAULT = "some float", "some integer", "the default float"
"""What is known of a dtype that is not known exactly."""
UNCONVERTED = "the default float, if nobody has converted it"
"""That of the parameters of a layer: whoever asks for another one gets a copy, unless all of the model has it."""
FRACTIONAL = frozenset(
    {"div", "true_divide", "__truediv__", "__rtruediv__", "mean", "std", "var", "norm", "softmax", "log_softmax"}
    | {"sqrt", "rsqrt", "reciprocal", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sigmoid", "logsumexp"}
    | {"sin", "cos", "tan", "sinh", "cosh", "tanh", "asin", "acos", "atan", "atan2", "asinh", "acosh", "atanh"}
)
"""Operations that make a float of whatever number they are given, or take nothing but floats."""
KEEPING = frozenset(
    {"clone", "detach", "flip", "roll", "repeat", "cat", "stack", "zeros_like", "ones_like", "empty_like"}
    | {"copy", "array", "concatenate", "vstack", "hstack", "dstack", "column_stack", "append", "insert", "delete"}
    | {"tile", "pad", "sort", "unique", "take", "fliplr", "flipud", "rot90"}
)
"""Operations that make something new of the dtype that they are given."""
_ARITHMETIC = frozenset(
    {f"__{side}{name}__" for side in ("", "r") for name in ("add", "sub", "mul", "pow")} | {"add", "sub", "mul", "pow"}
)
_JOINING = frozenset({"cat", "concat", "concatenate"})
_DOUBLES_OF_SHAPE = frozenset({"numpy.zeros", "numpy.ones", "numpy.empty"})
"""What makes float64 of a shape, where torch would take its default."""
MAX_LITERAL = 40
"""So many numbers of a literal are looked at."""


def named_integers(name: str) -> bool:
    """Whether what goes by a name is there to pick by, as `position_ids` and `input_ids` are: no float."""
    return name.endswith("_ids")


def named(arguments: Arguments) -> str:
    """The dtype that a call names, by keyword or by position, or an empty text."""
    found = map(of_constant, (arguments.keywords.get("dtype", UNKNOWN), *arguments.positional[1:]))
    return next(filter(None, found), "")


def of_constant(value: Value) -> str:
    """The dtype that a value stands for, such as `torch.uint8`, or an empty text."""
    if value.const in _PYTHON_TYPES:
        return _PYTHON_TYPES[str(value.const)]
    if isinstance(value.const, Dotted):
        name = value.const.rpartition(".")[2]
        name = _ALIASES.get(name, name)
        return name if name in _NAMED else ""
    return value.const if isinstance(value.const, str) and value.const in _NAMED else ""


def made(m: Machine, name: str, arguments: Arguments) -> str:
    """The dtype of what a factory (by its full name) makes without being told a dtype; else an empty text."""
    name = name.partition("(")[0]
    short = name.rpartition(".")[2]
    if short in ("randint", "randperm", "one_hot") or name in array_dtypes.COUNTS:
        return "int64"
    if name in array_dtypes.DOUBLES or (name in _DOUBLES_OF_SHAPE and len(arguments.positional) == 1):
        return "float64"
    literal = ""
    if short == "arange":
        literal = _literal(m, list(arguments.positional))
    elif short in ("tensor", "as_tensor", "array", "asarray"):
        literal = _literal(m, [arguments.at(0)])
    elif short == "full" and len(arguments.positional) > 1:
        literal = _literal(m, [arguments.at(1)])
    return "float64" if literal == DEFAULT and name.startswith("numpy.") else literal


def is_asked_for(short: str, arguments: Arguments) -> bool:
    """Whether a call says which dtype it wants, so that it is not what the values would make it."""
    wanted = arguments.keywords.get("dtype")
    if wanted is not None:
        return wanted.kind is not Kind.NONE
    # `**settings` has the dtype among other things, and `np.array(numbers, dtype)` has it in the second place.
    return "**" in arguments.keywords or (short in ("array", "asarray") and len(arguments.positional) > 1)


CHOOSING = frozenset({"where", "select", "choose", "piecewise"})
"""Operations whose result is of the dtype of what is chosen, not of what it is chosen by."""


def chosen(m: Machine, arguments: Arguments) -> str:
    """The dtype of `where(condition, one, other)`, if both are of one that is known."""
    found = {m.state.object(ref).dtype for value in arguments.positional[1:3] for ref in value.refs}
    whole = len(arguments.positional) == 3 and all(value.refs for value in arguments.positional[1:])
    return found.pop() if whole and len(found) == 1 else ""


def is_fraction(m: Machine, short: str, arguments: Arguments) -> bool:
    """Whether an operation, by the last part of its name, makes floats of tensors. A rounded quotient may be an
    integer."""
    return (short in FRACTIONAL and "rounding_mode" not in arguments.keywords) or _is_promoted(m, short, arguments)


def _is_promoted(m: Machine, short: str, arguments: Arguments) -> bool:
    """Whether an operation on tensors makes floats since one of the operands is a float, whatever the other one is."""
    if short in _JOINING:
        slots = [slot for ref in arguments.at(0).refs for slot in m.state.slot_names(ref)]
        cells = [cell for cell in map(m.state.cell, slots) if cell is not None]
        return any(_are_floats(m, cell.refs) for cell in cells)
    operands = arguments.positional if short in _ARITHMETIC else []
    return any(_are_floats(m, value.refs) or isinstance(value.const, float) for value in operands)


def _are_floats(m: Machine, refs: Sequence[int]) -> bool:
    return bool(refs) and all(m.state.object(ref).dtype in (*FLOATS, FLOATING, DEFAULT, UNCONVERTED) for ref in refs)


def same(one: str, other: str) -> Fact:
    """Whether two dtypes, of which something may be known, are one."""
    if not one or not other:
        return Fact.UNKNOWN
    if one in (FLOATING, INTEGRAL):
        return Fact.UNKNOWN if (one == FLOATING) == ("float" in other) else Fact.NO
    if one == UNCONVERTED:
        return Fact.UNKNOWN if other in ("float32", DEFAULT, FLOATING) else Fact.NO
    return Fact.YES if ("float32" if one == DEFAULT else one) == other else Fact.NO


def _literal(m: Machine, values: list[Value]) -> str:
    """The dtype of some numbers, lists of numbers included, if every one of them is known."""
    found = {type(number) for number in _numbers(m, values)}
    if float in found and found <= {float, int, bool}:
        return DEFAULT
    return {frozenset({int}): "int64", frozenset({bool}): "bool"}.get(frozenset(found), "")


def has_twins(m: Machine, value: Value) -> bool:
    """Whether a literal list of numbers has one of them twice."""
    found = _numbers(m, [value])
    return None not in found and len(found) != len(set(found))


def _numbers(m: Machine, values: list[Value]) -> list[object]:
    """The numbers of a literal; `None` among them for what is not known."""
    found: list[object] = []
    pending = list(values)
    while pending:
        value = pending.pop()
        if len(found) > MAX_LITERAL:
            return [None]
        if not value.refs:
            found.append(value.const)
            continue
        for ref in value.refs:
            slots = m.state.slot_names(ref)
            if m.state.object(ref).kind not in (Kind.LIST, Kind.TUPLE) or not slots or slots[0][1] == ANY_ELEMENT:
                return [None]
            for slot in slots:
                cell = m.state.cell(slot)
                pending.append(Value(cell.refs, cell.kind, cell.const) if cell is not None else Value())
    return found


def repeats(m: Machine, short: str, arguments: Arguments) -> str:
    """The flag of what names some numbers twice: random integers, a literal, the classes of a batch."""
    if short in ("randint", "randint_like"):
        sizes = [v for v in (*arguments.positional, arguments.keywords.get("size", Value())) if v.refs]
        one = any(set(_numbers(m, [size])) == {1} for size in sizes)
        return REPEATS if sizes and not one else ""
    if short in ("tensor", "as_tensor", "array"):
        first = arguments.at(0)
        return REPEATS if first.refs and has_twins(m, first) else ""
    if short in ("argmax", "argmin"):
        axis = next((arguments.keywords[k] for k in ("dim", "axis") if k in arguments.keywords), arguments.at(1))
        of_each = axis.const == -1 and _is_table(m, arguments.at(0))
        return REPEATS_LIKELY if of_each or (isinstance(axis.const, int) and axis.const >= 1) else ""
    if short in _BINNING:
        given = arguments.at(_BINNING[short])
        several = given.refs and all(m.state.object(ref).kind in BUFFERS for ref in given.refs)
        return REPEATS_LIKELY if several else ""
    if short == "multinomial":
        replaced = arguments.keywords.get("replacement", arguments.at(2))
        return REPEATS_LIKELY if replaced.const is True else ""
    return ""


_BINNING = {"bucketize": 0, "digitize": 0, "searchsorted": 1}
"""What says of each number of a tensor in which bin it is, and where that stands."""


def _is_table(m: Machine, value: Value) -> bool:
    """Whether something has a row for each of several things: the distances of each to each."""
    sites = [m.state.object(ref).site for ref in value.refs]
    calls = [m.unit.definitions[m.index.calls[site]] if site in m.index.calls else None for site in sites]
    return bool(calls) and all(isinstance(c, t.Call | t.Invoke) and m.dotted_of(c) == "torch.cdist" for c in calls)
