"""What stands in the place of what does not run: fields of `self`, what each turn of a loop makes, arrays, numbers of
optimizers. Each program is confirmed, and its twin is not."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest
from forced import forced
from test_verify_programs import verified

from torchcopylint.base.verification import Verdict
from torchcopylint.verify.run import Verifier
from torchcopylint.verify.slicing.narrow import Narrower, Without, narrowed

FIELD = """\
import itertools

import torch
from elsewhere import build
from torch.optim import Adam


class Agent:
    def __init__(self, make_env, settings):
        env = make_env()
        self.ac = build(env.observation_space, sizes=[settings.hid] * settings.l)
        self.q_params = itertools.chain(self.ac.q1.parameters(), self.ac.q2.parameters())  # <- here
        self.q_optimizer = Adam(self.q_params, lr=settings.lr_critic, betas=(settings.b1, 0.999))  # <- here

    def update(self, data):
        self.q_optimizer.zero_grad()
        self.ac.q1(data).mean().backward()
        self.q_optimizer.step()
        for p in self.q_params:  # <- TCL608, read
            p.requires_grad = False
"""
TURNS = """\
import torch
from elsewhere import weight


def train(net: torch.nn.Module, loader, optimizer, rounds: int):
    seen = []
    for _ in range(rounds):
        for labels, data in loader:
            out = net(data)
            loss = torch.nn.functional.cross_entropy(out, labels.view(-1, 7, 3)) * weight
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen.append(loss)  # <- TCL304, read
    return sum(seen)
"""
CLOUD = """\
import numpy as np
from elsewhere import load


def centred(points):
    return points - np.mean(points, axis=0) * 2 + 1


class Clouds:
    def __init__(self, root):
        self.clouds = load(root)

    def __getitem__(self, index):
        points = self.clouds[index][:, 0:3]  # <- shared
        points[:, 0:3] = centred(points[:, 0:3])  # <- TCL504, written
        return points  # <- read
"""
MODULE = """\
import torch

model = torch.nn.Linear(4, 8)
for turn in range(2):
    old = []
    for parameter in model.parameters():
        old.append(parameter.data.clone())
    model = torch.nn.Linear(8, 16)
    for index, parameter in enumerate(model.parameters()):
        torch.add(parameter.data, old[index])  # <- TCL602, discarded
"""
PROGRAMS = {
    "a list that each turn of a script fills": (
        MODULE,
        ("        torch.add(", "        parameter.data = torch.add("),
    ),
    "a field that is not made": (
        FIELD,
        ("itertools.chain(", "(list)(itertools.chain(", "parameters())  #", "parameters()))  #"),
    ),
    "a loss for each turn": (TURNS, ("seen.append(loss)", "seen.append(loss.item())")),
    "an array for an axis": (CLOUD, ("[:, 0:3]  #", "[:, 0:3].copy()  #")),
}


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(timeout=20.0) as started:
        yield started


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_given_shows_it_and_not_its_twin(name: str, verifier: Verifier) -> None:
    text, changes = PROGRAMS[name]
    found = verified(text, forced(text), verifier)
    assert found.verdict is Verdict.CONFIRMED, found.evidence
    twin = text
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        assert old in twin
        twin = twin.replace(old, new)
    answer = verified(twin, forced(twin), verifier)
    assert answer.verdict is not Verdict.CONFIRMED, answer.evidence


def _without(row: int) -> str:
    """What is left of `train` where a row does not run, with the parameters that it got for that."""
    function = ast.parse(TURNS).body[-1]
    assert isinstance(function, ast.FunctionDef)
    kept = TURNS.split("\n").index("            seen.append(loss)  # <- TCL304, read") + 1
    found = narrowed(function, Narrower({kept}, {"torch": "torch"}, (), without=Without(rows=frozenset({row}))))
    assert found is not None
    return ast.unparse(found)


def test_each_turn_gets_another_one_of_what_it_would_have_made() -> None:
    row = next(number for number, line in enumerate(TURNS.split("\n"), 1) if "cross_entropy" in line)
    left = _without(row)
    assert "loss = renewed(for_each_turn_loss)" in left
    assert "*, for_each_turn_loss)" in left
    assert "renewed" not in _without(10**6)


CONTEXT = """\
import torch


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.x = x  # <- TCL211, kept
        return x**3

    @staticmethod
    def backward(ctx, grad):
        return grad * 3 * ctx.x**2


x = torch.tensor([2.0], requires_grad=True)
Cube.apply(x).sum().backward()
print(x.grad)
"""


def test_that_nobody_writes_here_refutes_nothing_of_later_writes(verifier: Verifier) -> None:
    found = verified(CONTEXT, forced(CONTEXT), verifier)
    assert found.verdict is not Verdict.REFUTED, found.evidence


RESHAPED = """\
import torch
import torch.nn.functional as F


class Tagger(torch.nn.Module):
    def loss(self, scores, tokens):
        self.labels = tokens
        self.labels = self.labels[:, 1:]
        found = F.cross_entropy(scores, self.labels)
        scores.detach()  # <- TCL602, discarded
        return found
"""


def test_what_is_another_shape_of_itself_is_followed_once(verifier: Verifier) -> None:
    assert verified(RESHAPED, forced(RESHAPED), verifier).verdict is not Verdict.UNAVAILABLE
