"""What inputs have to be like by how they are used, and what a finding says that does no harm, each with its twin."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest
from test_verify_programs import the, verified

from torchcopylint.base.verification import Verdict
from torchcopylint.verify.run import Verifier
from torchcopylint.verify.slicing.indexing import dimensions_told, widened
from torchcopylint.verify.slicing.learning import Learner
from torchcopylint.verify.slicing.needing import is_run_back
from torchcopylint.verify.slicing.source import parse, scopes_at

SMOOTHED = """\
import torch
from torch import nn


class Smoothing(nn.Module):
    def __init__(self, size, padding_idx, smoothing=0.1):
        super().__init__()
        self.criterion = nn.KLDivLoss(reduction="sum")
        self.padding_idx = padding_idx
        self.confidence = 1.0 - smoothing
        self.smoothing = smoothing
        self.size = size

    def forward(self, x, target):
        assert x.size(1) == self.size
        truth = x.data.clone()
        truth.fill_(self.smoothing / (self.size - 2))
        truth.scatter_(1, target.data.unsqueeze(1), self.confidence)
        truth[:, self.padding_idx] = 0
        mask = torch.nonzero(target.data == self.padding_idx)
        if mask.dim() > 0:
            {dropped}
        return self.criterion(x, truth)
"""

NORM = """\
import torch
from torch import nn


class Norm(nn.Module):
    def __init__(self, n_channels, scale=2.0):
        super().__init__()
        self.n_channels = n_channels
        self.weight = nn.Parameter(torch.Tensor(self.n_channels))
        self.weight.data.fill_(scale)

    def forward(self, x):
        y = self.weight.unsqueeze(0).unsqueeze(2).unsqueeze(3).expand_as(x) * x
        {dropped}
        return y
"""

MANY = """\
import torch
from torch import nn


class Polar(nn.Module):
    def __init__(self, dim, heads, uniform=False):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(heads, 1, dim))
        if uniform:
            self.bias.uniform_(-2.0, 0.0)

    def forward(self, t):
        return t + self.bias


def parted(rotary):
    total = 0
{parts}    return total


