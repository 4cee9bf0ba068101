"""What inputs, calls and alterations have to be for less usual code to show what a finding says: each with a twin."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from forced import forced
from test_verify_programs import verified

from torchcopylint.base.verification import Verdict
from torchcopylint.verify.run import Verifier

SCALED_LEAF = """\
import torch


def invert(decoder: torch.nn.Module, target: torch.Tensor, rate: float = 0.1):
    z = torch.randn(target.size(0), 4, requires_grad=True) * 0.3
    loss = (decoder(z) - target).square().mean()
    loss.backward()
    with torch.no_grad():
        z -= rate * z.grad  # <- TCL308, read
    return z
"""
FRAMES = """\
import io

import torch


def read(stream: io.BufferedIOBase, size: int):
    buffer = bytearray(size)
    frames = []
    while stream.readinto(buffer) == size:  # <- written
        frames.append(torch.frombuffer(buffer, dtype=torch.uint8))  # <- TCL708, kept
    return torch.stack(frames)
"""
SWAPPED = """\
import torch


class Population:
    def __init__(self, size: int, genes: int):
        self.genome = torch.rand(size, genes)

    def cross(self, i: int, j: int, point: int):
        tail = self.genome[i, point:]  # <- shared
        self.genome[i, point:] = self.genome[j, point:]  # <- written
        self.genome[j, point:] = tail  # <- TCL505, read
"""
REMEMBERED = """\
from functools import lru_cache

import torch


@lru_cache(maxsize=8)
def bank(bins: int, filters: int):
    return torch.rand(bins, filters)


def energies(power: torch.Tensor, filters: int, gain: torch.Tensor):
    weights = bank(power.size(-1), filters)
    weights *= gain  # <- TCL504, written
    return power @ weights
"""
ANSWERED = """\
import torch


def conflict(net: torch.nn.Module, optimizer: torch.optim.Optimizer, losses, batch):
    kept = []
    for loss in losses:
        optimizer.zero_grad(set_to_none=False)  # <- written
        loss(net, batch).backward()
        kept.append([p.grad for p in net.parameters()])  # <- TCL703, kept
    return kept
"""
TAGGED = """\
import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self, words: int, tags: int):
        super().__init__()
        self.table = nn.Embedding(words, 8)
        self.rnn = nn.LSTM(8, 8, batch_first=True)
        self.out = nn.Linear(8, tags)
        self.state = None

    def forward(self, ids):
        y, self.state = self.rnn(self.table(ids), self.state)
        return self.out(y)


def train(model: Tagger, optimizer, chunks):
    for ids, tags in chunks:
        loss = nn.functional.cross_entropy(model(ids).flatten(0, 1), tags.flatten())
        optimizer.zero_grad()
        loss.backward()  # <- TCL305, read
        optimizer.step()
"""
HEADS = """\
import torch
from torch import nn


class Tasks(nn.Module):
    def __init__(self, width: int, names: tuple):
        super().__init__()
        head = nn.Linear(width, 1)
        self.heads = nn.ModuleDict({name: head for name in names})  # <- TCL706, shared

    def forward(self, x):
        return {name: head(x) for name, head in self.heads.items()}
"""
LEAKY = """\
import torch


def step(current: torch.Tensor, state: torch.Tensor = torch.zeros(5)):  # <- here
    state.mul_(0.9).add_(current)  # <- TCL507, written
    return state * 2
"""
WINDOWS = """\
import torch


def windows(signal: torch.Tensor, size: int, hop: int):
    frame = torch.empty(size)
    for start in range(0, signal.numel(), hop):
        piece = signal[start : start + size]
        frame.zero_()  # <- written
        frame[: piece.numel()] = piece
        yield frame  # <- TCL708, kept
"""
CLIPPED = """\
import torch


class Clip(torch.autograd.Function):
    @staticmethod
    def forward(ctx, w, limit):
        ctx.save_for_backward((w.abs() <= limit).to(w.dtype))
        w.clamp_(-limit, limit)  # <- TCL209, written
        return w

    @staticmethod
    def backward(ctx, grad):
        (inside,) = ctx.saved_tensors
        return grad * inside, None
"""
DAMPED = """\
import torch
from torch import nn


