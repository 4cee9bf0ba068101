"""How a slice gets to steps that stand out of reach: in hooks, under conditions, in classes that others complete."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from forced import forced
from test_verify_programs import verified

from torchcopylint.base.verification import Verdict
from torchcopylint.verify.run import Verifier

HOOK = """\
import torch


def watch(module, p):
    if p <= 0:
        return module

    def scale(mod, given):
        mask = torch.ones(2, 2)
        mask.mul(p)  # <- TCL602, discarded
        return given * mask.sum()

    module.register_forward_pre_hook(scale)
    return module
"""
UNDER_CONDITION = """\
from backends import available

if "TORCH" in available():
    import torch
    from torch import nn

    class Focal(nn.Module):
        def forward(self, p, t):
            weight = torch.sigmoid(p)
            weight.mul(t)  # <- TCL602, discarded
            return weight
"""
LEFT_TO_OTHERS = """\
from torch import nn


class Template(nn.Module):
    def __init__(self, make):
        super().__init__()
        self.feature = make()

    def set_forward_loss(self, x):
        raise NotImplementedError

    def train_loop(self, batches, optimizer):
        total = 0
        for x in batches:
            loss = self.set_forward_loss(x)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.data[0]  # <- TCL106, here
        return total
"""
ROWS = """\
from torch import nn
from torch.nn import functional as F
from torchvision import datasets
from torch.utils.data import DataLoader


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(28 * 28, 10)

    def forward(self, x):
        return self.fc(x.view(-1, 28 * 28))


def evaluate(model, loader):
    total = 0
    for x, y in loader:
        total += F.cross_entropy(model(x), y).data[0]  # <- TCL106, here
    return total


evaluate(Net(), DataLoader(datasets.MNIST("."), batch_size=4))
"""
COLORS = """\
import numpy as np


def recolor(labels: np.ndarray, old: list[int], new: list[int]) -> np.ndarray:
    result = labels  # <- shared
    for one, other in zip(old, new):
        result[labels == one] = other  # <- TCL501, written, read
    return result
"""
REGISTERED = """\
from registry import Registry
from torch import nn

MODELS = Registry("models")
HEADS = MODELS


@HEADS.register_module()
class Head(nn.Module):
    def forward(self, boxes, shape):
        boxes = boxes.view(-1, 4).clone()
        boxes[:, [0, 1]].clamp_(min=0, max=shape[1])  # <- TCL601, here, written
        return boxes
"""
CONVERTED = """\
import torch
from gluon import get_model


def convert(name):
    name = name.lower()
    found = {}
    for key, value in get_model(name, pretrained=True).collect_params().items():
        tensor = torch.from_numpy(value.data().asnumpy())
        tensor.require_grad = True  # <- TCL606, here
        found[key] = tensor
    return found
"""
SETTINGS = """\
from torch.utils.data import DataLoader


class Base:
    def __init__(self, args):
        self.args = args


class Wrapper(Base):
    def __init__(self, args):
        super().__init__(args)
        self.done = False

    def predict(self, dataset):
        for number, (given, decoded) in enumerate(DataLoader(dataset, batch_size=self.args.batch_size)):
            if self.args.forcing:
                decoded[:, 1:, 0] = decoded[:, :-1, 0]  # <- TCL506, written
            number += given.shape[0]
"""
LOADED = """\
import torch
from torch import nn

model = nn.Linear(4, 4)
model.load_state_dict(torch.load("model.pt"))
kept = model.weight.detach()
total = kept  # <- shared
kept.add_(1)  # <- TCL501, written
print(total)  # <- read
"""
BEST = """\
import torch
from torch import nn


def train(net: nn.Module, loader, measure):
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    highest, count = 0.0, 0
    for x in loader:
        count += 1
        optimizer.zero_grad()
        net(x).sum().backward()
        optimizer.step()  # <- written
        reached = measure(net)
        if reached >= highest and count >= 3 * len(loader):
            highest = reached
            best = net.state_dict()  # <- TCL701, shared
    torch.save(best, "best.pt")  # <- read
"""
OPTIONS = """\
import torch
from torch import nn


