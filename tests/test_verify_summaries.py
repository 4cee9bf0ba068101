"""The short texts by which verification tells whether two runs ended with the same values."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
import pytest
import torch

from torchcopylint.verify.child.states import ends, summary


def named(value: Any) -> str:
    """A name for a case that is the same in every process: where a set has its items hangs on hashes."""
    return f"{{{', '.join(map(repr, sorted(value)))}}}" if isinstance(value, set) else repr(value)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.float32(0.25), np.float32(0.5)),
        (np.float32("nan"), np.float32(0.5)),
        (np.int64(3), np.int64(4)),
        (np.bool_(True), np.bool_(False)),
        (np.float32(1), np.float64(1)),
        (deque([1, 2]), deque([1, 3])),
        ({"a", "b"}, {"a", "c"}),
        ([np.float32(0.25)], [np.float32(0.5)]),
        (np.zeros(2), np.ones(2)),
        (torch.zeros(2), torch.ones(2)),
    ],
    ids=named,
)
def test_values_that_differ_have_other_summaries(one: Any, other: Any) -> None:
    assert summary(one) != summary(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.float32(0.1), np.float32(0.1) * np.float32(1 + 1e-7)),
        (torch.tensor(0.1), torch.tensor(0.1 * (1 + 1e-7))),
        ({"a", "b", "c"}, {"c", "b", "a"}),
        (deque([1, 2]), deque([1, 2], maxlen=2)),
    ],
    ids=named,
)
def test_what_is_equal_to_within_rounding_has_one_summary(one: Any, other: Any) -> None:
    assert summary(one) == summary(other)


def test_a_number_of_numpy_that_a_module_ends_with_is_compared() -> None:
    assert ends({}, {"largest": np.float32(0.5), "_hidden": 1, "called": len}) == {"|largest": "float32(0.5)"}
