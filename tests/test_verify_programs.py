"""What a slice makes for code of which it knows little: programs that are confirmed because it is made right."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest
from forced import forced
from test_notebook import notebook

from torchcopylint.analysis import analyse
from torchcopylint.base.finding import Finding
from torchcopylint.base.verification import Verdict, Verification
from torchcopylint.pages import load_pages
from torchcopylint.project.notebooks import in_cells
from torchcopylint.source.notebook import convert
from torchcopylint.verify.judge import rule_of
from torchcopylint.verify.predicates import LOOKS, PREDICATES
from torchcopylint.verify.run import Verifier
from torchcopylint.verify.slicing.slicer import slice_of

MOVED = """\
import torch


def move(x: torch.Tensor, device):
    {call}
    return x
"""
IMPORTED_IN_TRY = """\
try:
    import torch
    from torch import nn
    from readers import batches
except ImportError:
    raise SystemExit


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return self.layer(x)


net = Net()
for batch in batches(unreadable=open("list.txt")):
    out = net(batch)
state = net.layer.weight.detach()
total = state  # <- shared
state.add_(1)  # <- TCL501, written
print(total)  # <- read
"""
REPEATED = """\
import missing
from torch import nn


class Block(nn.Module):
    def __init__(self, channels, num_layers):
        super().__init__()
        half = missing.half(channels)
        layers = [nn.Linear(channels, half)]
        layers += [nn.Linear(half, half), nn.ReLU()] * (num_layers - 2)
        self.layers = nn.Sequential(*layers)
"""
DATA = """\
import torch
from torch import nn
from readers import corpus

size = corpus.train.images.shape[1]
model = nn.Linear(4, 4)
for turn in range(3):
    batch, _ = corpus.train.next_batch(16)
    batch = model(torch.from_numpy(batch).float()).detach()
    old = batch  # <- shared
    batch.mul_(2)  # <- TCL501, written
    print(old)  # <- read
"""
CONDITIONS = """\
import torch
from options import options

args = options()
values = torch.zeros(4)
if not args.quiet and args.kind == "first":
    kept = values  # <- shared
else:
    raise ValueError(args.kind)
values.add_(1)  # <- TCL501, written
print(kept)  # <- read
"""
NUMBER = """\
import torch


def project(x: torch.Tensor, radius, start):
    kept = x
    x.clamp_(max=radius)
    x.uniform_(-start, start)
    return x, kept
"""
DROPS_NOTHING = """\
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, drop=0.0):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.drop = nn.Dropout(drop, inplace=True)

    def forward(self, x: torch.Tensor):
        weights = self.layer(x).softmax(-1)
        kept = weights
        weights = self.drop(weights)
        return kept, weights
"""
CLEARED = """\
import torch


class Select(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, indices):
        ctx.indices = indices
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad_output):
        grad_output[ctx.indices] = 0
        return grad_output, None
"""
OLD_STYLE = """\
import torch


class Hinge(torch.autograd.Function):
    def __init__(self):
        super().__init__()
        self.margin = 1.0

    def forward(self, x, target):
        self.save_for_backward(x, target)
        return self.margin - x * target

    def backward(self, grad_output):
        x, target = self.saved_tensors
        grad_output.mul_(-target)
        return grad_output, None
"""
EITHER = """\
from torch import nn


class Deep(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.layers = nn.Sequential(*[nn.Linear(channels, channels)] * 3)


class Flat(nn.Module):
    def __init__(self, channels, pretrained):
        super().__init__()
        self.layer = nn.Linear(channels, pretrained)


class Whole(nn.Module):
    def __init__(self, channels, deep=False):
        super().__init__()
        if deep:
            self.backbone = Deep(channels)
        else:
            self.backbone = Flat(channels, pretrained=True)
"""
MISSING = """\
import numpy as np


def fill(values: np.ndarray):
    rows = values.T
    rows[np.isnan(rows)] = 0
    return rows.sum()
"""
ASKED = """\
import torch
from readers import transform


def evaluate(images, device):
    for image in images:
        height, width = image.shape[:2]
        image = torch.as_tensor(transform(image).astype("float32").transpose(2, 0, 1))
        image.to(device)
        print(image)
"""
KEPT_BY_BASE = """\
import torch
from toolkit import Estimator


class Smoothed(Estimator):
    def __init__(self, limits=None):
        super().__init__(limits=limits)

    def predict(self, x: torch.Tensor):
        noisy = x + torch.randn_like(x)
        noisy.clamp(self.limits[0], self.limits[1])
        return noisy
"""
LOSSES = """\
import torch.nn.functional as F
from torch import nn


class Losses(nn.Module):
    def __init__(self, weight=3):
        super().__init__()
        self.weight = weight

    def forward(self, predicted=None, wanted=None):
        losses = {}
        loss = F.mse_loss(predicted, wanted)
        losses["duration"] = loss
        loss *= self.weight
        losses["whole"] = loss
        return losses
"""
FEDERATED = """\
import copy

import torch
from models import Large, Small
from options import options
from training import average

args = options()
if args.kind == "large":
    model = Large(args)
else:
    model = Small(args).to(args.device)
model.train()
weights = model.state_dict()
if args.everybody:
    kept = [weights for _ in range(args.users)]
for turn in range(3):
    if not args.everybody:
        kept = []
    model.load_state_dict(average(kept))
    print(kept)
"""
PATHS = """\
import pathlib
import sys
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT))


