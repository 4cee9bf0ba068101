"""What inputs and stand-ins have to be for the code around a finding to run: each with a right twin."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from forced import forced
from test_verify_programs import verified

from torchcopylint.base.verification import Verdict
from torchcopylint.pages import load_pages
from torchcopylint.verify.run import Verifier
from torchcopylint.verify.slicing.conditions import Wanted
from torchcopylint.verify.slicing.inference import Inference
from torchcopylint.verify.slicing.making import Maker
from torchcopylint.verify.slicing.sizes import Setting
from torchcopylint.verify.slicing.slicer import slice_of
from torchcopylint.verify.slicing.standins import helpers
from torchcopylint.verify.slicing.things import Thing

SIZED = """\
import torch
from torch import nn


class Fusion(nn.Module):
    def __init__(self, parts, out):
        super().__init__()
        self.weights = nn.ParameterList([nn.Parameter(torch.Tensor(out, part)) for part in parts])

    def forward(self, x: torch.Tensor):
        y = x  # <- shared
        for weight in self.weights:
            y += weight.shape[0]  # <- TCL501, written
        return x, y  # <- read
"""
ORDERED = """\
def prepare(x):
    x.contiguous()  # <- TCL602, discarded
    return x.sum()
"""
RECORD = """\
from typing import NamedTuple

import torch


class Samples(NamedTuple):
    states: torch.Tensor
    returns: torch.Tensor

    def centred(self):
        self.returns.sub(1)  # <- TCL602, discarded
        return self.states, self.returns
"""
KEYED = """\
import torch


class Run:
    def __init__(self, settings):
        self.depth = settings["depth"]
        vars(self).update(settings=settings)

    def scaled(self, x: torch.Tensor):
        factor = self.settings["factor"]
        x.mul(factor)  # <- TCL602, discarded
        return x
"""
LAYERS = """\
from blocks import layers as parts
from torch import nn


def backbone(channels):
    stem = parts.Stem(channels, 64)
    blocks = [parts.Block(channels)] * 3  # <- TCL706, shared
    return nn.Sequential(stem, *blocks)
"""
CLASSES = """\
from geometry import nn as gnn
from torch import nn


class Explained(nn.Module):
    def __init__(self, net: nn.Module):
        super().__init__()
        self.parts = [part for part in net.modules() if isinstance(part, gnn.Passing)]
        self.net = net

    def forward(self, x):
        x.mul(2)  # <- TCL602, discarded
        return self.net(x)
"""
IN_TURNS = """\
from torch import nn, optim


def train(net: nn.Linear, batches, args):
    optimizer = optim.SGD(net.parameters(), lr=0.1)
    most = args.max_epoch * len(batches)
    interval = most // args.interval
    done = 0
    while done < most:
        done += 1
        net(batches[0]).sum().backward()
        optimizer.step()  # <- written
        if done % interval == 0:
            best = net.state_dict()  # <- TCL701, shared
    return best  # <- read
"""
COMPARED = """\
import torch


def relabel(labels: torch.Tensor, most: int):
    kept = labels  # <- shared
    kept[kept >= most] = -1  # <- TCL501, written
    return labels, kept  # <- read
"""
MADE_ELSEWHERE = """\
import models
from torch import optim


def build(shape):
    net = models.Net(shape)
    optimizer = optim.SGD(net.parameters(), lr=0.1)
    best = net.state_dict()  # <- TCL701, shared
    net.train()
    net(shape).sum().backward()
    optimizer.step()  # <- written
    return best  # <- read
"""
NO_GRAPH = """\
from elsewhere import losses
from torch import nn, optim


def train(net: nn.Linear, steps):
    optimizer = optim.SGD(net.parameters(), lr=0.1)
    for step in range(3):
        found = losses[step]
        optimizer.zero_grad()
        found.backward()
        optimizer.step()  # <- written
        if step == 0:
            best = net.state_dict()  # <- TCL701, shared
    return best  # <- read
"""
LOSSES = """\
def report(step, batch):
    policy_loss, value_loss = step(batch)
    return policy_loss.data[0]  # <- TCL106, here
"""
NOBODY_KEPT = """def fit(net, optimizer, batches, limit):
    best, least = None, 0.0
    for batch in batches:
        loss = net(batch).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # <- written
        if limit.reached(loss) and loss.item() < least:
            best = net.state_dict()  # <- TCL701, shared
    net.load_state_dict(best)  # <- read
    return net
