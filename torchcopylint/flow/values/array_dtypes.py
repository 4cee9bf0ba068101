"""Dtypes of NumPy's arrays that no call names: what functions make by themselves, and what arithmetic does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torchcopylint.flow.model import Kind, Value

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine

_MADE = ("linspace", "logspace", "geomspace", "eye", "identity", "tri", "hanning", "hamming", "blackman", "bartlett")
_DRAWN = (
    *("random", "standard_normal", "standard_exponential", "standard_cauchy", "normal", "uniform", "laplace"),
    *("logistic", "gumbel", "lognormal", "exponential", "standard_gamma", "standard_t", "chisquare", "rayleigh"),
    *("weibull", "power", "pareto", "beta", "gamma", "f", "wald", "vonmises", "triangular", "dirichlet"),
    *("multivariate_normal",),
)
_COUNTED = ("randint", "poisson", "zipf", "geometric", "logseries", "binomial", "negative_binomial", "hypergeometric")
DOUBLES = frozenset(
    [
        *(f"numpy.{name}" for name in (*_MADE, "kaiser")),
        *(f"numpy.random.{name}" for name in (*_DRAWN, "rand", "randn", "random_sample")),
        *(f"numpy.random.Generator.{name}" for name in _DRAWN),
    ]
)
"""What makes float64 unless a call names another dtype. Executed in the tests."""
COUNTS = frozenset(
    [
        *(f"numpy.random.{name}" for name in (*_COUNTED, "multinomial")),
        *(f"numpy.random.Generator.{name}" for name in (*_COUNTED[1:], "integers", "multinomial")),
    ]
)
"""What draws int64 unless a call names another dtype. Executed in the tests."""
FRACTIONAL = frozenset(
    {"sqrt", "cbrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "arcsin", "arccos"}
    | {"arctan", "sinh", "cosh", "tanh", "arcsinh", "arctanh", "arccosh", "deg2rad", "rad2deg", "mean", "std", "var"}
    | {"sinc", "degrees", "radians"}
)
"""Functions and methods that make floats: float64 of wide integers, and of a float what it is. Executed in the
tests."""
WIDE = frozenset({"int32", "int64", "uint32", "uint64"})
"""Integers of which fractions are float64; of narrower ones they are narrower."""
_FLOATS = frozenset({"float16", "float32", "float64"})
_INTEGERS = WIDE | {"int8", "int16", "uint8", "uint16"}


def fraction(dtype: str) -> str:
    """The dtype of the square root, say, of an array of some dtype; an empty text where that is not known."""
    return dtype if dtype in _FLOATS else "float64" if dtype in WIDE else ""


def arithmetic(m: Machine, symbol: str, values: Sequence[Value]) -> str:
    """The dtype of arithmetic on arrays and numbers, or an empty text.

    A number of Python's takes on what the array is (a fraction makes float64 of integers), and float64 stays what it
    is with anything that is real.
    """
    told = {m.state.object(ref).dtype for value in values for ref in value.refs if _is_array(m, ref)}
    others = [value for value in values if not any(_is_array(m, ref) for ref in value.refs)]
    if "float64" in told and told <= _FLOATS | _INTEGERS | {"bool", ""}:
        # Whatever else takes part, real numbers have nothing wider.
        return "float64"
    if len(told) != 1 or any(not isinstance(value.const, int | float) for value in others):
        return ""
    dtype = told.pop()
    if dtype in _FLOATS:
        return dtype
    if dtype in _INTEGERS and (symbol == "/" or any(isinstance(value.const, float) for value in others)):
        return "float64"
    # An array of truth values keeps its dtype with others like it alone: `flags + 1` counts.
    return dtype if dtype in _INTEGERS or (dtype == "bool" and not others and symbol in "~&|^") else ""


def _is_array(m: Machine, ref: int) -> bool:
    return m.state.object(ref).kind is Kind.ARRAY