def brighten(images: torch.Tensor, out: Path):
    folder = out / pathlib.Path("a").stem
    folder.parent.mkdir(parents=True, exist_ok=True)
    for path in ROOT.glob("*.png"):
        raise ValueError(path)
    first = images[:, 0]
    first.mul_(2)
    print(folder.with_suffix(".png"), folder.parents[1].name)
    return images.sum() + first.sum()
"""
LOGGED = """\
import torch


class Worker:
    def __init__(self, conf):
        self.conf = conf

    def begin(self, model, writer):
        self.conf.logger.log("begin", 1)
        self.conf.history.append(model)
        state = model.state_dict()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        before = state
        self.conf.logger.log(f"took {len(state)}")
        for name, value in state.items():
            writer.add_histogram(name, value)
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(4, 4)).sum().backward()
            optimizer.step()
        model.load_state_dict(before)
        return writer.log(model)
"""
REGISTERED = """\
import torch
from engine import Registry, build

LAYERS = Registry("layers")


@LAYERS.register_module()
class Scale(torch.nn.Module):
    def __init__(self, config):
        super().__init__()
        self.size = config["size"]
        self.scale = torch.nn.Parameter(torch.ones(config.size))

    def forward(self, x: torch.Tensor):
        kind = LAYERS["other"]
        x.mul(2)
        return build(kind), x.sum() * self.scale
"""
TYPED = """\
import torch


class Pair:
    def __init__(self, dtype: torch.dtype):
        self.dtype = dtype

    def both(self, x: torch.Tensor):
        x.mul(2)
        return x.to(self.dtype), x.sum()
"""
MASKED = """\
import numpy as np


def recolor(pixels: np.ndarray, old, new):
    kept = pixels
    for before, after in zip(old, new):
        kept[pixels == before] = after
    return np.uint16(kept), pixels
