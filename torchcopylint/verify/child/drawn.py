"""Random numbers: what asks the system for a seed gets one that is drawn, so that two runs draw the same, and large
tensors are filled with the same numbers again and again. To draw each of them is most of what it takes to make a model
of its real size, and a finding does so in every run."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch

try:
    import numpy
except ImportError:
    numpy = None  # type: ignore[assignment]

_MANY = 1 << 16
"""Tensors with no more elements than that are filled as torch fills them."""
_DRAWN = 16381
"""So many are drawn: a prime, so that rows and channels differ where their length is a round number."""
_FLOATING = (torch.float32, torch.float64)
_PLAIN = (torch.Tensor, torch.nn.Parameter)
_replaced: set[str] = set()
"""The methods of tensors that have been replaced, each once in a process."""


def install() -> None:
    """Have numbers drawn so, and large tensors filled so, from now on."""
    if "seeds" not in _replaced:
        _replaced.add("seeds")
        if numpy is not None:
            _seed(numpy.random)
        random.Random = _Random  # type: ignore[misc]
    for name in ("uniform_", "normal_"):
        if name not in _replaced:
            _replaced.add(name)
            setattr(torch.Tensor, name, _repeating(getattr(torch.Tensor, name)))


def _seed(source: Any) -> None:
    """What NumPy's generators begin with, if nobody says it, comes from the one that scripts seed."""
    made, state = source.default_rng, source.RandomState

    def default_rng(seed: Any = None) -> Any:
        return made(source.randint(1 << 31) if seed is None else seed)

    def begin(self: Any, seed: Any = None) -> None:
        state.__init__(self, source.randint(1 << 31) if seed is None else seed)

    source.default_rng = default_rng
    source.RandomState = type("RandomState", (state,), {"__init__": begin})


class _Random(random.Random):
    def __init__(self, x: Any = None) -> None:
        super().__init__(random.getrandbits(64) if x is None else x)


def _repeating(draw: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def drawn(self: torch.Tensor, *given: Any, **named: Any) -> torch.Tensor:
        if type(self) not in _PLAIN or self.numel() <= _MANY or not _may_repeat(self):
            return draw(self, *given, **named)
        with torch.no_grad():
            flat = self.view(-1)
            first = draw(flat[:_DRAWN], *given, **named)
            many = flat.numel() // _DRAWN
            flat[_DRAWN : many * _DRAWN].view(many - 1, _DRAWN).copy_(first)
            rest = flat[many * _DRAWN :]
            rest.copy_(first[: len(rest)])
        return self

    return drawn


def _may_repeat(value: torch.Tensor) -> bool:
    """Whether nobody can tell how a tensor is written. torch refuses a leaf that is recorded, and has to say so."""
    recorded = torch.is_grad_enabled() and value.requires_grad
    return not recorded and value.dtype in _FLOATING and value.device.type == "cpu" and value.is_contiguous()
