"""What the distributions of torch hand out of what they were made of: `Normal(loc, scale).mean` is `loc` itself.

`tests/test_knowledge_distributions.py` compares the two under torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

_LOCATED = {"mode": "loc"}
_CENTRED = {"mean": "loc", "mode": "loc"}
_COPIES: Mapping[str, str] = {}


class Handed(NamedTuple):
    """The parameters of a constructor, in order, and the attributes that are one of them, by its name."""

    parameters: tuple[str, ...]
    attributes: Mapping[str, str]


_TABLE: Mapping[str, tuple[str, str, Mapping[str, str]]] = {
    "Bernoulli": ("probs logits", "probs logits", {"mean": "probs"}),
    "Binomial": ("total_count probs logits", "probs logits", _COPIES),
    "Cauchy": ("loc scale", "loc scale", _LOCATED),
    "ContinuousBernoulli": ("probs logits", "logits", _COPIES),
    "Dirichlet": ("concentration", "concentration", _COPIES),
    "Exponential": ("rate", "rate", _COPIES),
    "FisherSnedecor": ("df1 df2", "df1 df2", _COPIES),
    "Gamma": ("concentration rate", "concentration rate", _COPIES),
    "GeneralizedPareto": ("loc scale concentration", "loc scale concentration", _LOCATED),
    "Geometric": ("probs logits", "probs logits", _COPIES),
    "Gumbel": ("loc scale", "loc scale", _LOCATED),
    "HalfCauchy": ("scale", "scale", _COPIES),
    "HalfNormal": ("scale", "scale", _COPIES),
    "InverseGamma": ("concentration rate", "concentration rate", _COPIES),
    "Kumaraswamy": ("concentration1 concentration0", "concentration1 concentration0", _COPIES),
    "Laplace": ("loc scale", "loc scale", _CENTRED),
    "LogNormal": ("loc scale", "loc scale", _COPIES),
    "LogisticNormal": ("loc scale", "loc scale", _COPIES),
    "LowRankMultivariateNormal": ("loc cov_factor cov_diag", "loc cov_factor cov_diag", _CENTRED),
    "MultivariateNormal": (
        "loc covariance_matrix precision_matrix scale_tril",
        "loc covariance_matrix precision_matrix scale_tril",
        _CENTRED,
    ),
    "NegativeBinomial": ("total_count probs logits", "probs logits", _COPIES),
    "Normal": ("loc scale", "loc scale", _CENTRED | {"stddev": "scale"}),
    "Pareto": ("scale alpha", "scale alpha", {"mode": "scale"}),
    "Poisson": ("rate", "rate", {"mean": "rate", "variance": "rate"}),
    "RelaxedBernoulli": ("temperature probs logits", "temperature probs logits", _COPIES),
    "RelaxedOneHotCategorical": ("temperature probs logits", "temperature", _COPIES),
    "StudentT": ("df loc scale", "df loc scale", _LOCATED),
    "Uniform": ("low high", "low high", _COPIES),
    "VonMises": ("loc concentration", "loc concentration", _CENTRED),
    "Weibull": ("scale concentration", "scale concentration", _COPIES),
    "Wishart": (
        "df covariance_matrix precision_matrix scale_tril",
        "df covariance_matrix precision_matrix scale_tril",
        _COPIES,
    ),
}
"""For each class the parameters, those that are kept as they are given, and what else hands one of them out.

Others compute what they keep: `Categorical` divides by the sum, `Beta` stacks its two, `Chi2` halves.
"""


@lru_cache(maxsize=64)
def handed_out(name: str) -> Handed | None:
    """What a distribution of this class hands out of what it was made of; `None` if nothing."""
    row = _TABLE.get(name)
    if row is None:
        return None
    parameters, kept, others = row
    return Handed(tuple(parameters.split()), {one: one for one in kept.split()} | dict(others))
