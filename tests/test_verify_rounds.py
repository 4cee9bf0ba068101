"""Few rounds of a program stand for many, what is taken apart has parts, and what is moved or called by a usual name is
what it mostly is: each with a twin that is not confirmed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from forced import forced
from test_verify_programs import verified

from torchcopylint.base.finding import Finding, Role
from torchcopylint.base.verification import Verdict
from torchcopylint.verify.child import drawn
from torchcopylint.verify.run import Verifier
from torchcopylint.verify.slicing.asking import asked
from torchcopylint.verify.slicing.best import Best
from torchcopylint.verify.slicing.plans import Plan
from torchcopylint.verify.slicing.sizes import Setting
from torchcopylint.verify.slicing.source import Rewriter, cloned, parse, walked
from torchcopylint.verify.slicing.turns import often
from torchcopylint.verify.slicing.unpacking import Apart, taken_apart

BEST = """\
import torch
from torch import nn


def fit(model, batches, optimizer):
    total = 0.0
    for x in batches:
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total


model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
batches = [torch.eye(3)] * 2
best = float("inf")
for epoch in range(4):
    total = fit(model, batches, optimizer)  # <- written
    if total < best:
        best = total
        snap = {"model": model.state_dict()}  # <- TCL701, shared
    print(sum(value.sum().item() for value in snap["model"].values()))  # <- read
"""
RARE = """\
import torch
from torch import nn

model = nn.Linear(3, 1)
for i in range(1000):
    loss = model(torch.randn(2, 3)).mean()
    loss.backward()
    if (i + 1) % 100 == 0:
        print(loss.data[0])  # <- TCL106, here
"""
MOVED = """\
import torch
from torch import nn


def saliency(model: nn.Module, device):
    x = torch.randn(2, 4, requires_grad=True).to(device)
    model(x).sum().backward()
    return x.grad.abs()  # <- TCL308, read


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
print(saliency(nn.Linear(4, 1).to(device), device))
"""
TWO_WRITES = """\
import torch
from torch import nn


