"""What is observed only because of what stands in, or because something was left out, is not confirmed: with twins."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest
from forced import forced
from test_verify_programs import verified

from torchcopylint.base.verification import Verdict
from torchcopylint.verify.run import Verifier
from torchcopylint.verify.slicing.switches import frozen

TABLE = """\
import torch
from tables import pretrained


class Ranker(torch.nn.Module):
    def __init__(self, count):
        super().__init__()
        self.table = pretrained(count)
        self.known = self.table.weight.cpu().numpy()  # <- TCL403, read
"""
TRAINED = """\
def train(net, batches, optimizer):
    curve = []
    for batch in batches:
        loss = net(batch).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        curve.append(loss.numpy())  # <- TCL403, read
    return curve
"""
EVALUATED = """\
def predict(net, batches):
    return [net(batch).numpy() for batch in batches]  # <- TCL403, read
"""
CACHE = """\
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.key = nn.Linear(width, width)
        self.cache = torch.zeros(8, width)

    def forward(self, x: torch.Tensor, position: int):
        key = self.key(x)
        self.cache[position] = key.mean(0)  # <- TCL306, kept
        return (x @ self.cache.t()).sum()
"""
SHOWN = """\
import torch

x = torch.quantize_per_tensor(torch.randn(4), 0.1, 0, torch.qint8)
x.int_repr()  # <- TCL602, discarded
print(torch.dequantize(x).shape)
print(x.q_scale())
"""
ROUNDED = """\
import torch