"""


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(timeout=20.0) as started:
        yield started


def the(text: str, code: str) -> Finding:
    (finding,) = [finding for finding in analyse(text, filename="program.py").findings if finding.code == code]
    return finding


def verified(text: str, finding: Finding, verifier: Verifier) -> Verification:
    page = load_pages()[finding.code]
    return verifier.verify(slice_of(text, finding, page), page)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (IMPORTED_IN_TRY, ""),
        (REPEATED, "TCL706"),
        (DATA, ""),
        (CONDITIONS, ""),
        (NUMBER, "TCL501"),
        (DROPS_NOTHING, "TCL202"),
        (CLEARED, "TCL210"),
        (OLD_STYLE, "TCL210"),
        (EITHER, "TCL706"),
        (MISSING, "TCL501"),
        (ASKED, "TCL602"),
        (KEPT_BY_BASE, "TCL602"),
        (LOSSES, "TCL501"),
        (FEDERATED, "TCL701"),
    ],
    ids=[
        "try",
        "repeated",
        "data",
        "conditions",
        "number",
        "drop",
        "function",
        "old",
        "either",
        "missing",
        "asked",
        "base",
        "losses",
        "federated",
    ],
)
def test_what_is_made_lets_the_code_run(text: str, code: str, verifier: Verifier) -> None:
    answer = verified(text, the(text, code) if code else forced(text), verifier)
    assert answer.verdict is Verdict.CONFIRMED, answer.evidence


@pytest.mark.parametrize(
    ("text", "code"), [(PATHS, "TCL501"), (LOGGED, "TCL701"), (REGISTERED, "TCL602"), (TYPED, "TCL602")]
)
def test_nothing_is_left_out_for_want_of_paths_loggers_registries_and_dtypes(
    text: str, code: str, verifier: Verifier
) -> None:
    answer = verified(text, the(text, code), verifier)
    assert answer.verdict is Verdict.CONFIRMED, answer.evidence
    assert any(item.kind == "setting" and item.text.startswith("a call") for item in answer.evidence), answer.evidence


def test_a_write_that_finds_nothing_to_write_refutes_nothing(verifier: Verifier) -> None:
    answer = verified(MASKED, the(MASKED, "TCL501"), verifier)
    assert answer.verdict is Verdict.INCONCLUSIVE, answer.evidence
    assert "with these inputs, what writes changes nothing" in [item.text for item in answer.evidence]


@pytest.mark.parametrize("call", ["x.cuda()", "x.to(device)", "x.to('cuda:0')", "x.to(device=device)"])
def test_what_moves_to_another_device_moves_to_one_that_is_there(call: str, verifier: Verifier) -> None:
    text = MOVED.format(call=call)
    answer = verified(text, the(text, "TCL602"), verifier)
    assert answer.verdict is Verdict.CONFIRMED, answer.evidence
    assert "the other device of line 5 is torch's `meta`" in [item.text for item in answer.evidence]


def test_a_module_that_moves_is_itself(verifier: Verifier) -> None:
    text = "from torch import nn\n\n\ndef move(x: nn.Linear):\n    x.cuda()  # <- TCL602, discarded\n    return x\n"
    finding = forced(text)
    page = load_pages()["TCL602"]
    assert verifier.verify(slice_of(text, finding, page), page).verdict is not Verdict.CONFIRMED


def test_a_plain_attribute_is_no_flag(verifier: Verifier) -> None:
    text = "import torch\n\nx = torch.ones(2)\nx.require_grad = False\nprint(x.sum())\n"
    answer = verified(text, the(text, "TCL606"), verifier)
    assert answer.verdict is Verdict.CONFIRMED, answer.evidence
    right = text.replace("require_grad = False", "requires_grad = False  # <- TCL606, here")
    assert verified(right, forced(right), verifier).verdict is not Verdict.CONFIRMED


def test_what_happened_in_a_notebook_is_told_by_its_cells(verifier: Verifier) -> None:
    cells = (
        "import torch",
        ("markdown", "# Values"),
        "model = torch.nn.Linear(2, 2)\nbest = model.state_dict()",
        "with torch.no_grad():\n    model.weight.add_(1)\nmodel.load_state_dict(best)",
    )
    text = convert(notebook(*cells)).text
    found = [finding for finding in analyse(text, filename="book.ipynb").findings if finding.code == "TCL701"]
    (finding,) = in_cells(found, "book.ipynb", text)
    assert finding.cell is not None
    answer = verified(text, finding, verifier)
    assert answer.verdict is Verdict.CONFIRMED, answer.evidence
    assert answer.evidence[0].text.startswith("line 2 of cell 4 changed ")
    assert answer.evidence[0].row == 2


def test_every_predicate_says_what_it_looks_at() -> None:
    assert LOOKS.keys() == PREDICATES.keys()


def test_no_run_is_asked_for_twice(verifier: Verifier) -> None:
    asked: list[str] = []

    class Counting(Verifier):
        def observe(self, request: dict[str, object], *others: object):  # type: ignore[no-untyped-def]
            asked.append(json.dumps(request, sort_keys=True))
            return super().observe(request, *others)

    text = "import torch\n\nx = torch.ones(2)\nx.require_grad = False\nprint(x.sum())\n"
    page = load_pages()["TCL606"]
    assert len(rule_of(page, "").words) > 1
    with Counting(timeout=20.0) as counting:
        counting.verify(slice_of(text, the(text, "TCL606"), page), page)
    assert len(asked) == len(set(asked)) > 1


def test_two_runs_differ_in_nothing_but_what_was_altered(verifier: Verifier) -> None:
    text = """\
import datetime
import time

import torch

start = time.time()
begun = datetime.datetime.now()
x = torch.ones(2)
x.add_(1)  # <- TCL602, discarded
time.sleep(3)
taken = time.time() - start, time.perf_counter_ns(), datetime.datetime.now() - begun, time.strftime("%X")
where = id(x), x.data_ptr(), object()
print(start, taken, where, object(), time.ctime())
"""
    began = time.monotonic()
    answer = verified(text, forced(text), verifier)
    assert answer.verdict is Verdict.REFUTED, answer.evidence
    assert time.monotonic() - began < 20


def test_what_nobody_has_written_is_the_same_in_every_run(verifier: Verifier) -> None:
    text = """\
import numpy as np
import torch

first, second = np.empty(3), torch.empty(3)
x = torch.ones(2)
x.add_(1)  # <- TCL602, discarded
full = [np.full(3, 7.0), torch.full((3,), 7.0), np.full(3000, 7.0), torch.full((3000,), 7.0)]
del full
print(first, second, np.empty(3), torch.empty(3), torch.Tensor(3), np.empty(3000).sum(), torch.empty(3000).sum())
"""
    answer = verified(text, forced(text), verifier)
    assert answer.verdict is Verdict.REFUTED, answer.evidence
