"""Loss modules and the functions whose rows speak for them."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch
from torch import nn

from torchcopylint.knowledge import table
from torchcopylint.knowledge.losses import function_of, weights_of

LOSSES = sorted(name for name in dir(nn) if name.endswith("Loss"))
OTHERWISE = {"AdaptiveLogSoftmaxWithLoss": "a layer with parameters, of which there is no function"}


@pytest.mark.parametrize("name", [name for name in LOSSES if name not in OTHERWISE])
def test_a_loss_module_has_the_function_of_its_name(name: str) -> None:
    op = function_of(f"torch.nn.{name}")
    assert op is not None
    short = op.name.rpartition(".")[2]
    assert f"F.{short}(" in _source(name)


def _source(name: str) -> str:
    return inspect.getsource(getattr(nn, name).forward)


@pytest.mark.parametrize(
    "name", ["BCELoss", "BCEWithLogitsLoss", "L1Loss", "MSELoss", "SmoothL1Loss", "HuberLoss", "KLDivLoss"]
)
def test_what_the_function_keeps_of_the_target_the_module_keeps(name: str) -> None:
    op: Any = function_of(f"torch.nn.{name}")
    assert isinstance(op, table.Op)
    x = torch.full((3,), 0.4, requires_grad=True)
    target = torch.full((3,), 0.2)
    loss = getattr(nn, name)()(x, target)
    target.zero_()
    if any(saved.argument == 1 for saved in op.saved):
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()
    else:
        loss.backward()


def test_what_is_no_loss_has_none() -> None:
    assert function_of("torch.nn.Linear") is None
    assert function_of("mine.MSELoss") is None


@pytest.mark.parametrize("name", [name for name in LOSSES if weights_of(f"torch.nn.{name}")])
def test_the_weights_that_a_loss_keeps_are_the_tensors_that_it_is_given(name: str) -> None:
    for field, place in weights_of(f"torch.nn.{name}").items():
        made, weight = getattr(nn, name), torch.ones(3)
        before = list(inspect.signature(made).parameters.values())[:place]
        loss = made(*(parameter.default for parameter in before), weight)
        assert getattr(loss, field) is weight
        assert field in dict(loss.named_buffers())
