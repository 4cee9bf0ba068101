"""What a tensor is multiplied with, or divided by, is saved though it is a number, so that backward frees it."""

from __future__ import annotations

import pytest
import torch

from torchcopylint.flow.autograd.saving import FACTORS

ADDING = ("add", "sub", "__add__", "__radd__", "__rsub__", "rsub")


def _twice(name: str) -> None:
    x = torch.ones(3, requires_grad=True)
    y = getattr(x, name)(2.0) if hasattr(x, name) else getattr(torch, name)(x, 2.0)
    y.sum().backward()
    y.sum().backward()


@pytest.mark.parametrize("name", sorted(FACTORS))
def test_backward_runs_over_a_product_with_a_number_once(name: str) -> None:
    with pytest.raises(RuntimeError, match="a second time"):
        _twice(name)


@pytest.mark.parametrize("name", ADDING)
def test_backward_runs_over_a_sum_with_a_number_again(name: str) -> None:
    assert name not in FACTORS
    _twice(name)
