"""What distributions hand out of what they were made of, compared with torch."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch
from torch import distributions

from torchcopylint.knowledge.distributions import handed_out

ATTRIBUTES = ("mean", "mode", "stddev", "variance")
OTHERWISE = {
    *("Distribution", "ExponentialFamily", "TransformedDistribution", "MixtureSameFamily", "Independent"),
    "LKJCholesky",
}
"""Classes that others inherit from or that are made of other distributions, and one whose first parameter is a size."""
MATRICES = ("covariance_matrix", "precision_matrix", "scale_tril")


def _given(name: str, parameter: str) -> Any:
    """A tensor that a parameter of a distribution may be."""
    if parameter in MATRICES:
        return torch.eye(2)
    if parameter == "cov_factor":
        return torch.rand(2, 1) + 0.1
    if parameter == "temperature":
        return torch.tensor([0.5])
    if name in ("Wishart",):
        return torch.tensor(3.0)
    if parameter == "total_count":
        return torch.full((2,), 4.0)
    if parameter == "high":
        return torch.full((2,), 2.0)
    return torch.rand(2) * 0.4 + (0.2 if parameter in ("probs", "low") else 4.0)


def _settings(name: str) -> list[dict[str, Any]]:
    """The ways to make a distribution: `probs` or `logits`, one of three matrices."""
    names = list(inspect.signature(getattr(distributions, name).__init__).parameters)[1:]
    names = [one for one in names if one not in ("validate_args", "args", "kwargs")]
    either = [one for one in names if one in ("probs", "logits", *MATRICES)]
    always = [one for one in names if one not in either]
    return [{one: _given(name, one) for one in (*always, *chosen)} for chosen in ([[one] for one in either] or [[]])]


def _memory(value: Any) -> int:
    return value.untyped_storage().data_ptr() if isinstance(value, torch.Tensor) else 0


PLAIN = sorted(
    name
    for name in distributions.__all__
    if isinstance(one := getattr(distributions, name), type) and issubclass(one, distributions.Distribution)
    if name not in OTHERWISE
)


@pytest.mark.parametrize("name", PLAIN)
def test_what_is_handed_out_is_what_it_was_made_of(name: str) -> None:
    row = handed_out(name)
    attributes = dict(row.attributes) if row is not None else {}
    for given in _settings(name):
        if name in ("Multinomial",):
            given["total_count"] = 4
        made = getattr(distributions, name)(**given)
        for attribute in {*given, *attributes, *ATTRIBUTES}:
            parameter = attributes.get(attribute)
            try:
                value = getattr(made, attribute)
            except (AttributeError, NotImplementedError):
                # Not every distribution has a mode, or a variance; what the table promises must be there.
                assert parameter is None, attribute
                continue
            owners = {one for one, tensor in given.items() if _memory(tensor) and _memory(tensor) == _memory(value)}
            if attribute == "total_count":
                continue  # numbers, as a rule
            assert owners == ({parameter} if parameter in given else set()), (given.keys(), attribute)


@pytest.mark.parametrize("name", [name for name in PLAIN if handed_out(name) is not None])
def test_its_parameters_stand_in_the_order_of_the_constructor(name: str) -> None:
    row = handed_out(name)
    names = list(inspect.signature(getattr(distributions, name).__init__).parameters)[1:]
    assert row is not None
    assert names[: len(row.parameters)] == list(row.parameters)
