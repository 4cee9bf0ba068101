"""What is confirmed no more, as it does no harm there or rests on what stands in, and what is confirmed now, as it is
made as it mostly is: each with a twin of which the opposite holds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from forced import forced
from test_verify_programs import the, verified

from torchcopylint.base.verification import Verdict
from torchcopylint.verify.client import Besides
from torchcopylint.verify.observed import Run
from torchcopylint.verify.run import Verifier

ASSERTED = """\
import numpy as np
import torch


def test_side_effect():
    array = np.ones(3)
    tensor = torch.from_numpy(array)  # <- TCL401, shared
    tensor.fill_(0.0)  # <- written
    {look}  # <- read


test_side_effect()
print(torch.zeros(2) + torch.zeros(3))
"""
TAKEN = """\
import numpy as np


def segments(horizon):
    values = np.zeros(horizon)
    while True:
        for i in range(horizon):
            values[i] = values.sum() + i + 1.0
        yield values


def learn():
    made = segments(4)
    {take}
"""
WRITTEN_BEFORE = """\
import torch
import elsewhere


def fitted(slopes: torch.Tensor, valid: torch.Tensor):
    elsewhere.prepare(slopes)[0]
{before}    found = {{"correction": slopes, "slopes": slopes}}  # <- TCL707, shared
    correction = found["correction"]
    correction[valid > 0] = 1.0  # <- written
    elsewhere.use(correction).unknown.thing[3] += "text"
    return found["slopes"].sum()
"""
LISTED = """\
import torch
from elsewhere import Refinement


def norm(loss, params):
    for p in params:
        if p.grad is not None:
            p.grad.zero_()
    loss.backward(retain_graph=True)
    found = [p.grad.flatten().detach() for p in params if p.grad is not None]
    return torch.cat(found).norm().item() if found else 1.0


refinement = Refinement("data")
{more}print(norm(refinement.loss(), refinement.parameters()))
"""
CAME_BACK = """\
import torch
from torch import nn

net = nn.Linear(3, 3)
scores = torch.zeros(2, 3)
for x in torch.randn(2, 2, 3):
    scores = scores + net(x).detach(){moved}