class Cache(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.register_buffer("cache", torch.zeros(4, 3))

    def forward(self, x, at=None):
        k = self.layer(x)
        if at is not None:
            self.cache[at] = k  # <- TCL306, kept
        else:
            self.cache[:2] = k
        return self.cache.sum(0)


cache = Cache()
print(cache(torch.randn(2, 3)))
for at in range(2, 4):
    print(cache(torch.randn(3), at))
"""
NAMED_ELSEWHERE = """\
import torch
import torchvision.transforms as transforms
from torch import nn


def infer(model, transforms):
    return transforms(model)


def main():
    normal = transforms.Normalize(0.5, 0.5)
    loss = nn.functional.mse_loss(nn.Linear(3, 1)(torch.randn(2, 3)), torch.zeros(2, 1))
    print(normal, loss.data[0])  # <- TCL106, here


main()
"""
USUAL = """\
import torch
from modules import *

data = torch.randn(2, 3)
loss = F.mse_loss(data, torch.zeros(2, 3))
print(loss.data[0])  # <- TCL106, here
"""
TAKEN_APART = """\
import torch
from torch import nn
from utils import load

model = nn.Linear(4, 4)
train, test = load()


def run(loader):
    for i, (data, target) in enumerate(loader):
        loss = nn.functional.mse_loss(model(data), target)
        print(i, loss.data[0])  # <- TCL106, here


first = next(iter(train))
print(train[0])
run(train)
"""
LAST_BATCH = """\
import torch
from data import Clouds
from torch import nn
from torch.utils.data import DataLoader

loader = DataLoader(Clouds(), batch_size=32, drop_last=True)
for data in loader:
    loss = data.float().mean()
    print(loss.data[0])  # <- TCL106, here
"""
SETTINGS = """\
import torch
from torch import nn


def train(opt, model: nn.Module):
    if opt.caption_model:
        model.eval()
    data = torch.randn(opt.batch_size, 3)
    loss = data.sum()
    print(loss.data[0])  # <- TCL106, here
"""
IN_PARTS = """\
import torch
from models import Net
from torch import nn

model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
out = model(torch.randn(2, 4))
loss = out["pose"].sum() + out["shape"].sum()
optimizer.zero_grad()
loss.backward()
print(loss.data[0])  # <- TCL106, here
"""


APPLIED = """\
import torch


def make(size=5):
    class Dense(torch.autograd.Function):
        @staticmethod
        def forward(ctx, input, weight, bias, beta):
            beta.mul(size)  # <- TCL602, discarded
            ctx.save_for_backward(input, weight, bias, beta)
            return torch.nn.functional.linear(input, weight, bias)

        @staticmethod
        def backward(ctx, grad):
            return grad, None, None, None

    return Dense
"""


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(timeout=20.0) as started:
        yield started


def told(text: str) -> Finding:
    """The finding that markers ask for; what keeps something says in what."""
    finding = forced(text)
    steps = [replace(s, message="kept here: `self.cache`") if s.role is Role.KEPT else s for s in finding.steps]
    return replace(finding, steps=tuple(steps))


@pytest.mark.parametrize(
    ("text", "assumed"),
    [
        (BEST, "the condition of line"),
        (RARE, "what line 8 does every 100 turns, it does in each"),
        (MOVED, "line 6 copies, as to another device"),
        (TWO_WRITES, ""),
        (NAMED_ELSEWHERE, ""),
        (USUAL, "`F` is `torch.nn.functional`, as it mostly is"),
        (TAKEN_APART, ""),
        (LAST_BATCH, ""),
        (SETTINGS, ""),
        (IN_PARTS, ""),
        (APPLIED, "`Dense` is applied where it is made"),
    ],
    ids=["best", "rare", "moved", "two-writes", "elsewhere", "usual", "apart", "last", "settings", "parts", "applied"],
)
def test_it_is_confirmed(text: str, assumed: str, verifier: Verifier) -> None:
    result = verified(text, told(text), verifier)
    assert result.verdict is Verdict.CONFIRMED, result
    assert any(item.text.startswith(assumed) for item in result.evidence)


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        (BEST, '{"model": model.state_dict()}', '{"model": {k: v.clone() for k, v in model.state_dict().items()}}'),
        (RARE, "print(loss.data[0])", "print(loss.item())"),
        (MOVED, "    model(x)", "    x.retain_grad()\n    model(x)"),
        (TWO_WRITES, "self.cache[at] = k", "self.cache[at] = k.detach()"),
        (NAMED_ELSEWHERE, "loss.data[0]", "loss.item()"),
        (USUAL, "loss.data[0]", "loss.item()"),
        (TAKEN_APART, "loss.data[0]", "loss.item()"),
        (LAST_BATCH, "loss.data[0]", "loss.item()"),
        (SETTINGS, "loss.data[0]", "loss.item()"),
        (IN_PARTS, "loss.data[0]", "loss.item()"),
        (APPLIED, "beta.mul(size)", "beta = beta.mul(size)"),
    ],
    ids=["best", "rare", "moved", "two-writes", "elsewhere", "usual", "apart", "last", "settings", "parts", "applied"],
)
def test_the_twin_is_not_confirmed(text: str, old: str, new: str, verifier: Verifier) -> None:
    text = text.replace(old, new)
    assert verified(text, told(text), verifier).verdict is not Verdict.CONFIRMED


def test_a_move_that_makes_a_gradient_vanish_elsewhere_is_not_refuted_here(verifier: Verifier) -> None:
    text = MOVED.replace("    model(x)", "    x.retain_grad()\n    model(x)")
    assert verified(text, forced(text), verifier).verdict is Verdict.UNSUPPORTED
    # Nothing is said of a device, and the gradient is there.
    text = MOVED.replace(".to(device)\n    model", "\n    model")
    assert verified(text, forced(text), verifier).verdict is Verdict.REFUTED


def test_a_graph_that_another_statement_keeps_as_well_refutes_nothing(verifier: Verifier) -> None:
    text = TWO_WRITES.replace("self.cache[at] = k", "self.cache[at] = k.detach()")
    assert verified(text, told(text), verifier).verdict is Verdict.INCONCLUSIVE
    # Where nothing keeps one, it does.
    text = text.replace("self.cache[:2] = k", "self.cache[:2] = k.detach()")
    assert verified(text, told(text), verifier).verdict is Verdict.REFUTED


@pytest.mark.parametrize(
    "text",
    [
        # The step is in the other branch, the number is a name, and something else is asked.
        "for i in range(9):\n    if i % 3 == 0:\n        a()\n    else:\n        b()  # step\n",
        "for i in range(9):\n    if i % n == 0:\n        b()  # step\n",
        "for i in range(9):\n    if i % 3 > 0:\n        b()  # step\n",
        "for i in range(9):\n    if i % 3 == 0 or i > 7:\n        b()  # step\n",
    ],
)
def test_a_number_of_turns_that_does_not_lead_to_a_step_stays(text: str) -> None:
    source = parse(text)
    row = text.split("\n").index(next(line for line in text.split("\n") if "# step" in line)) + 1
    assert often(source, {row}) == (source, ())


@pytest.mark.parametrize(
    "text",
    [
        # All steps are below the condition, what is compared is not replaced, and it is asked for equality.
        "for x in y:\n    if x < best:\n        best = x  # step\n        a()  # step\n",
        "for x in y:\n    if x < limit:\n        best = x  # step\n    a()  # step\n",
        "for x in y:\n    if x == best:\n        best = x  # step\n    a()  # step\n",
    ],
)
def test_what_keeps_no_best_is_met_as_often_as_it_is(text: str) -> None:
    tree = parse(text).tree
    rows = [row for row, line in enumerate(text.split("\n"), start=1) if "# step" in line]
    assert Best(tree, rows).once(Plan("the whole file", tuple(tree.body))) is None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a, b = given", [Apart("given", "", ("a", "b"))]),
        ("a, b = self.given", [Apart("given", "", ("a", "b"))]),
        ("a, b = make(1)", [Apart("make", "called", ("a", "b"))]),
        ("a, b = next(iter(given))", [Apart("given", "each", ("a", "b"))]),
        ("for a, b in given: pass", [Apart("given", "each", ("a", "b"))]),
        ("for i, (a, b) in enumerate(given): pass", [Apart("given", "each", ("a", "b"))]),
        ("for i, a in enumerate(given): pass", []),
        ("a, *b = given", []),
        ("a, b, c = given", []),
        ("for a, b in make(): pass", []),
    ],
)
def test_what_is_taken_apart_is_found(text: str, found: list[Apart]) -> None:
    assert list(taken_apart(ast.parse(text).body[0], 2)) == found


def test_what_has_to_fit_one_is_one_and_fewer_are_made_of_what_is_counted() -> None:
    setting = Setting(4, 2, 0)
    message = "Expected input batch_size (4) to match target batch_size (16)."
    assert asked(setting, message, "") == replace(setting, size=1, spatial=1)
    assert asked(replace(setting, size=1, spatial=1), message, "") is None
    assert asked(setting, "index 2 is out of range", "") == replace(setting, size=2)
    assert asked(setting, "index 7 is out of range", "") is None


def test_large_tensors_repeat_what_is_drawn_and_small_ones_do_not() -> None:
    before = {name: getattr(torch.Tensor, name) for name in ("uniform_", "normal_")}
    try:
        drawn.install()
        torch.manual_seed(0)
        large = torch.nn.Parameter(torch.empty(300, 400))
        torch.nn.init.kaiming_uniform_(large)
        flat = large.detach().view(-1)
        assert torch.equal(flat[:16381], flat[16381 : 2 * 16381])
        assert torch.equal(flat[7 * 16381 :], flat[: len(flat) - 7 * 16381])
        assert not torch.equal(large[0], large[1])
        assert 0.9 < flat.std() / torch.nn.init.kaiming_uniform_(torch.empty(100, 400)).std() < 1.1
        torch.manual_seed(0)
        small = torch.empty(100, 100).normal_()
        torch.manual_seed(0)
        assert torch.equal(small, before["normal_"](torch.empty(100, 100)))
        with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
            large.normal_()
        turned = torch.empty(400, 300).t()
        assert not torch.equal(turned.normal_().contiguous().view(-1)[:16381], turned.reshape(-1)[16381 : 2 * 16381])
    finally:
        for name, made in before.items():
            setattr(torch.Tensor, name, made)


def test_trees_are_rewritten_as_by_the_usual_transformer() -> None:
    class Less(Rewriter):
        def visit_Constant(self, node: ast.Constant) -> ast.Constant:
            return ast.copy_location(ast.Constant(0), node) if node.value == 1 else node

        def visit_Pass(self, node: ast.Pass) -> None:
            return None

        def visit_Expr(self, node: ast.Expr) -> list[ast.stmt]:
            return [node, node]

    class Usual(ast.NodeTransformer):
        visit_Constant, visit_Pass, visit_Expr = Less.visit_Constant, Less.visit_Pass, Less.visit_Expr

    text = "def f(a: int = 1, *, b=1, c):\n    pass\n    x = {1: 2, **a}\n    f(1)\n    return [i for i in a if 1]\n"
    tree = ast.parse(text)
    assert ast.dump(Less().visit(cloned(tree))) == ast.dump(Usual().visit(cloned(tree)))
    assert [type(node) for node in walked(tree)] == [
        type(node) for node in ast.walk(tree) if not isinstance(node, ast.expr_context)
    ]
