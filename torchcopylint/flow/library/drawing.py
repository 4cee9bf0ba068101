"""Random numbers of NumPy: one number, or an array of as many as a size says."""

from __future__ import annotations

from collections.abc import Sequence

from torchcopylint.flow.model import (
    BUFFERS,
    CONTAINERS,
    DIMENSIONS,
    NDARRAY,
    REPEATS_LIKELY,
    Kind,
    Object,
    Sure,
    Value,
)
from torchcopylint.flow.running.machine import Machine
from torchcopylint.flow.values import memory
from torchcopylint.flow.values.sites import Arguments, Site
from torchcopylint.knowledge.table import Op

_PREFIX, _GENERATOR = "numpy.random.", f"{memory.GENERATOR}."
SIZE_AT = {
    **dict.fromkeys(("random", "random_sample", "rand", "randn", "standard_normal", "standard_exponential"), 0),
    **dict.fromkeys(("standard_cauchy",), 0),
    **dict.fromkeys(("choice", "exponential", "poisson", "standard_gamma", "standard_t", "chisquare", "rayleigh"), 1),
    **dict.fromkeys(("weibull", "power", "pareto", "zipf", "geometric", "logseries"), 1),
    **dict.fromkeys(("randint", "integers", "normal", "uniform", "laplace", "logistic", "gumbel", "lognormal"), 2),
    **dict.fromkeys(("beta", "gamma", "f", "wald", "vonmises", "binomial", "negative_binomial"), 2),
    **dict.fromkeys(("triangular", "hypergeometric"), 3),
}
"""Where the size stands, behind the generator. Without one, and of numbers, each draws one number. Executed in
the tests."""


def draw(m: Machine, op: Op, arguments: Arguments, at: Site) -> Value | None:
    """What is drawn, or `None` if the row of the operation tells it: an array."""
    if not op.name.startswith(_PREFIX):
        return None
    method = op.name.startswith(_GENERATOR)
    short = op.short
    values = arguments.positional[method:]
    size = arguments.keywords.get("size", arguments.keywords.get("out"))
    if short not in SIZE_AT:
        return None
    sized = len(values) > SIZE_AT[short] if size is None else size.kind is not Kind.NONE
    made = _array(short, at, _repeats(short, values, arguments))
    if op.result == "number":
        return memory.fresh(m, at.site, made) if sized else Value(kind=Kind.NUMBER)
    if short == "choice":
        # Without a size, one of what there is to choose from.
        return memory.fresh(m, at.site, made) if sized else memory.unknown(m, at.site, f"{at.name}.{at.op}")
    several = BUFFERS | CONTAINERS
    given = [ref for value in (*values, *arguments.keywords.values()) for ref in value.refs]
    if sized or any(m.state.object(ref).kind in several for ref in given):
        return None
    return Value(kind=Kind.NUMBER)


def _repeats(short: str, values: Sequence[Value], arguments: Arguments) -> bool:
    """Whether whole numbers are drawn that are put back, and more than one, so that some are likely the same."""
    at = SIZE_AT[short]
    size = arguments.keywords.get("size", values[at] if len(values) > at else Value())
    replaced = arguments.keywords.get("replace", values[2] if len(values) > 2 else Value(const=True))
    kept = short == "choice" and replaced.const is not True
    return short in ("randint", "integers", "choice") and size.const != 1 and not kept


def _array(short: str, at: Site, repeats: bool) -> Object:
    dtype = "" if short == "choice" else "int64"
    flags = frozenset({NDARRAY, DIMENSIONS, REPEATS_LIKELY} if repeats else {NDARRAY, DIMENSIONS})
    return Object(Kind.ARRAY, Sure.PROVEN, dtype=dtype, text=f"{at.op}(...)", flags=flags)
