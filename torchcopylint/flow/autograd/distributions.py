"""`torch.distributions`: what is asked of a distribution hangs on what it was made of, except for samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchcopylint.flow.autograd import grads
from torchcopylint.flow.model import TENSORS, Fact, Kind, Object, Sure, Value
from torchcopylint.flow.storages import reading, slots
from torchcopylint.flow.values import dtypes, memory
from torchcopylint.knowledge.distributions import handed_out

if TYPE_CHECKING:
    from torchcopylint.flow.running.machine import Machine
    from torchcopylint.flow.values.sites import Arguments

PREFIX = "torch.distributions."
HANGING = frozenset({"log_prob", "entropy", "rsample", "cdf", "icdf", "perplexity"})
"""Methods whose result hangs on what the distribution was made of."""
_CUT = frozenset({"sample", "sample_n"})
_FRACTIONS = frozenset(
    {"Beta", "Normal", "Uniform", "Gamma", "Dirichlet", "Exponential", "LogNormal", "HalfNormal", "Laplace", "Cauchy"}
    | {"StudentT", "Gumbel", "Kumaraswamy", "Chi2", "Pareto", "Weibull", "VonMises", "LogisticNormal"}
)
"""Distributions whose samples are numbers with fractions."""
_OF_FRACTIONS = ("samples", "fractions")
_OF_BASE = ("mean", "mode", "stddev", "variance")
"""What `Independent(base, 1)` hands out of its base, as that hands it out."""


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
    result = memory.fresh(m, site, grads.result_of(m, made, values, True))
    _keep(m, result.refs[0], arguments, site, name.rpartition(".")[2])
    return result


def _keep(m: Machine, ref: int, arguments: Arguments, site: int, name: str) -> None:
    """A distribution has the tensors that it was made of as attributes, by several names."""
    if name == "Independent":
        base = arguments.at(0)
        slots.bind_slot(m, (ref, ".base_dist"), base, site)
        for attribute in _OF_BASE:
            cells = [m.state.cell((one, f".{attribute}")) for one in base.refs]
            if len(cells) == 1 and cells[0] is not None:
                value = Value(cells[0].refs, cells[0].kind, None, cells[0].marks)
                slots.bind_slot(m, (ref, f".{attribute}"), value, site)
        return
    row = handed_out(name)
    if row is None or "**" in arguments.keywords:
        return
    given = {**dict(zip(row.parameters, arguments.positional, strict=False)), **arguments.keywords}
    for attribute, parameter in row.attributes.items():
        held = given.get(parameter, Value())
        if held.refs and all(m.state.object(one).kind in TENSORS for one in held.refs):
            slots.bind_slot(m, (ref, f".{attribute}"), held, site)


def method(m: Machine, name: str, arguments: Arguments, site: int, text: str) -> Value | None:
    """What a method of a distribution, the first of the arguments, returns; `None` if nobody knows."""
    made = Object(Kind.TENSOR, Sure.PROVEN, text=f"{text}(...)")
    if name in (*_CUT, "rsample") and any(_OF_FRACTIONS in m.state.object(r).config for r in arguments.at(0).refs):
        made = made._replace(dtype=dtypes.FLOATING)
    if name in _CUT:
        return memory.fresh(m, site, made._replace(requires_grad=Fact.NO, leaf=Fact.YES))
    if name not in HANGING:
        return None
    for value in arguments.positional[1:]:
        reading.read(m, value, site, "argument", name)
    made = grads.result_of(m, made, arguments.positional, True)
    open_ones = [r for r in arguments.at(0).refs if m.state.object(r).requires_grad is Fact.UNKNOWN]
    if open_ones and made.requires_grad is Fact.NO and m.state.mode.recording is not Fact.NO:
        # Nobody knows what it was made of.
        made = made._replace(requires_grad=Fact.UNKNOWN, leaf=Fact.UNKNOWN)
    return memory.fresh(m, site, made)
