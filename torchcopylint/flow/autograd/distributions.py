"""`torch.distributions`: what is asked of a distribution hangs on what it was made of, except for samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow.autograd import grads
from torchcopylint.flow.model import Fact, Kind, Object, Sure, Value
from torchcopylint.flow.storages import reading
from torchcopylint.flow.values import dtypes, memory

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine
    from torchcopylint.flow.values.sites import Arguments

PREFIX = "torch.distributions."
_HANGING = frozenset({"log_prob", "entropy", "rsample", "cdf", "icdf", "perplexity"})
_CUT = frozenset({"sample", "sample_n"})
_FRACTIONS = frozenset(
    {"Beta", "Normal", "Uniform", "Gamma", "Dirichlet", "Exponential", "LogNormal", "HalfNormal", "Laplace", "Cauchy"}
    | {"StudentT", "Gumbel", "Kumaraswamy", "Chi2", "Pareto", "Weibull", "VonMises", "LogisticNormal"}
)
"""Distributions whose samples are numbers with fractions."""
_OF_FRACTIONS = ("samples", "fractions")


def is_one(obj: Object) -> bool:
    """Whether an object is a distribution of torch."""
    return obj.type == PREFIX


def make(m: Machine, arguments: Arguments, site: int, name: str) -> Value:
    """A distribution is made of tensors."""
    values = [*arguments.positional, *arguments.keywords.values()]
    for value in values:
        reading.read(m, value, site, "argument", name)
    config = (_OF_FRACTIONS,) if name.rpartition(".")[2] in _FRACTIONS else ()
    made = Object(Kind.OTHER, Sure.PROVEN, type=PREFIX, text=f"{name}(...)", config=config)
    return memory.fresh(m, site, grads.result_of(m, made, values, True))


def method(m: Machine, name: str, arguments: Arguments, site: int, text: str) -> Value | None:
    """What a method of a distribution, the first of the arguments, returns; `None` if nobody knows."""
    made = Object(Kind.TENSOR, Sure.PROVEN, text=f"{text}(...)")
    if name in (*_CUT, "rsample") and any(_OF_FRACTIONS in m.state.object(r).config for r in arguments.at(0).refs):
        made = made._replace(dtype=dtypes.FLOATING)
    if name in _CUT:
        return memory.fresh(m, site, made._replace(requires_grad=Fact.NO, leaf=Fact.YES))
    if name not in _HANGING:
        return None
    for value in arguments.positional[1:]:
        reading.read(m, value, site, "argument", name)
    return memory.fresh(m, site, grads.result_of(m, made, arguments.positional, True))
