"""What the engine says of the dtypes of NumPy's arrays, beside what NumPy makes.

Each expression is revealed by the engine and evaluated by NumPy. Where the engine says a dtype it must be NumPy's, and
for those in `TOLD` it must say one.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from torchcopylint import check_source
from torchcopylint.flow.library import drawing
from torchcopylint.flow.values import array_dtypes

_ARGUMENTS = {
    "eye": "3",
    "identity": "3",
    "tri": "3",
    "kaiser": "3, 8.6",
    **dict.fromkeys(("hanning", "hamming", "blackman", "bartlett"), "3"),
    **dict.fromkeys(("linspace", "logspace", "geomspace"), "1, 2, 3"),
    **dict.fromkeys(("random", "random_sample", "rand", "randn", "standard_normal", "standard_exponential"), "3"),
    **dict.fromkeys(("standard_cauchy",), "3"),
    **dict.fromkeys(("geometric", "logseries"), "0.5, 3"),
    **dict.fromkeys(("randint", "integers"), "0, 3, 3"),
    **dict.fromkeys(("binomial", "negative_binomial"), "3, 0.5, 3"),
    **dict.fromkeys(("normal", "uniform", "laplace", "logistic", "gumbel", "lognormal"), "0.0, 1.0, 3"),
    **dict.fromkeys(("beta", "gamma", "f", "wald", "vonmises"), "0.5, 2.0, 3"),
    "triangular": "0.0, 1.0, 2.0, 3",
    "hypergeometric": "3, 3, 2, 3",
    "dirichlet": "(1.0, 2.0), 3",
    "multinomial": "3, (0.5, 0.5), 3",
    "multivariate_normal": "(0.0, 0.0), ((1.0, 0.0), (0.0, 1.0)), 3",
}


def _call(name: str) -> str:
    short = name.rpartition(".")[2]
    owner = name.removesuffix(f".{short}").replace("numpy.random.Generator", "np.random.default_rng(0)")
    return f"{owner.replace('numpy', 'np')}.{short}({_ARGUMENTS.get(short, '2.0, 3')})"


MADE = [_call(name) for name in sorted(array_dtypes.DOUBLES | array_dtypes.COUNTS)]
ARRAYS = {
    "f8": "np.linspace(1, 2, 3)",
    "f4": "np.ones(3, dtype=np.float32)",
    "i8": "np.arange(1, 4)",
    "i4": "np.ones(3, dtype=np.int32)",
    "u1": "np.ones(3, dtype=np.uint8)",
    "b1": "np.ones(3, dtype=bool)",
}
_AVERAGES = ("mean", "std", "var")
_WIDE = ("f8", "f4", "i8", "i4")
FRACTIONS = [
    *(f"np.{name}({array})" for name in sorted(array_dtypes.FRACTIONAL - set(_AVERAGES)) for array in _WIDE),
    *(f"np.{name}(np.stack([{array}, {array}]), axis=0)" for name in _AVERAGES for array in _WIDE),
    *("np.sqrt(u1)", "np.exp(u1)"),
    *(f"np.ones((2, 3), dtype=np.float32).{name}(axis=0)" for name in ("mean", "std", "var")),
]
SIDES = (*ARRAYS, "2", "0.5")
ARITHMETIC = [
    *(f"{one} {sign} {other}" for sign in "+*/" for one in SIDES for other in SIDES if {one, other} & set(ARRAYS)),
    *(f"{one} {sign} {other}" for sign in ("//", "%", "**") for one in ("f8", "f4", "i8") for other in ("2", "f8")),
    *(f"{one} {sign} {other}" for sign in "&|^" for one in ("b1", "i8") for other in ("b1", "i8")),
    *("~b1", "~i8", "-f8", "-i4", "f8 > 1", "i8 == 2"),
]
OTHERS = [
    *("np.array([1.0, 2.0])", "np.array([1, 2])", "np.array([True])", "np.array([[1, 2.5]])", "np.asarray([0.5])"),
    *("np.full(3, 0.5)", "np.full(3, 1)", "np.arange(3)", "np.arange(0, 1, 0.5)", "np.zeros(3)", "np.ones((2, 2))"),
    *("np.concatenate([f8, f8])", "np.stack([f4, f4])", "np.vstack((i8, i8))", "np.concatenate([f8, f4])"),
    *("f8.copy()", "f8.reshape(1, 3)", "f8[::2]", "i8[1:]", "f8.astype(np.float32)", "f8.cumsum()", "f8.clip(0, 1)"),
    *("np.random.RandomState(0).rand(3)", "np.random.RandomState(0).randint(0, 3, size=3)", "np.random.choice(5, 3)"),
    *("np.where(f8 > 1, f8, f8)", "np.argsort(f8)", "np.histogram(f8)[0]", "np.round(f4)", "np.abs(i8)"),
]
TOLD = frozenset(
    [
        *(*MADE, *(one for one in FRACTIONS if "u1" not in one)),
        *("f8 * f4", "f8 / 2", "2 * f4", "i8 / 2", "u1 / 2", "i8 * 0.5", "f8 + i8", "b1 & b1"),
        *("np.array([1.0, 2.0])", "np.full(3, 0.5)", "np.arange(3)", "np.concatenate([f8, f8])", "np.stack([f4, f4])"),
        *("np.random.RandomState(0).rand(3)", "np.random.RandomState(0).randint(0, 3, size=3)"),
    ]
)


@pytest.mark.parametrize("expression", [*MADE, *FRACTIONS, *ARITHMETIC, *OTHERS])
def test_a_dtype_that_is_told_is_that_of_numpy(expression: str) -> None:
    names = {**ARRAYS, "x": expression}
    lines = ["import numpy as np", *(f"{name} = {value}" for name, value in names.items())]
    given: dict[str, object] = {}
    with np.errstate(all="ignore"):
        exec("\n".join(lines), given)
    found = check_source("\n".join([*lines, "# torchcopylint: reveal[x]", "print(x)"]), "a.py")
    (answer,) = (finding.message for finding in found if finding.code == "TCL006")
    told = re.search(r"dtype: (\w+)", answer)
    made = given["x"]
    assert isinstance(made, np.ndarray)
    assert told is not None or expression not in TOLD
    assert told is None or told[1] == str(made.dtype)


SIZED = {
    **dict.fromkeys(("rand", "randn", "random", "random_sample"), ()),
    **dict.fromkeys(("standard_normal", "standard_exponential", "standard_cauchy"), ()),
    **dict.fromkeys(("geometric", "logseries"), (0.5,)),
    **dict.fromkeys(("randint", "integers"), (0, 3)),
    **dict.fromkeys(("normal", "uniform", "laplace", "logistic", "gumbel", "lognormal"), (0.0, 1.0)),
    **dict.fromkeys(("beta", "gamma", "f", "wald", "vonmises"), (0.5, 2.0)),
    **dict.fromkeys(("binomial", "negative_binomial"), (3, 0.5)),
    "triangular": (0.0, 1.0, 2.0),
    "hypergeometric": (3, 3, 2),
    "choice": ([1, 2],),
}


@pytest.mark.parametrize("name", sorted(drawing.SIZE_AT))
def test_the_size_stands_where_it_is_looked_for_and_without_one_a_number_is_drawn(name: str) -> None:
    arguments = SIZED.get(name, (2.0,))
    assert drawing.SIZE_AT[name] == len(arguments)
    for source in (np.random.RandomState(0), np.random.default_rng(0)):
        draw = getattr(source, name, None)
        if draw is None:
            continue
        assert np.ndim(draw(*arguments)) == 0
        assert np.shape(draw(*arguments, 3)) == (3,)