class Streams(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.main = nn.Linear(width, width)
        self.aux = nn.Linear(width, width)

    def forward(self, x, z):
        m = self.main(x)
        a = self.aux(z)
        a.register_hook(lambda g: g.mul_(0.1))  # <- TCL210, written
        return a + m
"""
REBOUND = """\
import torch

w = torch.zeros(2, requires_grad=True)
for _ in range(3):
    (w - 1).square().sum().backward()
    with torch.no_grad():
        w = w - 0.1 * w.grad  # <- TCL603, discarded
    w.grad.zero_()
"""
BANNED = """\
import torch


class Generator:
    def __init__(self, model: torch.nn.Module, banned: torch.Tensor):
        self.model = model
        self.banned = banned

    @torch.inference_mode()
    def scores(self, ids: torch.Tensor):
        return self.model(ids)[:, -1]  # <- shared

    def sample(self, ids: torch.Tensor):
        scores = self.scores(ids)
        scores[:, self.banned] = 0.0  # <- TCL207, here
        return scores.softmax(-1)
"""
ADVERSARY = """\
import torch


def step(make, judge, optimizer, z, real):
    fake = make(z)
    loss = judge(real).mean() + judge(fake.detach_()).mean()  # <- TCL301, cut
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return judge(fake).mean()  # <- read
"""
SMOOTHED = """\
import torch


class Trainer:
    def __init__(self, net: torch.nn.Module):
        self.net = net
        self.mean = None

    def step(self, x, y):
        loss = torch.nn.functional.l1_loss(self.net(x), y)
        loss.backward()  # <- read
        if self.mean is None:
            self.mean = loss.detach()
        else:
            self.mean = 0.9 * self.mean + 0.1 * loss  # <- TCL306, kept
"""
PROGRAMS = {
    "an index among others": (BANNED, (".inference_mode()", ".no_grad()")),
    "a function that is trained": (ADVERSARY, ("detach_()", "detach()")),
    "what grows from call to call": (SMOOTHED, ("0.1 * loss ", "0.1 * loss.detach() ")),
    "a gradient that is not there": (SCALED_LEAF, ("requires_grad=True) * 0.3", "requires_grad=True)")),
    "what a stream reads into": (FRAMES, ("torch.frombuffer(buffer,", "torch.frombuffer(bytearray(buffer),")),
    "a part that begins somewhere": (SWAPPED, ("[i, point:]  #", "[i, point:].clone()  #")),
    "what is given out again": (REMEMBERED, ("weights *= gain", "weights = weights * gain")),
    "a function of a network": (ANSWERED, ("p.grad for", "p.grad.clone() for")),
    "classes in another shape": (TAGGED, ("self.state)\n        return", "None)\n        return")),
    "keys of modules": (HEADS, ("name: head for", "name: nn.Linear(width, 1) for")),
    "a default of its own shape": (LEAKY, ("state.mul_(0.9).add_(current)", "state = state.mul(0.9).add(current)")),
    "a stride": (WINDOWS, ("yield frame", "yield frame.clone()")),
    "a function of autograd": (CLIPPED, ("        w.clamp_", "        ctx.mark_dirty(w)\n        w.clamp_")),
    "a hook": (DAMPED, ("g.mul_(0.1)", "g.mul(0.1)")),
    "a parameter bound anew": (REBOUND, ("w = w - 0.1 * w.grad", "w -= 0.1 * w.grad")),
}
VARIANTS = {"a stride": "yielded", "a hook": "hook", "what is given out again": "memo"}


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier() as made:
        yield made


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_made_shows_it_and_not_its_twin(name: str, verifier: Verifier) -> None:
    text, (old, new) = PROGRAMS[name]
    variant = VARIANTS.get(name, "")
    found = verified(text, replace(forced(text), variant=variant), verifier)
    assert found.verdict is Verdict.CONFIRMED, found.evidence
    assert old in text
    twin = text.replace(old, new)
    answer = verified(twin, replace(forced(twin), variant=variant), verifier)
    assert answer.verdict is not Verdict.CONFIRMED, answer.evidence


def test_what_did_not_come_round_refutes_nothing(verifier: Verifier) -> None:
    text = WINDOWS.replace("range(0, signal.numel(), hop)", "[0]")
    finding = forced(text)
    finding = replace(finding, variant="yielded", steps=finding.steps[::-1])
    found = verified(text, finding, verifier)
    assert found.verdict is Verdict.INCONCLUSIVE, found.evidence


def test_what_returns_nothing_refutes_nothing_of_what_is_returned(verifier: Verifier) -> None:
    text = LEAKY.replace("    return state * 2\n", "")
    assert verified(text, forced(text), verifier).verdict is Verdict.INCONCLUSIVE
