"""What nobody has written is zero: memory that is handed out again tells nothing of what was in it before.

What a run and its altered twin are compared by must differ by what was altered, and not by what `empty` happens to
find.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

import torch

try:
    import numpy
except ImportError:
    numpy = None  # type: ignore[assignment]

_M_PERTURB = -6
_ZERO = 0xFF
"""The C library fills what it hands out with the complement of this byte."""


@cache
def memory() -> bool:
    """Have the C library hand out zeros, and say whether it does. That goes for all that is allocated from now on."""
    try:
        return sys.platform == "linux" and bool(ctypes.CDLL(None).mallopt(_M_PERTURB, _ZERO))
    except (OSError, AttributeError):  # a C library that has no such thing
        return False


def arrays() -> None:
    """The same for memory that NumPy keeps for itself, and for all where the C library does not do it."""
    if numpy is not None:
        _fill(numpy)
    if not memory():
        _fill(torch)


def _fill(module: Any) -> None:
    module.empty, module.empty_like = _filled(module.empty), _filled(module.empty_like)


def _filled(make: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose result is filled with zeros, if it holds numbers; what it is given to write into stays."""
    if getattr(make, "fills", False):
        return make

    def made(*given: Any, **named: Any) -> Any:
        value = make(*given, **named)
        if named.get("out") is None:
            if isinstance(value, torch.Tensor):
                with torch.no_grad():
                    value.zero_()
            elif not value.dtype.hasobject:
                value.fill(0)
        return value

    made.fills = True  # type: ignore[attr-defined]
    return made