seen = scores.cpu().numpy()  # <- TCL402, shared
seen *= 255  # <- written
{aside}print(scores)  # <- read
"""


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(timeout=20.0) as one:
        yield one


def judged(text: str, verifier: Verifier, code: str = "") -> tuple[bool, list[str]]:
    """Whether a finding of a text is confirmed, the linter's by its code or the one that it is forced to have, and of
    which kinds its evidence is."""
    answer = verified(text, the(text, code) if code else forced(text), verifier)
    return answer.verdict is Verdict.CONFIRMED, [item.kind for item in answer.evidence]


def test_what_the_code_asserts_does_no_harm(verifier: Verifier) -> None:
    confirmed, kinds = judged(ASSERTED.format(look="assert (array == 0.0).all()"), verifier, "TCL401")
    assert not confirmed
    assert "asserted" in kinds


def test_an_assertion_that_holds_either_way_says_nothing(verifier: Verifier) -> None:
    assert judged(ASSERTED.format(look="assert array.shape == (3,), print(array)"), verifier, "TCL401")[0]


def test_what_is_taken_one_by_one_is_not_collected(verifier: Verifier) -> None:
    singly = "for _ in range(3):\n        segment = next(made)\n        print(segment.sum())"
    said = the(TAKEN.format(take="kept = list(zip(made, range(3)))"), "TCL708")
    answer = verified(TAKEN.format(take=singly), said, verifier)
    assert answer.verdict is not Verdict.CONFIRMED
    assert "guessed" in [item.kind for item in answer.evidence]


@pytest.mark.parametrize(
    "take", ["kept = []\n    for _ in range(3):\n        kept.append(next(made))", "kept = list(zip(made, range(3)))"]
)
def test_what_is_collected_is_overwritten(take: str, verifier: Verifier) -> None:
    assert judged(TAKEN.format(take=take), verifier, "TCL708")[0]


def test_a_write_that_was_cut_away_may_be_the_same(verifier: Verifier) -> None:
    before = "    elsewhere.name(slopes).of[0].something, slopes[valid > 0] = 3 % 'a', 1.0\n"
    assert not judged(WRITTEN_BEFORE.format(before=before), verifier)[0]
    assert judged(WRITTEN_BEFORE.format(before=""), verifier)[0]


def test_who_is_only_asked_for_parameters_may_give_a_list(verifier: Verifier) -> None:
    assert not judged(LISTED.format(more=""), verifier, "TCL608")[0]


@pytest.mark.parametrize("more", ["refinement.train()\n", "refinement(torch.ones(2, 4))\nrefinement.eval()\n"])
def test_who_is_trained_is_a_module(more: str, verifier: Verifier) -> None:
    assert judged(LISTED.format(more=more), verifier, "TCL608")[0]


def test_what_comes_back_from_a_gpu_is_a_copy(verifier: Verifier) -> None:
    confirmed, kinds = judged(CAME_BACK.format(moved=".cuda()", aside=""), verifier, "TCL402")
    assert not confirmed
    assert "apart" in kinds


def test_a_gpu_elsewhere_in_the_file_changes_nothing(verifier: Verifier) -> None:
    confirmed, kinds = judged(CAME_BACK.format(moved="", aside="net = net.cuda()\n"), verifier, "TCL402")
    assert confirmed
    assert "apart" not in kinds


REPEATED = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, size, times=1):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(size, size) for _ in range(2)]{repeated})  # <- TCL706, shared

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
"""
CHOSEN = """\
from dataclasses import dataclass
from enum import Enum

import torch
from elsewhere import BaseModel


class Norm(Enum):
    one = 1
    two = 2


@dataclass
class Base:
    width: int


@dataclass
class Label(Base):
    values: torch.Tensor


class Options(BaseModel):
    rows: int
    seed: int = 0


def train(norm: Norm, label: Label, options: Options, index: list):
    assert norm in Norm and label.width + options.rows > options.seed
    counts = torch.zeros(options.rows, label.width)
    counts[[0, 1]]{write}
    return counts.sum() + label.values.sum()
"""
SETTINGS = """\
import torch
from torch import nn


def train(model: nn.Module, batches, cfg):
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg.training.lr, weight_decay=cfg.training.decay)
    best = None
    for epoch in range(cfg.training.epochs):
        for x in batches:
            optimizer.zero_grad()
            model(x).sum().backward()
            optimizer.step()  # <- written
        if epoch % cfg.training.every == 0 and best is None:
            best = {kept}  # <- TCL701, shared
    print(cfg.data.name, cfg.model.kind, cfg.path.root)
    model.load_state_dict(best)  # <- read
"""
SPLIT = """\
import numpy as np
from sklearn.model_selection import train_test_split


def convert(data: np.ndarray):
    ids = np.arange(0, data.shape[0])
    first, second = train_test_split(ids, test_size=0.2)
    mask = np.isin(ids, first)
    distances = np.zeros((data.shape[0], data.shape[0]))
    distances{index} = 1.0
    return distances, mask
"""
ASKED = """\
import torch


def exists(value):
    return value is not None


def encode(x: torch.Tensor, device=None):
    x = x * 2.0
    if not exists(device):
        return x
    {move}
    return x
"""
STEPPED = """\
import torch
import pytorch_lightning as pl
from torch import nn


class Net(pl.LightningModule):
    def __init__(self, width, points=None):
        super().__init__()
        self.width = width if points is None else width + 3
        self.points = points
        self.layer = nn.Linear(width, 2)
        self.outs = []
        if self.points is not None:
            assert self.points.shape[1] == self.width

    def training_step(self, batch, index):
        x, y = batch
        logits = self.layer(x)
        loss = nn.functional.cross_entropy(logits, y)
        self.outs.append(logits{cut})  # <- TCL304, kept
        return loss  # <- read

    def on_train_epoch_end(self):
        print(torch.cat(self.outs).mean())
        self.outs.clear()
"""


