"""Functions of NumPy that make a number of numbers, and an array of arrays: `np.exp(x)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow.model import BUFFERS, CONTAINERS, TENSORS, Kind, Object

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine
    from torchcopylint.flow.values.sites import Arguments
    from torchcopylint.knowledge.table import Op

OF_NUMBERS = frozenset(
    [
        *("abs", "absolute", "acos", "acosh", "add", "angle", "arccos", "arccosh", "arcsin", "arcsinh", "arctan"),
        *("arctan2", "arctanh", "around", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and", "bitwise_count"),
        *("bitwise_invert", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor"),
        *("cbrt", "ceil", "clip", "conj", "conjugate", "copysign", "cos", "cosh", "deg2rad", "degrees", "divide"),
        *("equal", "exp", "exp2", "expm1", "fabs", "fix", "float_power", "floor", "floor_divide", "fmax", "fmin"),
        *("fmod", "gcd", "greater", "greater_equal", "heaviside", "hypot", "interp", "invert", "isclose"),
        *("iscomplex", "isfinite", "isinf", "isnan", "isneginf", "isposinf", "lcm", "ldexp", "left_shift", "less"),
        *("less_equal", "log", "log10", "log1p", "log2", "logaddexp", "logaddexp2", "logical_and", "logical_not"),
        *("logical_or", "logical_xor", "maximum", "minimum", "mod", "multiply", "nan_to_num", "negative"),
        *("nextafter", "not_equal", "positive", "pow", "power", "rad2deg", "radians", "reciprocal", "remainder"),
        *("right_shift", "rint", "round", "searchsorted", "sign", "signbit", "sin", "sinc", "sinh", "spacing"),
        *("sqrt", "square", "subtract", "tan", "tanh", "true_divide", "trunc"),
    ]
)
"""Executed in the tests: of numbers, each returns a number, which `+=` does not change in place."""
_NOT_UNIVERSAL = frozenset(
    [
        *("angle", "around", "clip", "fix", "interp", "iscomplex", "isclose", "isneginf", "isposinf", "nan_to_num"),
        *("round", "searchsorted", "sinc"),
    ]
)
"""These are written in Python, and what they make of a tensor is another matter."""
_LOOKED_UP = {"searchsorted": slice(1, 2), "interp": slice(0, 1)}
"""The arguments that tell whether one number comes back or an array, where others are arrays in any case."""


def may_be_one(m: Machine, op: Op, arguments: Arguments) -> bool:
    """Whether a call may have made a number, as nobody knows an array among its arguments."""
    module, _, short = op.name.partition("(")[0].rpartition(".")
    if module != "numpy" or short not in OF_NUMBERS or "out" in arguments.keywords:
        return False
    values = [*arguments.positional[_LOOKED_UP.get(short, slice(None))], *arguments.keywords.values()]
    return not any(_is_array(m.state.object(ref)) for value in values for ref in value.refs)


def of_tensor(m: Machine, op: Op, arguments: Arguments) -> bool:
    """Whether a call makes a tensor of a tensor, as a universal function of NumPy does: `np.exp(t)`."""
    module, _, short = op.name.partition("(")[0].rpartition(".")
    if module != "numpy" or short not in OF_NUMBERS - _NOT_UNIVERSAL or "out" in arguments.keywords:
        return False
    objects = [m.state.object(ref) for value in arguments.positional for ref in value.refs]
    tensors = [obj for obj in objects if obj.kind in TENSORS]
    return bool(tensors) and not any(obj.kind is Kind.ARRAY for obj in objects)


def _is_array(obj: Object) -> bool:
    """Whether an object is no number: an element of an array is one, if the array has one dimension."""
    if obj.kind is Kind.ARRAY:
        return any(share.sure for share in obj.shares)
    return obj.kind in BUFFERS | CONTAINERS