class Layers(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.rotary = Polar(dim, heads)

    def forward(self, x):
        found = parted(self.rotary)
        again = parted(self.rotary)
        return x, found, again
"""

SUMMED = """\
import torch
from torch import nn


class Learner:
    def __init__(self, f, model, steps=3, retain=False):
        self.f = f
        self.retain = retain
        self.model = model
        self.steps = steps
        self.optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        self.losses = []

    def __call__(self, x):
        self.total = 0
        for i in range(self.steps):
            loss = self.f(self.model(x))
            self.total += loss
            loss.backward(retain_graph=self.retain)
            self.optimizer.step()
            self.losses.append(loss)
        return self.losses, self.total


def train(f, model, xs):
    learner = Learner(f, model)
    for x in xs:
        losses, total = learner(x)
        scaled = total * 0.1
        {use}
"""


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(timeout=20.0) as started:
        yield started


def test_labels_that_are_spread_over_rows_have_one_dimension(verifier: Verifier) -> None:
    text = SMOOTHED.format(dropped="truth.index_fill(0, mask.squeeze(), 0.0)")
    assert verified(text, the(text, "TCL602"), verifier).verdict is Verdict.CONFIRMED


@pytest.mark.parametrize(
    ("call", "found"),
    [
        ("x.gather(1, y.unsqueeze(1))", "y"),
        ("torch.gather(x, 1, y.long().view(-1, 1))", "y"),
        ("x.scatter_(dim=1, index=y.data.reshape(-1, 1), value=1)", "y"),
        ("x.gather(1, y[:, None])", "y"),
        ("x.gather(2, y.unsqueeze(1))", None),
        ("x.gather(1, y.unsqueeze(2))", None),
        ("x.gather(1, y.view(-1, 2))", None),
        ("x.gather(1, y)", None),
        ("x.gather(True, y.unsqueeze(1))", None),
        ("x.index_select(1, y.unsqueeze(1))", None),
    ],
)
def test_only_one_item_of_each_row_says_that(call: str, found: str | None) -> None:
    node = ast.parse(call, mode="eval").body
    assert isinstance(node, ast.Call)
    inner = widened(node)
    assert (ast.unparse(inner) if inner is not None else None) == found


def test_a_parameter_of_so_many_numbers_is_given_a_number(verifier: Verifier) -> None:
    text = NORM.format(dropped="y.clamp(0, 0.1)")
    result = verified(text, the(text, "TCL602"), verifier)
    assert result.verdict is Verdict.CONFIRMED
    assert any(item.text == "`n_channels` is 4" for item in result.evidence)


def test_indices_into_arrays_are_whole_numbers() -> None:
    tree = ast.parse("def f(x, at, n):\n    x[at] = n\n")
    learner = Learner(tree, [tree.body[0]], [2])
    assert learner._kinds(2, "arrays used as indices must be of integer (or boolean) type") == (("at", "indices"),)
    assert learner._kinds(2, "arrays used as masks must be of boolean type") == ()


def test_an_object_of_a_class_is_one_whatever_it_is_taken_apart_into(verifier: Verifier) -> None:
    text = MANY.format(parts="".join(f"    a{n}, b{n} = rotary\n    total = total + a{n} * b{n}\n" for n in range(150)))
    assert verified(text, the(text, "TCL201"), verifier).verdict is Verdict.CONFIRMED


@pytest.mark.parametrize(
    ("use", "run_back"),
    [
        ("scaled.backward()", True),
        ("again = f(scaled); f(again).backward()", True),
        ("f(learner(x)[1]).backward()", True),
        ("print(scaled)", False),
        ("print(scaled); f(model(x)).backward()", False),
        ("self.total = scaled; self.loss.backward()", False),
    ],
)
def test_a_graph_is_kept_for_whoever_runs_backward_over_it(use: str, run_back: bool) -> None:
    source = parse(SUMMED.format(use=use))
    row = next(n for n, line in enumerate(source.lines, 1) if "self.total += loss" in line)
    scopes = [scopes_at(source.tree, row, 13, source.lines)]
    returning = next(n for n, line in enumerate(source.lines, 1) if "return self.losses" in line)
    assert is_run_back(source.tree, scopes, {row}, {returning}) is run_back
    assert not is_run_back(source.tree, scopes, {row}, ())
    assert not is_run_back(source.tree, scopes, {row - 3}, {returning})


FLAT = """\
import torch


def windows(kind, train, test, length):
    if kind == "train":
        rows = train
    else:
        rows = test
    {refusal}
    starts = torch.arange(rows.size(0) - length)
    starts.clamp(1, 2)
    return torch.stack([rows[s : s + length] for s in starts.tolist()]) + torch.ones({shape})
"""


@pytest.mark.parametrize(
    ("refusal", "shape"),
    [
        ("if rows.dim() != 1:\n        raise ValueError(rows)", "1"),
        ("assert rows.ndimension() == 1 and length > 0", "1"),
        ("assert len(rows.shape) in (3, 4)", "1"),
        ("if not rows.ndim == 1:\n        raise ValueError(rows)", "1"),
    ],
)
def test_what_is_refused_unless_it_has_so_many_dimensions_has_them(
    refusal: str, shape: str, verifier: Verifier
) -> None:
    text = FLAT.format(refusal=refusal, shape=shape)
    result = verified(text, the(text, "TCL602"), verifier)
    assert result.verdict is Verdict.CONFIRMED
    assert any("a call, 2 dimensions" in item.text for item in result.evidence)


@pytest.mark.parametrize(
    ("test", "met", "told"),
    [
        ("x.dim() == 2", True, [("x", 2)]),
        ("x.dim() != 2", False, [("x", 2)]),
        ("x.dim() == 2", False, []),
        ("x.dim() == 2 or y", True, []),
        ("x.dim() != 2 or len(y.size()) != 3", False, [("x", 2), ("y", 3)]),
        ("x.dim() > 2", True, []),
        ("x.dim() == n", True, []),
        ("len(x) == 2", True, []),
        ("x.size(1) == 2", True, []),
    ],
)
def test_a_condition_tells_dimensions(test: str, met: bool, told: list[tuple[str, int]]) -> None:
    node = ast.parse(test, mode="eval").body
    assert [(ast.unparse(part), count) for part, count in dimensions_told(node, met=met)] == told


FREEZES = """\
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        x = self.out(x)
        y = torch.exp(x)
        y += 1
        return self.norm(y)


class Encoder(nn.Module):
    def __init__(self, width, depth=2):
        super().__init__()
        self.layers = nn.ModuleList(Block(width) for _ in range(depth))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class Embedder(nn.Module):
    def __init__(self, width, kind=Encoder):
        super().__init__()
        self.encoder = kind(width)
        {freeze}

    def forward(self, x):
        return self.encoder(x)
{more}"""


@pytest.mark.parametrize(
    ("freeze", "more", "confirmed"),
    [
        ("for p in self.parameters():\n            p.requires_grad = False", "", False),
        ("self.requires_grad_(False)", "", False),
        ("self.eval()", "", True),
        ("self.encoder.layers[0].requires_grad_(False)", "", True),
        ("self.requires_grad_(False)", "\n\ndef build():\n    return Encoder(4)\n", True),
    ],
)
def test_a_class_that_is_only_made_to_be_frozen_trains_nothing(
    freeze: str, more: str, confirmed: bool, verifier: Verifier
) -> None:
    text = FREEZES.format(freeze=freeze, more=more)
    result = verified(text, the(text, "TCL202"), verifier)
    assert (result.verdict is Verdict.CONFIRMED) is confirmed
