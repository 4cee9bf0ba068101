"""The garbage collector is left as it was found."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from torchcopylint.analysis import Unreadable, analyse
from torchcopylint.base.collecting import THRESHOLD, rare_collections


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_collections_are_rarer_only_inside() -> None:
    gc.set_threshold(700, 10, 10)
    with rare_collections():
        assert gc.get_threshold() == (THRESHOLD, 10, 10)
    assert gc.get_threshold() == (700, 10, 10)


@pytest.mark.parametrize("chosen", [0, THRESHOLD + 1])
def test_who_wants_none_or_still_fewer_gets_them(chosen: int) -> None:
    gc.set_threshold(chosen, 10, 10)
    with rare_collections():
        assert gc.get_threshold()[0] == chosen


def test_an_analysis_leaves_no_trace() -> None:
    gc.set_threshold(701, 11, 12)
    analyse("import torch\n", filename="a.py")
    with pytest.raises(Unreadable):
        analyse("def (", filename="a.py")
    assert gc.get_threshold() == (701, 11, 12)
