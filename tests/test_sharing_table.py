"""Every row of `docs/what-copies-what-shares.md`, executed: storages, version counters, gradients."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sharing_table import GROUPS, ONE_SIDED, Row, operation
from torch import nn
from torch.nn import functional

PAGE = Path(__file__).resolve().parent.parent / "docs" / "what-copies-what-shares.md"
ROWS = [pytest.param(row, id=f"{group}:{row.shown}") for group, rows in GROUPS.items() for row in rows]
CALLS = [
    pytest.param(row, call, shares, id=f"{group}:{call}")
    for group, rows in GROUPS.items()
    for row in rows
    for calls, shares in ((row.shares, True), (row.copies, False))
    for call in calls
]
every_row = pytest.mark.parametrize("row", ROWS)
every_call = pytest.mark.parametrize(("row", "call", "shares"), CALLS)


def variables() -> dict[str, Any]:
    leaf = torch.ones(2, 2, requires_grad=True)
    return {
        "leaf": leaf,
        "x": leaf * 1,
        "d": leaf.double() * 1,
        "h": leaf.half() * 1,
        "y": torch.ones(2, 2),
        "a": np.ones((2, 2), dtype="float32"),
    }


def run(call: str) -> tuple[Any, Any]:
    """What a call is made on, and its result."""
    given = variables()
    names = re.findall(r"(?<![\w.\"'])[a-z]+\b(?!\()", call)
    base = next(given[name] for name in names if name in given)
    modules = {"torch": torch, "np": np, "nn": nn, "F": functional, "copy": copy}
    return base, eval(call, modules | given)


def memory(thing: Any) -> int:
    """The address of a tensor's or array's storage; of anything else, one of its own."""
    if isinstance(thing, torch.Tensor):
        return thing.untyped_storage().data_ptr()
    return thing.__array_interface__["data"][0] if isinstance(thing, np.ndarray) else id(thing)


@every_call
def test_the_storage_is_shared_or_not_as_the_row_says(row: Row, call: str, shares: bool) -> None:
    base, result = run(call)
    assert (memory(result) == memory(base)) is shared_by(row, shares)


def shared_by(row: Row, shares: bool) -> bool:
    """What the knowledge table says; where that is "maybe", what the row says of the call."""
    relation = operation(row).shares
    return shares if relation == "maybe" else relation != "fresh"


@every_call
def test_writes_are_counted_together_as_the_row_says(row: Row, call: str, shares: bool) -> None:
    base, result = run(call)
    if not shares or not isinstance(result, torch.Tensor) or not isinstance(base, torch.Tensor):
        # What does not share has nothing to count together, and arrays do not count.
        assert not shares or not operation(row).versioned
        return
    before = result._version
    with torch.no_grad():
        base.add_(0)
    assert (result._version > before) is operation(row).versioned


@every_call
def test_the_graph_is_kept_as_the_row_says(row: Row, call: str, shares: bool) -> None:
    base, result = run(call)
    if isinstance(base, torch.Tensor) and base.requires_grad and isinstance(result, torch.Tensor):
        assert (result.requires_grad and not result.is_leaf) is operation(row).differentiable
    elif isinstance(result, torch.Tensor) and base is not result:
        assert not result.requires_grad


@every_row
def test_what_depends_is_shown_both_ways(row: Row) -> None:
    both = bool(row.shares) and bool(row.copies)
    assert both == (operation(row).shares == "maybe" and row.name not in ONE_SIDED)


@every_row
def test_the_same_object_comes_back_where_the_row_says_so(row: Row) -> None:
    if operation(row).shares == "same":
        base, result = run(row.shown)
        assert result is base


def test_every_group_is_on_the_page_once() -> None:
    assert re.findall(r"<!-- sharing: (\w+) -->", PAGE.read_text(encoding="utf-8")) == list(GROUPS)
