"""The views whose edit `flow/tapes/scratch.py` takes for one of all elements, executed."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from torchcopylint.flow.tapes.scratch import PARTIAL, VIEWS

MATRIX = torch.arange(12.0).reshape(6, 2)
ARGUMENTS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("flatten", "ravel", "squeeze", "t", "adjoint", "diagonal"), ()),
    **dict.fromkeys(("transpose", "swapaxes", "swapdims", "permute", "movedim", "moveaxis"), (1, 0)),
    **dict.fromkeys(("view", "reshape"), (-1,)),
    **dict.fromkeys(("view_as", "reshape_as"), (torch.zeros(12),)),
    "unflatten": (0, (2, 3)),
    "unsqueeze": (0,),
    "unfold": (0, 2, 2),
}


@pytest.mark.parametrize("name", sorted(VIEWS))
def test_it_shares_memory_and_has_all_elements_unless_it_is_partial(name: str) -> None:
    given = torch.complex(MATRIX, MATRIX) if name in ("view_as_real", "real", "imag") else MATRIX
    if name in ("view_as_real", "view_as_complex"):
        made = getattr(torch, name)(given)
    else:
        found = getattr(given, name)
        made = found(*ARGUMENTS[name]) if name in ARGUMENTS else found
    assert made.untyped_storage().data_ptr() == given.untyped_storage().data_ptr()
    size = made.numel() * made.element_size()
    assert (size < given.numel() * given.element_size()) is (name in PARTIAL)
