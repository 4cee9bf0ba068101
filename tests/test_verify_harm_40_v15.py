"""What verification assumes and the file contradicts, each with a twin of which the opposite holds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from test_verify_programs import the, verified

from torchcopylint.base.verification import Verdict
from torchcopylint.verify.run import Verifier
from torchcopylint.verify.slicing.asking import asked
from torchcopylint.verify.slicing.sizes import Setting

EVERY_THIRD = """\
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width, depth=6):
        super().__init__()
        self.depth = depth
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        shortcuts = []
        for d in range(depth):
            if {made}:
                shortcuts.append(nn.Sequential(nn.Linear(width, width), nn.ReLU()))
            else:
                shortcuts.append(None)
        self.shortcuts = nn.ModuleList(shortcuts)

    def forward(self, x):
        rest = x
        for d in range(self.depth):
            x = self.layers[d](x)
            if d % 3 == 2:
                x = self.shortcuts[d](rest)
                x += rest
                rest = torch.relu(x)
        return rest
"""

FROM_SCRATCH = """\
import torch


class Scale:
    def __init__(self, width=3):
        self.weight = {weight}
        self.bias = torch.zeros(width, requires_grad=True)

    def forward(self, x):
        return x * self.weight + self.bias

    def update(self):
        with torch.no_grad():
            self.weight -= 0.1 * self.weight.grad
            self.bias -= 0.1 * self.bias.grad
"""

DEFAULT_DEVICE = """\
import torch
from torch import nn


class Trainer:
    def __init__(self, path, epochs=3, device="{device}"):
        if not path.endswith(".json"):
            raise ValueError(path)
        self.epochs = epochs
        self.device = device
        self.model = nn.Linear(4, 1)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def train(self, loader):
        for x, y in loader:
            x = x.to(self.device)
            x.clamp(0, 0.1)
            loss = (self.model(x) - y.to(self.device)).pow(2).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
"""

NUMBERS = """\
import numpy as np
import torch
from torch import nn

data = np.load("rows.npz")
rows = torch.FloatTensor(data["rows"])
model = nn.Linear(rows.shape[-1], 1)
rows.clamp(0, 0.1)
loss = model(rows).mean()
loss.backward({graph}=True)
print(loss, model.weight.grad)
"""

CALLS_ITSELF = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, path, width=4):
        super().__init__()
        if not path.endswith(".json"):
            raise ValueError(path)
        self.layer = nn.Linear(width, width)

    def forward(self, x):
        return self.layer(x)

    def predict(self, x):
        y = {me}(x)
        y.clamp(0, 0.1)
        return y
"""

MADE = """\
import torch
from elsewhere import forward
from torch import nn


def train(loader, model, optimizer, meter):
    criterion = nn.CrossEntropyLoss()
    for x, y in loader:
        loss = criterion(forward(model, [x][5]), y)
        {trained}
        meter.update(loss.data[0])
"""


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(timeout=20) as one:
        yield one


def test_what_is_made_every_third_turn_is_used_every_third_turn(verifier: Verifier) -> None:
    text = EVERY_THIRD.format(made="d % 3 == 2")
    result = verified(text, the(text, "TCL202"), verifier)
    assert result.verdict is Verdict.CONFIRMED
    assert not any("left out" in item.text for item in result.evidence)


def test_what_is_made_in_other_turns_stays_there(verifier: Verifier) -> None:
    # Nothing stands where it is used: the code fails before the step, whatever is assumed of turns.
    text = EVERY_THIRD.format(made="d % 3 == 1")
    result = verified(text, the(text, "TCL202"), verifier)
    assert sum("every 3 turns" in item.text for item in result.evidence) <= 1


def test_backward_has_run_over_the_fields_of_an_object_whose_gradients_are_asked_for(verifier: Verifier) -> None:
    text = FROM_SCRATCH.format(weight="torch.randn(width, requires_grad=True) * 0.1")
    result = verified(text, the(text, "TCL308"), verifier)
    assert result.verdict is Verdict.CONFIRMED
    assert any("backward has run over what the fields" in item.text for item in result.evidence)


@pytest.mark.parametrize("device", ["cuda", "cuda:1", "cpu"])
def test_the_device_that_is_a_default_is_the_one_that_is_there(device: str, verifier: Verifier) -> None:
    text = DEFAULT_DEVICE.format(device=device)
    result = verified(text, the(text, "TCL602"), verifier)
    assert result.verdict is Verdict.CONFIRMED
    # The move is run as it stands, and nothing is made in its place.
    assert not any("makes another `x`" in item.text for item in result.evidence)


@pytest.mark.parametrize("graph", ["retain_graph", "retain_variables"])
def test_a_tensor_is_made_of_what_holds_numbers_elsewhere(graph: str, verifier: Verifier) -> None:
    text = NUMBERS.format(graph=graph)
    result = verified(text, the(text, "TCL602"), verifier)
    assert result.verdict is Verdict.CONFIRMED
    assert any("as it was called before" in item.text for item in result.evidence) == (graph == "retain_variables")
    assert any(item.text.startswith("the whole file") for item in result.evidence)
    assert any("it prints" in item.text for item in result.evidence)


def test_a_matrix_that_stands_in_is_made_for_what_the_file_gives_it() -> None:
    message = "mat1 and mat2 shapes cannot be multiplied ({rows}x10 and {matrix})"
    first = asked(Setting(4, 2, 0), message.format(rows=5, matrix="4x4"), "")
    assert first is not None
    assert first.last == 4
    second = asked(first, message.format(rows=5, matrix="4x4"), "")
    assert second is not None
    assert (second.size, second.last) == (10, 0)
    # Another matrix is one that the file makes: what is given has to fit that.
    other = asked(first, message.format(rows=5, matrix="4x7"), "")
    assert other is not None
    assert other.size == 4


@pytest.mark.parametrize("me", ["self", "other"])
def test_an_object_that_is_called_has_its_forward(me: str, verifier: Verifier) -> None:
    text = CALLS_ITSELF.format(me=me)
    result = verified(text, the(text, "TCL602"), verifier)
    assert result.verdict is Verdict.CONFIRMED
    assert any("`other(...)`" in item.text for item in result.evidence) == (me == "other")
    # What the object computes is not made in its place.
    assert not any(item.text.startswith("`y` ") for item in result.evidence)


@pytest.mark.parametrize(
    ("trained", "verdict"),
    [
        ("loss.backward()", Verdict.CONFIRMED),
        ("print(loss)", Verdict.INCONCLUSIVE),
    ],
)
def test_what_is_made_is_one_number_if_backward_runs_over_it(
    trained: str, verdict: Verdict, verifier: Verifier
) -> None:
    text = MADE.format(trained=trained)
    result = verified(text, the(text, "TCL106"), verifier)
    assert any("`loss` is a tensor" in item.text for item in result.evidence)
    assert result.verdict is verdict
