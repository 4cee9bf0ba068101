"""Operations that return several tensors, and which of those backward needs again.

The generated tables say that such an operation saves its output; `tests/test_knowledge_several.py` writes each of them
to see which.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Outputs(NamedTuple):
    """How many tensors an operation returns, and the places of those that it saves."""

    number: int
    saved: tuple[int, ...]


_ALL_OF_TWO, _ALL_OF_THREE, _FIRST = Outputs(2, (0, 1)), Outputs(3, (0, 1, 2)), Outputs(2, (0,))
_OUTPUTS: Mapping[str, Outputs] = {
    "aminmax": _ALL_OF_TWO,
    "linalg.eig": _ALL_OF_TWO,
    "linalg.eigh": _ALL_OF_TWO,
    "linalg.qr": _ALL_OF_TWO,
    "qr": _ALL_OF_TWO,
    "linalg.lu": _ALL_OF_THREE,
    "linalg.svd": _ALL_OF_THREE,
    "svd": _ALL_OF_THREE,
    "linalg.cholesky_ex": _FIRST,
    "linalg.inv_ex": _FIRST,
    "linalg.slogdet": _FIRST,
    "slogdet": _FIRST,
    "std_mean": _FIRST,
}


def outputs_of(name: str) -> Outputs | None:
    """What an operation returns, by its full name; `None` if its outputs are not told apart."""
    return _OUTPUTS.get(name.removeprefix("torch.").removeprefix("Tensor."))