class Gate(torch.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.logit = torch.nn.Parameter(torch.linspace(-1, 1, n))

    def forward(self, x: torch.Tensor):
        soft = self.logit.sigmoid()
        soft.data.round_()  # <- TCL103, written
        return x * soft
"""
STYLE = """\
import logging

import torch

LOGGER = logging.getLogger(__name__)


def restyle(net: torch.nn.Module, content: torch.Tensor):
    LOGGER.info("start", extra=logging.extras())
    target = net(content)  # <- kept
    image = content.clone()
    image.requires_grad_()
    optimizer = torch.optim.Adam([image])
    for _ in range(3):
        optimizer.zero_grad()
        loss = (net(image) - target).pow(2).sum()
        loss.backward()  # <- TCL312, read
        optimizer.step()
    return image
"""
OWN = STYLE.replace("net: torch.nn.Module, ", "").replace(
    "    target", "    net = torch.nn.Linear(content.shape[-1], 2)\n    target"
)
FROZEN = """\
import torch
from files import weights


class Probe(torch.nn.Module):
    def __init__(self, encoder: torch.nn.Module, path):
        super().__init__()
        self.encoder = encoder
        self.encoder.load_state_dict(weights(path)[:3])
        for parameter in self.encoder.parameters():
            parameter.requires_grad = False
        self.head = torch.nn.Linear(4, 4)

    def forward(self, x):
        self.seen = [0.0]
        state = self.encoder(x)
        total = 0.0
        for _ in range(3):
            total = total + state  # <- TCL401, kept
        return total.sum() + self.head.missing
"""
WRITTEN = """\
import torch

scale = torch.tensor(3.0, requires_grad=True)
area = scale**2
area.backward()
scale.data.zero_()  # <- TCL103, written
"""


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(timeout=60) as made:
        yield made


@pytest.mark.parametrize(
    ("text", "sure"),
    [
        (TABLE, False),
        (TABLE.replace("pretrained(count)", "torch.nn.Embedding(count, 3)"), True),
        (EVALUATED, False),
        (TRAINED, True),
        (STYLE, False),
        (OWN, True),
    ],
    ids=["a table from elsewhere", "a new one", "whoever calls", "code that trains", "what is handed over", "its own"],
)
def test_a_graph_that_only_what_stands_in_has_confirms_nothing(text: str, sure: bool, verifier: Verifier) -> None:
    answer = verified(text, forced(text), verifier)
    assert answer.verdict is (Verdict.CONFIRMED if sure else Verdict.INCONCLUSIVE), answer.evidence
    assert ("lent" in {item.kind for item in answer.evidence}) is not sure


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (WRITTEN, Verdict.INCONCLUSIVE),
        (WRITTEN.replace("area.backward()\n", "") + "area.backward()\n", Verdict.CONFIRMED),
        (f"{WRITTEN}print(scale._version)\n", Verdict.CONFIRMED),
    ],
    ids=["after the backward pass", "before it", "where it is told"],
)
def test_a_write_that_no_graph_waits_for_does_no_harm(text: str, verdict: Verdict, verifier: Verifier) -> None:
    answer = verified(text, forced(text), verifier)
    assert answer.verdict is verdict, answer.evidence
    assert ("harmless" in {item.kind for item in answer.evidence}) is (verdict is Verdict.INCONCLUSIVE)


def test_what_the_file_switches_off_is_off_where_it_stands_in() -> None:
    text = """\
class Probe:
    def __init__(self, encoder, decoder, heads, gate, flag):
        for p in self.encoder.parameters():
            p.requires_grad = False
        self.decoder.requires_grad_(False)
        if flag:
            self.gate.requires_grad_(False)
        for i, head in enumerate(self.heads):
            head.weight.requires_grad = False
        teacher.requires_grad_(False)

    def unfreeze(self, teacher):
        teacher.requires_grad_(True)
"""
    assert frozen(ast.parse(text).body) == {"encoder": 4, "decoder": 5, "heads": 9}


REDUCED = """\
import torch


def touch(module: torch.nn.Module):
    for p in module.parameters():
        p.data.sum()  # <- TCL602, discarded
"""
PICKED = """\
import torch


def forget(edges, weights):
    best, place = torch.max(edges, dim=0)
    if best > 0:
        weights.data[place].fill_(0.0)  # <- TCL601, written
        print(place)
    return weights
"""


@pytest.mark.parametrize(
    ("text", "sure"),
    [
        (REDUCED, False),
        (REDUCED.replace("sum()", "clamp(-1, 1)"), True),
        (REDUCED.replace("        p.", "        print(p)\n        p.").replace("sum()", "view(-1)"), True),
        (f"{REDUCED}        print(p)\n", True),
    ],
    ids=["what touches", "what looks as if it changed", "another shape", "what is used"],
)
def test_one_number_that_nobody_asks_for_is_no_forgotten_change(text: str, sure: bool, verifier: Verifier) -> None:
    answer = verified(text, forced(text), verifier)
    assert answer.verdict is (Verdict.CONFIRMED if sure else Verdict.INCONCLUSIVE), answer.evidence


def test_where_one_number_is_asked_for_an_index_of_several_shows_nothing(verifier: Verifier) -> None:
    answer = verified(PICKED, forced(PICKED), verifier)
    assert answer.verdict is not Verdict.CONFIRMED, answer.evidence
    several = PICKED.replace("if best > 0:", "if len(best) > 0:")
    assert verified(several, forced(several), verifier).verdict is Verdict.CONFIRMED


def test_who_calls_may_have_switched_recording_off(verifier: Verifier) -> None:
    found = verified(CACHE, forced(CACHE), verifier)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert any(item.kind == "lent" and "recording off" in item.text for item in found.evidence)
    trained = f"{CACHE}\n\ndef train(net, x, position):\n    net(x, position).backward()\n"
    assert verified(trained, forced(trained), verifier).verdict is Verdict.CONFIRMED


def test_what_does_not_fit_where_it_would_have_to_go_is_not_confirmed(verifier: Verifier) -> None:
    found = verified(SHOWN, forced(SHOWN), verifier)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert any(item.kind == "unused" for item in found.evidence)
    meant = SHOWN.replace("x.int_repr()", "x.dequantize()").replace("print(x.q_scale())\n", "")
    assert verified(meant, forced(meant), verifier).verdict is Verdict.CONFIRMED


def test_a_graph_that_needs_something_else_is_not_harmed(verifier: Verifier) -> None:
    assert verified(ROUNDED, forced(ROUNDED), verifier).verdict is Verdict.CONFIRMED
    copied = ROUNDED.replace("sigmoid()", "sigmoid().clone()")
    assert verified(copied, forced(copied), verifier).verdict is Verdict.INCONCLUSIVE
