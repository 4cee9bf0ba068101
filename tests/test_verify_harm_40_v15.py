"""What verification assumes and the file contradicts, each with a twin of which the opposite holds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from test_verify_programs import the, verified

from torchcopylint.base.verification import Verdict
from torchcopylint.verify.run import Verifier

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
