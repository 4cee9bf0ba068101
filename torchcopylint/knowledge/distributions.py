"""What the distributions of torch hand out of what they were made of: `Normal(loc, scale).mean` is `loc` itself.

`tests/test_knowledge_distributions.py` compares the two under torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

_LOCATED = {"mode": "loc"}
_CENTRED = {"mean": "loc", "mode": "loc"}


class Handed(NamedTuple):
    """The parameters of a constructor, in order, and the attributes that are one of them, by its name."""

    parameters: tuple[str, ...]
    attributes: Mapping[str, str]


def _row(parameters: str, *, kept: str | None = None, others: Mapping[str, str] | None = None) -> Handed:
    """A class, by its parameters, those that it keeps as they are given (all, if nothing is said), and what else hands
    one of them out."""
    same = (parameters if kept is None else kept).split()
    return Handed(tuple(parameters.split()), {one: one for one in same} | dict(others or {}))


_TABLE: Mapping[str, Handed] = {
    "Bernoulli": _row("probs logits", others={"mean": "probs"}),
    "Binomial": _row("total_count probs logits", kept="probs logits"),
    "Cauchy": _row("loc scale", others=_LOCATED),
    "ContinuousBernoulli": _row("probs logits", kept="logits"),
    "Dirichlet": _row("concentration"),
    "Exponential": _row("rate"),
    "FisherSnedecor": _row("df1 df2"),
    "Gamma": _row("concentration rate"),
    "GeneralizedPareto": _row("loc scale concentration", others=_LOCATED),
    "Geometric": _row("probs logits"),
    "Gumbel": _row("loc scale", others=_LOCATED),
    "HalfCauchy": _row("scale"),
    "HalfNormal": _row("scale"),
    "InverseGamma": _row("concentration rate"),
    "Kumaraswamy": _row("concentration1 concentration0"),
    "Laplace": _row("loc scale", others=_CENTRED),
    "LogNormal": _row("loc scale"),
    "LogisticNormal": _row("loc scale"),
    "LowRankMultivariateNormal": _row("loc cov_factor cov_diag", others=_CENTRED),
    "MultivariateNormal": _row("loc covariance_matrix precision_matrix scale_tril", others=_CENTRED),
    "NegativeBinomial": _row("total_count probs logits", kept="probs logits"),
    "Normal": _row("loc scale", others=_CENTRED | {"stddev": "scale"}),
    "Pareto": _row("scale alpha", others={"mode": "scale"}),
    "Poisson": _row("rate", others={"mean": "rate", "variance": "rate"}),
    "RelaxedBernoulli": _row("temperature probs logits"),
    "RelaxedOneHotCategorical": _row("temperature probs logits", kept="temperature"),
    "StudentT": _row("df loc scale", others=_LOCATED),
    "Uniform": _row("low high"),
    "VonMises": _row("loc concentration", others=_CENTRED),
    "Weibull": _row("scale concentration"),
    "Wishart": _row("df covariance_matrix precision_matrix scale_tril"),
}
"""Others compute what they keep: `Categorical` divides by the sum, `Beta` stacks its two, `Chi2` halves."""


def handed_out(name: str) -> Handed | None:
    """What a distribution of this class hands out of what it was made of; `None` if nothing."""
    return _TABLE.get(name)
