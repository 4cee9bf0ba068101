"""Which of several outputs backward needs again, compared with torch."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from torchcopylint.knowledge import several, table

NAMES = sorted(several._OUTPUTS)


def _raises(name: str, place: int) -> bool:
    """Whether backward refuses once one of the outputs has been written."""
    x = (torch.rand(4, 4) + 3 * torch.eye(4)).requires_grad_()
    given = x @ x.T if name.endswith(("eigh", "cholesky_ex")) else x
    function: Any = torch
    for part in name.split("."):
        function = getattr(function, part)
    outputs = function(given, dim=1) if name in ("std_mean", "aminmax") else function(given)
    outputs[place].mul_(2)
    try:
        sum(one.sum().real for one in outputs if one.requires_grad).backward()
    except RuntimeError as error:
        return "modified by an inplace operation" in str(error)
    return False


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore")
def test_what_is_saved_is_what_backward_asks_for(name: str) -> None:
    known = several.outputs_of(f"torch.{name}")
    assert known is not None
    with pytest.raises(IndexError):
        _raises(name, known.number)
    assert tuple(place for place in range(known.number) if _raises(name, place)) == known.saved


@pytest.mark.parametrize("name", NAMES)
def test_the_tables_know_these_operations(name: str) -> None:
    op = table.function(f"torch.{name}")
    assert op is not None
    assert op.result == "tensors"
    assert any("output" in str(saved) for saved in op.saves)