def build(args, net: nn.Module):
    torch.manual_seed(args.seed)
    print(args.name, args.reset, args.rate * 2)
    weight = net(torch.ones(1, 4)).detach()
    weight.mul(args.rate)  # <- TCL602, discarded
    return weight
"""
PROGRAMS = {
    "a hook": HOOK,
    "under a condition": UNDER_CONDITION,
    "left to others": LEFT_TO_OTHERS,
    "rows": ROWS,
    "whole numbers": COLORS,
    "registered": REGISTERED,
    "arrays from elsewhere": CONVERTED,
    "settings in a base": SETTINGS,
    "loaded": LOADED,
    "the best": BEST,
    "options": OPTIONS,
}


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(timeout=60) as made:
        yield made


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
def test_what_is_out_of_reach_is_confirmed(text: str, verifier: Verifier) -> None:
    answer = verified(text, forced(text), verifier)
    assert answer.verdict is Verdict.CONFIRMED, answer.evidence


def test_what_is_done_to_get_there_is_said(verifier: Verifier) -> None:
    told = {
        "`scale` is called where it is made": HOOK,
        "the first branch of line 3 is taken": UNDER_CONDITION,
        "`set_forward_loss` is what another class makes of it": LEFT_TO_OTHERS,
    }
    for text, program in told.items():
        evidence = verified(program, forced(program), verifier).evidence
        assert text in [item.text for item in evidence], evidence


def test_a_hook_that_uses_its_result_is_not_confirmed(verifier: Verifier) -> None:
    right = HOOK.replace("mask.mul(p)", "mask = mask.mul(p)")
    assert verified(right, forced(right), verifier).verdict is not Verdict.CONFIRMED


ITERATOR = """\
import torch


def validate(loader, model, steps):
    turns = iter(loader)
    total = 0.0
    for _ in range(steps):
        images = next(turns)
        model(images).detach().mul(2)  # <- TCL602, discarded
        total += images.mean().item()
    return total
"""
BAR = """\
import torch
from tqdm import tqdm


def validate(loader, model):
    with tqdm(total=len(loader)) as bar:
        for images in loader:
            images = model(images).detach()
            images.mul(2)  # <- TCL602, discarded
            bar.update(1)
            print(images)
    torch.cuda.synchronize()
"""
LABELS = """\
from torch.nn import functional as F


def test(net, loader):
    total = 0
    for data in loader:
        image, label = data["image"], data["label"]
        image, label = image.cuda(), label.long().cuda()
        total += F.nll_loss(net(image), label).data[0]  # <- TCL106, here
    return total
"""
SHARED_STATISTICS = """\
import torch
from torch import nn


class Frozen(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.register_buffer("mean", torch.zeros(size))

    @classmethod
    def of(cls, norm: nn.BatchNorm1d):
        made = cls(norm.num_features)
        made.mean.data = norm.running_mean.data  # <- TCL102, shared
        return made
"""
NOBODY_WRITES = """\
from torch import nn


class Synchronised:
    def __init__(self, source: nn.Linear, target: nn.Linear):
        self.source = source
        self.target = target

    def synchronise(self):
        for one, other in zip(self.source.parameters(), self.target.parameters()):
            other.data = one.data  # <- TCL102, shared

    def move(self, rate):
        for one in self.source.parameters():
            one.data = one.data * rate
"""


@pytest.mark.parametrize("text", [ITERATOR, BAR, LABELS], ids=["an iterator", "a bar", "labels"])
def test_loops_over_loaders_are_confirmed(text: str, verifier: Verifier) -> None:
    answer = verified(text, forced(text), verifier)
    assert answer.verdict is Verdict.CONFIRMED, answer.evidence


def test_a_write_that_is_only_assumed_needs_a_writer(verifier: Verifier) -> None:
    assert verified(SHARED_STATISTICS, forced(SHARED_STATISTICS), verifier).verdict is Verdict.CONFIRMED
    answer = verified(NOBODY_WRITES, forced(NOBODY_WRITES), verifier)
    assert answer.verdict is Verdict.INCONCLUSIVE
    assert any(item.kind == "guessed" for item in answer.evidence), answer.evidence
    trained = f"{NOBODY_WRITES}\n    def train(self):\n        self.source.weight.data.mul_(2)\n"
    assert verified(trained, forced(trained), verifier).verdict is Verdict.CONFIRMED