def test_a_repeated_comprehension_is_repeated(verifier: Verifier) -> None:
    assert judged(REPEATED.format(repeated=" * times"), verifier)[0]
    answer = verified(REPEATED.format(repeated=""), forced(REPEATED.format(repeated="")), verifier)
    assert answer.verdict is Verdict.REFUTED, answer.evidence


def test_enumerations_and_records_are_made_of_what_they_have(verifier: Verifier) -> None:
    lost = CHOSEN.format(write=".add_(1.0)  # <- TCL601, written")
    assert judged(lost, verifier)[0]
    answer = verified(lost, forced(lost), verifier)
    assert {"`norm` is the first of `Norm`"} <= {item.text for item in answer.evidence}
    assert not judged(CHOSEN.format(write=" += 1.0  # <- TCL601, written"), verifier)[0]


def test_settings_may_have_a_section_for_the_training(verifier: Verifier) -> None:
    assert judged(SETTINGS.format(kept="model.state_dict()"), verifier)[0]
    copied = "{key: value.clone() for key, value in model.state_dict().items()}"
    assert not judged(SETTINGS.format(kept=copied), verifier)[0]


def test_what_is_split_in_two_gives_indices(verifier: Verifier) -> None:
    lost = SPLIT.format(index="[mask][:, mask]").replace(" = 1.0", " = 1.0  # <- TCL601, written")
    assert judged(lost, verifier)[0]
    kept = SPLIT.format(index="[np.ix_(mask, mask)]").replace(" = 1.0", " = 1.0  # <- TCL601, written")
    assert not judged(kept, verifier)[0]


def test_who_asks_whether_something_is_there_gets_it(verifier: Verifier) -> None:
    text = ASKED.format(move="x.to(device)")
    answer = verified(text, the(text, "TCL602"), verifier)
    assert answer.verdict is Verdict.CONFIRMED, answer.evidence
    assert any(item.text.startswith("a call") for item in answer.evidence)
    used = ASKED.format(move="x = x.to(device)  # <- TCL602, discarded")
    assert not judged(used, verifier)[0]


def test_what_a_training_step_returns_goes_backward(verifier: Verifier) -> None:
    text = STEPPED.format(cut="")
    confirmed, _ = judged(text, verifier, "TCL304")
    assert confirmed
    assert not judged(STEPPED.format(cut=".detach()"), verifier)[0]


def test_what_more_turns_do_not_cure_is_not_run_with_all(verifier: Verifier) -> None:
    text = """\
import torch


def f(x: torch.Tensor, size: int):
    for i in range(1000):
        x = x + i
    for i in range(1000):
        x.{called}
        x.relu()  # <- TCL602, discarded
    return x
"""
    asked: list[bool] = []

    class Counting(Verifier):
        def observe(self, request: dict[str, Any], meanwhile: Besides | None = None) -> Run:
            asked.append(request["few"])
            return super().observe(request, meanwhile)

    with Counting(timeout=20.0) as counting:
        judged(text.format(called="missing()"), counting)
        assert all(asked)
        judged(text.format(called="abs()"), counting)
    assert asked


TYPED = """\
import torch
import elsewhere


def normalized(weight: torch.Tensor):
    assert weight.dtype == torch.{kind}
    elsewhere.name(weight).of[0].something += "text"
    bits = weight.view(torch.int8)  # <- TCL501, shared
    bits[bits == bits[0]] = 0  # <- written
    return weight.sum()  # <- read
"""


def test_inputs_that_an_assertion_refuses_show_nothing(verifier: Verifier) -> None:
    assert not judged(TYPED.format(kind="float8_e4m3fn"), verifier)[0]
    assert judged(TYPED.format(kind="float32"), verifier)[0]


def test_generators_without_a_seed_draw_the_same_in_two_runs(verifier: Verifier) -> None:
    text = """\
import random

import numpy as np
import torch

x = torch.ones(2)
x.{called}  # <- TCL602, discarded
print(x, np.random.default_rng().random(), np.random.RandomState().rand(), random.Random().random())
print(np.random.default_rng(3).random(), random.Random(3).random())
"""
    assert judged(text.format(called="add(1)"), verifier)[0]
    assert not judged(text.format(called="add_(1)"), verifier)[0]
