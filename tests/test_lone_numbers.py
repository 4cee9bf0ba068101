"""The functions of NumPy that `flow/library/lone_numbers.py` takes for such as make a number of numbers, executed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from torchcopylint.flow.library.lone_numbers import OF_NUMBERS

TIMES = np.arange(3.0)
GIVEN: dict[str, tuple[Any, ...]] = {
    "searchsorted": (TIMES, 1.5),
    "interp": (1.5, TIMES, TIMES),
    "clip": (1.5, 0.0, 1.0),
    "ldexp": (1.5, 2),
    "gcd": (4, 6),
    "lcm": (4, 6),
    **dict.fromkeys(("bitwise_count", "bitwise_invert", "bitwise_not", "invert"), (2,)),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor"), (2, 1)),
    **dict.fromkeys(("bitwise_left_shift", "bitwise_right_shift", "left_shift", "right_shift"), (2, 1)),
}


@pytest.mark.parametrize("name", sorted(OF_NUMBERS))
def test_of_numbers_it_makes_a_number(name: str) -> None:
    function = getattr(np, name)
    two = isinstance(function, np.ufunc) and function.nin == 2
    made = function(*GIVEN.get(name, (0.5, 1.5) if two or name == "isclose" else (0.5,)))
    assert isinstance(made, np.generic | bool)
