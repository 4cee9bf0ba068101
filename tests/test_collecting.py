"""The garbage collector is left as it was found, and finds little to do."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from torchcopylint.analysis import DEFAULT_LIMITS, Unreadable, analyse
from torchcopylint.base.collecting import THRESHOLD, rare_collections
from torchcopylint.project.modules import Modules


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


TRAINS = """
import torch


class Net(torch.nn.Module):
    def __init__(self, scale=False):
        super().__init__()
        self.linear = torch.nn.Linear(2, 2)
        self.scale = scale

    def forward(self, x):
        for _ in range(3):
            x = halved(self.linear(x), fully=self.scale)
        return x


def halved(x, fully=False):
    if fully:
        x.mul_(0.25)
    return x.mul_(0.5)


def train(net, batches, losses):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for batch in batches:
        loss = net(batch).sum()
        loss.backward()
        optimizer.step()
        losses.append(loss)
    return [lambda: halved(batch, True) for batch in batches]
"""


@pytest.fixture
def uncollected() -> Iterator[None]:
    analyse(TRAINS, filename="a.py")
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def left_over() -> list[str]:
    """The types of the engine's objects that only a collection finds; other garbage may be of whatever ran before."""
    gc.set_debug(gc.DEBUG_SAVEALL)
    gc.collect()
    found = [type(one).__name__ for one in gc.garbage if type(one).__module__.startswith("torchcopylint.flow")]
    gc.set_debug(0)
    gc.garbage.clear()
    return found


@pytest.mark.usefixtures("uncollected")
def test_what_was_known_of_a_file_goes_without_a_collection() -> None:
    analyse(TRAINS, filename="a.py")
    assert len(left_over()) < 5


@pytest.mark.usefixtures("uncollected")
def test_so_does_what_was_known_of_files_that_import_one_another(tmp_path: Path) -> None:
    net = f"from losses import kept\n{TRAINS}"
    (tmp_path / "net.py").write_text(net)
    (tmp_path / "losses.py").write_text("from net import halved\n\n\ndef kept(x):\n    return halved(x)\n")
    modules = Modules(str(tmp_path), DEFAULT_LIMITS)
    modules.analyse(str(tmp_path / "net.py"), net, "net.py")
    assert len(left_over()) < 5
