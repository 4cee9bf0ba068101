"""What keeps a run from the steps of a finding, and no longer does, each with a twin of which the opposite holds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from test_verify_programs import the, verified

from torchcopylint.base.verification import Verdict
from torchcopylint.verify.run import Verifier
from torchcopylint.verify.slicing.asking import asked
from torchcopylint.verify.slicing.sizes import Setting

WRITTEN = """\
import torch
from torch import nn


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(1, 3))
        self.scale = nn.Parameter(torch.ones(1, 3))

    def forward(self, x):
        self.bias.data.{write}
        return (x - self.bias) / self.scale
"""

LOOP = """\
import torch
from torch import nn
from elsewhere import Data


class Trainer:
    def __init__(self, args):
        self.epochs = args.epochs

    def train(self):
        criterion = nn.MSELoss()
        model = nn.Linear(4, 1)
        for epoch in range(self.epochs):
            for iter, (x, y) in enumerate(Data(self.epochs, missing=True).unknown + "text"):
                loss = criterion(model(x), y)
                loss.backward()
                print(iter + 1, loss.data[0])
"""

TURNED = """\
import torch
from configs import config


def to_tensor(image):
    if not config.plain:
        return image
    image = image[:, :, ::{step}]
    image = torch.from_numpy(image).float()
    return image
"""

SETTINGS = """\
import torch
from {module} import {name} as edict

config = edict({given})
config.net = edict()
config.net.size = 4


def shape(x):
    y = torch.zeros(config.net.size)
    y.clamp(0, 1)
    return y + x
"""


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(timeout=20) as one:
        yield one


@pytest.mark.parametrize(
    "write", ["copy_(x.mean(0)).view_as(self.scale)", "copy_(torch.ones(3)).reshape(1, 3)", "clamp(0, 1)"]
)
def test_the_call_alone_is_left_out(write: str, verifier: Verifier) -> None:
    # What is dropped of a write: the write happens, and what is made of it is for nobody.
    text = WRITTEN.format(write=write)
    assert verified(text, the(text, "TCL602"), verifier).verdict is Verdict.CONFIRMED


def test_what_a_dropped_call_hands_back_of_a_write_is_no_loss(verifier: Verifier) -> None:
    # What is laid out in order is handed back itself: then nothing was computed that could be lost.
    text = WRITTEN.format(write="add_(1.0).contiguous()")
    assert verified(text, the(text, "TCL602"), verifier).verdict is not Verdict.CONFIRMED


def test_a_loop_may_be_called_as_something_of_python(verifier: Verifier) -> None:
    assert verified(LOOP, the(LOOP, "TCL106"), verifier).verdict is Verdict.CONFIRMED


def test_what_is_gone_through_from_its_end_is_an_array(verifier: Verifier) -> None:
    text = TURNED.format(step=-1)
    assert verified(text, the(text, "TCL404"), verifier).verdict is Verdict.CONFIRMED


def test_what_divides_nothing_is_larger() -> None:
    message = "0.0 cannot be raised to a negative power"
    larger = asked(Setting(4, 2, 0), message, "self.scale = head_dim ** -0.5")
    assert larger is not None
    assert larger.size == 64
    assert asked(larger, message, "self.scale = head_dim ** -0.5") is None
    assert asked(Setting(4, 2, 0), "shape '[4, 4, 8, 0]' is invalid for input of size 64", "") == larger


@pytest.mark.parametrize(("given", "are_known"), [("", True), ("{'lr': 0.1}", True), ("load()", False)])
def test_settings_that_are_filled_here(given: str, are_known: bool, verifier: Verifier) -> None:
    text = SETTINGS.format(module="easydict", name="EasyDict", given=given)
    result = verified(text, the(text, "TCL602"), verifier)
    assert any("a dict whose keys are attributes" in item.text for item in result.evidence) == are_known