"""
PROGRAMS = {
    "a best that nobody kept": (NOBODY_KEPT, "= net.state_dict()", "= {k: v + 0 for k, v in net.state_dict().items()}"),
    "sizes of a tensor": (SIZED, "y = x  #", "y = x.clone()  #"),
    "a record": (RECORD, "        self.returns.sub(1)", "        self.returns.sub_(1)"),
    "a key that is missing": (KEYED, "        x.mul(", "        x = x.mul("),
    "layers from elsewhere": (LAYERS, "[parts.Block(channels)] * 3", "[parts.Block(channels) for _ in range(3)]"),
    "classes from elsewhere": (CLASSES, "        x.mul(2)", "        x = x.mul(2)"),
    "every so many turns": (IN_TURNS, "net.state_dict()", "{k: v.clone() for k, v in net.state_dict().items()}"),
    "more than a number": (COMPARED, "kept = labels", "kept = labels.clone()"),
    "a module made elsewhere": (
        MADE_ELSEWHERE,
        "= net.state_dict()",
        "= {k: v + 0 for k, v in net.state_dict().items()}",
    ),
    "a loss without a graph": (NO_GRAPH, "= net.state_dict()", "= {k: v + 0 for k, v in net.state_dict().items()}"),
    "a loss": (LOSSES, "policy_loss.data[0]", "policy_loss.data"),
}
"""Each with what makes it right, in the place of what."""


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(timeout=60) as made:
        yield made


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_made_leads_to_the_steps_and_shows_the_fault_alone(name: str, verifier: Verifier) -> None:
    text, fault, instead = PROGRAMS[name]
    answer = verified(text, forced(text), verifier)
    assert answer.verdict is Verdict.CONFIRMED, answer.evidence
    right = text.replace(fault, instead)
    assert right != text
    assert verified(right, forced(right), verifier).verdict is not Verdict.CONFIRMED


def test_what_puts_in_order_in_vain_is_given_what_is_not_in_order(verifier: Verifier) -> None:
    message = "`contiguous()` returns a new tensor; the result is dropped"
    answer = verified(ORDERED, replace(forced(ORDERED), message=message), verifier)
    assert answer.verdict is Verdict.CONFIRMED, answer.evidence
    right = ORDERED.replace("    x.contiguous()", "    x = x.contiguous()")
    assert verified(right, replace(forced(right), message=message), verifier).verdict is not Verdict.CONFIRMED


def test_that_a_conversion_had_nothing_to_do_refutes_nothing(verifier: Verifier) -> None:
    text = "import torch\n\nx = torch.ones(2, 2)\nx.contiguous()  # <- TCL602, discarded\nprint(x)\n"
    assert verified(text, forced(text), verifier).verdict is Verdict.INCONCLUSIVE
    written = text.replace("contiguous()", "add_(1)")
    assert verified(written, forced(written), verifier).verdict is Verdict.REFUTED


def test_where_what_returns_a_write_is_cut_away_it_is_not_known_to_be_lost() -> None:
    text = "def zero(x):\n    x = x.clone()\n    x[1:][0] = 0  # <- TCL601, written\n    return x\n"
    for returned, guessed in (("x", True), ("None", False)):
        program = text.replace("return x", f"return {returned}")
        (first, *_) = slice_of(program, forced(program), load_pages()["TCL601"]).groups
        attempts = [attempt for attempt in first.attempts if "return" not in attempt.script.split("def zero")[1]]
        assert attempts
        assert all(attempt.guessed is guessed for attempt in attempts)


def test_what_stands_in_is_a_tensor_for_functions_of_torch_alone() -> None:
    torch = pytest.importorskip("torch")
    made: dict[str, Any] = {"torch": torch}
    exec(helpers(["Anything"], Setting(4, 2, 0), Wanted()), made)
    thing = made["Anything"]("scores")
    assert torch.softmax(thing, dim=-1).shape == (4, 4)
    both = torch.stack([thing, thing])
    assert torch.equal(both[0], both[1])
    assert next(thing) is thing
    assert -thing is thing
    x = torch.ones(3)
    assert (x * thing).tolist() == x.tolist()
    assert (x < thing) is False


def test_what_is_a_part_of_itself_is_made_as_well() -> None:
    whole = Thing("whole", arity=2)
    whole.items = {0: whole, 1: Thing("rest")}
    function = Thing("split", result=whole)
    text = Maker(Inference(ast.parse("")), Setting(4, 2, 0)).expression(function, "split")
    assert text.startswith("lambda *given, **named: (")
