"""What is looked up in a dict that is written out is one of its keys."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from forced import forced
from test_verify_programs import verified

from torchcopylint.base.verification import Verdict
from torchcopylint.verify.run import Verifier

NETWORK = """\
from torch import nn

ACTIVATIONS = {{"relu": nn.ReLU, "tanh": nn.Tanh}}


class Network(nn.Module):
    def __init__(self, kind, width):
        super().__init__()
        {before}
        block = nn.Sequential(nn.Linear(width, width), {looked_up}())
        self.layers = nn.ModuleList([block] * 3)  # <- TCL706, shared
"""
TRAINED = """\
import torch
from torch import nn

LOSSES = {"mse": nn.MSELoss, "l1": nn.L1Loss}


def fit(args, model, optimizer, loader):
    criterion = LOSSES[args.loss]()
    total = 0.0
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.data[0]  # <- TCL106, here
    return total
"""


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(timeout=20.0) as started:
        yield started


@pytest.mark.parametrize(
    ("before", "looked_up"),
    [
        ("pass", "ACTIVATIONS[kind]"),
        ("pass", "ACTIVATIONS.get(kind)"),
        ("pass", '{"gelu": nn.GELU, "elu": nn.ELU}[kind]'),
        ("own = {'silu': nn.SiLU}", "own[kind]"),
        ("if kind not in ACTIVATIONS: raise ValueError(kind)", "ACTIVATIONS[kind]"),
    ],
)
def test_a_key_is_one_of_those_that_are_written_out(verifier: Verifier, before: str, looked_up: str) -> None:
    text = NETWORK.format(before=before, looked_up=looked_up)
    answer = verified(text, forced(text), verifier)
    assert answer.verdict is Verdict.CONFIRMED, answer.evidence
    assert any(item.text.startswith("`kind` is '") for item in answer.evidence)


def test_an_option_that_is_looked_up(verifier: Verifier) -> None:
    answer = verified(TRAINED, forced(TRAINED), verifier)
    assert answer.verdict is Verdict.CONFIRMED, answer.evidence
    assert "`args.loss` is 'mse'" in {item.text for item in answer.evidence}


def test_what_is_known_of_a_key_stays(verifier: Verifier) -> None:
    text = NETWORK.format(before="pass", looked_up="ACTIVATIONS[kind]").replace("kind, width", 'width, kind="tanh"')
    answer = verified(text, forced(text), verifier)
    assert answer.verdict is Verdict.CONFIRMED, answer.evidence
    assert not any(item.text.startswith("`kind` is '") for item in answer.evidence)


def test_what_is_asked_for_its_different_values_is_a_tensor(verifier: Verifier) -> None:
    text = (
        "import torch\n\n\ndef weigh(codes, out: torch.Tensor):\n"
        "    for code in codes['target'].unique().tolist():\n        out = out + code\n"
        "    out.sigmoid()  # <- TCL602, discarded\n    return out\n"
    )
    answer = verified(text, forced(text), verifier)
    assert answer.verdict is Verdict.CONFIRMED, answer.evidence
    assert "`codes['target']` is a tensor of float32 with shape [4, 4]" in {item.text for item in answer.evidence}
