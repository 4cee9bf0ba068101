"""From findings to slices: the pages' examples in larger files are confirmed, tempting and hostile code is not.

What cannot be confirmed is listed with the reason, so that it is known when it changes.
"""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from forced import forced, forced_at

from torchcopylint.analysis import analyse
from torchcopylint.base.finding import Finding
from torchcopylint.base.verification import Verdict
from torchcopylint.pages import Page, load_pages
from torchcopylint.verify import client
from torchcopylint.verify.judge import EFFECTLESS
from torchcopylint.verify.model import Attempt
from torchcopylint.verify.run import Verifier
from torchcopylint.verify.slicing.slicer import slice_of

HERE = Path(__file__).parent
TEMPTING = sorted((HERE / "verify" / "tempting").glob("*.py"))
HOSTILE = sorted((HERE / "verify" / "hostile").glob("*.py"))
PAGES = [
    page
    for page in load_pages().values()
    if page.get("confirm") and not set(page.get("confirm").replace(",", " ").split()) & EFFECTLESS
]
EMBEDDING = """\
import logging
{imports}

LOGGER = logging.getLogger(__name__)


def other(values):
    return [value for value in values]


def wrapped():
{body}


if __name__ == "__main__":
    LOGGER.info("start")
    wrapped()
"""
IN_CLASS = """\
import logging
{imports}

LOGGER = logging.getLogger(__name__)


class Wrapped:
    def __init__(self, name="wrapped", turns=3):
        self.name = name
        self.turns = turns

    def describe(self):
        return f"{{self.name}} turns {{self.turns}} times"

    def run(self):
{body}
"""
WITHOUT_EFFECT = {
    ("TCL103", "slow.data.copy_("): "both models have been set to the same values, so the copy changes none",
    ("TCL103", "module.bias.data.zero_()"): "the program tells the versions of the weights alone",
    ("TCL211", "ctx.left = left"): "the program writes the other input between forward and backward",
}
"""Statements of bad examples that cannot be shown by themselves, and why."""
EITHER_WAY = {
    ("TCL606", "discriminator.requires_grad = True"): "the line before the loss has made the same attribute; a part of "
    "the program may be without it",
}
"""The same, where what is cut away may take the reason along."""


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(timeout=20.0) as started:
        yield started


def embedded(code: str, where: str) -> str:
    """A program as a function, or a method of a class, of a larger file; what it imports is imported by the file."""
    if where == "file":
        return code
    lines = code.split("\n")
    imports = [line for line in lines if line.startswith(("import ", "from "))]
    body = ["" if line.startswith(("import ", "from ")) else line for line in lines]
    outer, indent = (EMBEDDING, "    ") if where == "function" else (IN_CLASS, "        ")
    return outer.format(imports="\n".join(imports), body=textwrap.indent("\n".join(body), indent))


def findings(text: str, code: str) -> list[Finding]:
    return [finding for finding in analyse(text, filename="program.py").findings if finding.code == code]


def first(text: str, finding: Finding) -> Attempt:
    page = load_pages()[finding.code]
    return next(iter(slice_of(text, finding, page).groups[0].attempts))


@pytest.mark.parametrize("where", ["file", "function", "class"])
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_bad_examples_are_confirmed_through_the_slicer(page: Page, where: str, verifier: Verifier) -> None:
    bad = [example for example in page.examples if example.kind == "bad"]
    for number, example in enumerate(bad):
        text = embedded(example.code, where)
        for finding in findings(text, page.code):
            verification = verifier.verify(slice_of(text, finding, page), page)
            reached = verification.verdict
            told = text.split("\n")[finding.span.start.row - 1]
            confirm = page.get("confirm", finding.variant)
            if page.keys.get("needs", "") == "processes" or confirm == "equivalent" or confirm.startswith("none"):
                assert reached is Verdict.UNSUPPORTED
            elif "cuda" in page.keys.get("needs", ""):
                assert reached in (Verdict.UNSUPPORTED, Verdict.CONFIRMED)
            elif any(page.code == code and start in told for code, start in EITHER_WAY):
                assert reached in (Verdict.CONFIRMED, Verdict.INCONCLUSIVE)
            elif any(page.code == code and start in told for code, start in WITHOUT_EFFECT):
                assert reached is not Verdict.CONFIRMED, f"example {number} is confirmed now"
            else:
                assert reached is Verdict.CONFIRMED, f"example {number}: {reached}: {verification.evidence}"


@pytest.mark.parametrize("path", TEMPTING, ids=lambda path: path.stem)
def test_tempting_code_is_not_confirmed(path: Path, verifier: Verifier) -> None:
    text = path.read_text(encoding="utf-8")
    finding = forced(text)
    page = load_pages()[finding.code]
    verification = verifier.verify(slice_of(text, finding, page), page)
    assert verification.verdict is not Verdict.CONFIRMED, verification.evidence


@pytest.fixture(scope="module")
def guarded() -> Iterator[Verifier]:
    """One for all hostile code: what one snippet does to its processes must not matter to the next."""
    with Verifier(timeout=1.5, memory=1 << 28) as started:
        yield started


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's protections are those of Linux")
@pytest.mark.parametrize("path", HOSTILE, ids=lambda path: path.stem)
def test_hostile_code_is_held_through_the_slicer_as_well(path: Path, guarded: Verifier, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "kept").write_text("kept", encoding="utf-8")
    text = path.read_text(encoding="utf-8").replace("VICTIM", str(victim))
    text = f"{text.rstrip()}\nlast = torch.ones(2)\nlast.add_(1)\n"
    finding = forced_at(text, len(text.splitlines()), "TCL501")
    page = load_pages()["TCL501"]
    verification = guarded.verify(slice_of(text, finding, page), page)
    assert verification.verdict is not Verdict.CONFIRMED
    assert [(item.name, item.read_text(encoding="utf-8")) for item in victim.iterdir()] == [("kept", "kept")]


def test_marks_stand_at_the_users_statements_wherever_those_have_moved() -> None:
    text = (
        "import torch\n\n\ndef f(x: torch.Tensor):\n    # why\n\n    y = x.detach()\n    y.add_(1)\n    return x + y\n"
    )
    (finding,) = findings(text, "TCL303")
    attempt = first(text, finding)
    lines = attempt.script.split("\n")
    for mark in attempt.marks:
        here, there = lines[mark.row - 1], text.split("\n")[mark.user_row - 1]
        assert here.strip() == there.strip()


def test_nothing_outside_the_list_is_imported() -> None:
    text = (
        "import subprocess\nimport torch\nfrom mine import helper\nimport torch.hub\n\n\n"
        "def f(x: torch.Tensor):\n    subprocess.run(['true'])\n    torch.os.getcwd()\n    y = helper(x)\n"
        "    x[torch.tensor([0])][0] = y  # <- TCL601, written\n    return x\n"
    )
    page = load_pages()["TCL601"]
    for group in slice_of(text, forced(text), page).groups:
        for attempt in group.attempts:
            assert not re.search(r"^\s*(import|from)\s+(subprocess|mine|torch\.hub)", attempt.script, re.MULTILINE)
            assert "torch.os" not in re.sub(r"Anything\('[^']*'\)", "", attempt.script)


def test_long_loops_are_cut_and_open_ones_end() -> None:
    text = (
        "import torch\n\n\ndef f(x: torch.Tensor):\n    for i in range(100000):\n        x.add_(1)\n"
        "    while True:\n        x.mul_(2)  # <- TCL503, written\n    return x\n"
    )
    script = first(text, forced(text)).script
    assert "few(range(100000))" in script
    assert "turns_1 > 4" in script


def test_what_is_assumed_and_stood_in_is_said() -> None:
    text = (
        "import torch\nfrom mine import compute_loss\n\n\ndef f(model: torch.nn.Module, x: torch.Tensor):\n"
        "    loss = compute_loss(model(x))\n    loss.backward()\n    x.data.add_(1)  # <- TCL103, written\n"
    )
    attempt = first(text, forced(text))
    assert any("`x` is a tensor" in line for line in attempt.assumed)
    assert any("`model`" in line for line in attempt.standins)
    assert any("mine.compute_loss" in line for line in attempt.standins)
    assert not attempt.guessed


def test_a_file_that_this_python_cannot_parse_is_unsupported() -> None:
    text = "import torch\nx = torch.ones(2)\nx.add_(1)  # <- TCL503\n"
    finding = forced(text)
    piece = slice_of("print 'old'\n" + text, finding, load_pages()["TCL503"])
    assert "cannot parse" in piece.unsupported


def test_hostile_programs_are_there() -> None:
    assert len(HOSTILE) >= 20
    assert len(TEMPTING) >= 30


def test_what_ends_the_run_is_left_out_the_next_time(verifier: Verifier) -> None:
    text = (
        "import torch\n\n\nclass Step:\n    def __init__(self, sizes):\n        self.sizes = sizes\n\n"
        "    def run(self, batch: torch.Tensor, options):\n"
        "        mixed = batch.view(7, 11, 13)\n        rows = torch.split(mixed, options.parts[0] / 'x')\n"
        "        if options.really == 'really':\n            first = rows[0]\n            again = first\n"
        "            first.add_(1)\n            return again, first\n"
    )
    (finding,) = findings(text, "TCL501")
    verification = verifier.verify(slice_of(text, finding, load_pages()["TCL501"]))
    kinds = {item.kind: item.text for item in verification.evidence}
    assert verification.verdict in (Verdict.CONFIRMED, Verdict.INCONCLUSIVE), verification.evidence
    assert "two-names-change" in kinds, verification.evidence


OPTIMIZER = """\
import torch
from torch.optim import Optimizer


class Momentum(Optimizer):
    def __init__(self, params, lr=0.1):
        super().__init__(params, dict(lr=lr))

    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                norm = torch.sum(p.grad ** 2)
                state = self.state[p]
                if len(state) == 0:
                    state["norm"] = norm
                average = state["norm"]
                average.mul_(0.9).add_(norm)
                p.data.sub_(p.grad / average)
"""
BASE = """\
import torch
from toolkit import Task


class Search(Task):
    def __init__(self, limit):
        super().__init__(limit=limit)

    def run(self, images: torch.Tensor):
        count, height, width = images.shape
        total = images.sum(0) * self.limit
        old = total
        total.mul_(count * height * width)
        return old, total, self.name
"""
SETTINGS = """\
import torch
from toolkit import settings

args = settings()
args.device = torch.device("cpu")
weights = torch.zeros(args.rows, device=args.device)
best = weights
weights += 0.5
print(best.sum() - weights.sum())
"""
TRAINER = """\
import torch


class Client:
    def __init__(self, trainer):
        self.trainer = trainer

    def run(self, data, rate):
        self.trainer.train(data, rate, True)
        state = self.trainer.weights()
        for key in state:
            value = state[key]
            old = value
            value.mul_(rate)
            print(old.sum() - value.sum())
"""


@pytest.mark.parametrize("text", [OPTIMIZER, BASE, SETTINGS, TRAINER], ids=["optimizer", "base", "settings", "trainer"])
def test_what_is_made_fits_what_is_done_with_it(text: str, verifier: Verifier) -> None:
    (finding,) = findings(text, "TCL501")
    verification = verifier.verify(slice_of(text, finding, load_pages()["TCL501"]))
    assert verification.verdict is Verdict.CONFIRMED, verification.evidence


def test_what_is_converted_in_vain_is_of_another_type(verifier: Verifier) -> None:
    text = "import torch\n\n\ndef shrink(weight: torch.Tensor, dtype=torch.float32):\n    weight.to(dtype)\n"
    text += "    return weight\n"
    (finding,) = findings(text, "TCL602")
    verification = verifier.verify(slice_of(text, finding, load_pages()["TCL602"]))
    assert verification.verdict is Verdict.CONFIRMED, verification.evidence


@pytest.mark.parametrize(
    ("call", "branch"),
    [
        ("batch.float()", True),
        ("batch.to(torch.float32)", True),
        ("batch.contiguous()", True),
        ("batch.reshape(-1)", True),
        ("batch.type(torch.float32)", True),
        ("torch.from_numpy(batch).float()", True),
        ("torch.as_tensor(batch, dtype=torch.float32)", True),
        ("torch.from_numpy(batch)", False),
    ],
)
def test_both_branches_of_a_conditional_copy_are_run(call: str, branch: bool, verifier: Verifier) -> None:
    kind = "np.ndarray" if "(batch" in call else "torch.Tensor"
    text = (
        f"import numpy as np\nimport torch\n\n\ndef center(batch: {kind}):\n    flat = {call}\n"
        "    flat -= flat.mean()\n    return flat, batch\n"
    )
    (finding,) = [f for f in analyse(text, filename="program.py").findings if f.code.startswith(("TCL4", "TCL5"))]
    verification = verifier.verify(slice_of(text, finding, load_pages()[finding.code]))
    assert verification.verdict is Verdict.CONFIRMED, verification.evidence
    told = [item.text for item in verification.evidence if item.kind == "branch"]
    if branch:
        assert told == [
            "it is observed where nothing has to be converted, and not with inputs of another type or order in memory"
        ]
    else:
        assert told in ([], ["it is observed as well with inputs of another type and another order in memory"])


@pytest.mark.parametrize(
    "conversion",
    [
        ".to(device)",
        ".to(device=device)",
        ".cuda()",
        ".to(torch.float64)",
    ],
)
def test_what_moves_on_another_device_only_moves_to_one_without_content(conversion: str, verifier: Verifier) -> None:
    text = (
        "import torch\nfrom torch import nn\n\n\nclass Net(nn.Module):\n    def __init__(self, device):\n"
        f"        super().__init__()\n        self.weight = nn.Parameter(torch.ones(3)){conversion}\n\n"
        "    def forward(self, x):\n        return x * self.weight\n"
    )
    (finding,) = [f for f in analyse(text, filename="program.py").findings if f.code == "TCL801"]
    verification = verifier.verify(slice_of(text, finding, load_pages()["TCL801"]))
    assert verification.verdict is Verdict.CONFIRMED, verification.evidence
    told = "the other device of line 8 is torch's `meta`"
    assert (told in [item.text for item in verification.evidence]) is ("float64" not in conversion)
    right = text.replace(f"nn.Parameter(torch.ones(3)){conversion}", f"nn.Parameter(torch.ones(3){conversion})")
    alike = slice_of(right, finding, load_pages()["TCL801"])
    assert verifier.verify(alike).verdict is not Verdict.CONFIRMED


def test_on_a_gpu_inputs_and_modules_are_made_there_and_calls_are_kept() -> None:
    text = (
        "import torch\n\n\ndef move(model: torch.nn.Module, x: torch.Tensor):\n    y = x.cuda()\n"
        "    model(y).sum().backward()\n    x.data.add_(1)  # <- TCL103, written\n    return y\n"
    )
    page = load_pages()["TCL103"]
    here, there = (
        next(iter(slice_of(text, forced(text), page, device=device).groups[0].attempts)) for device in ("cpu", "cuda")
    )
    assert ".cuda()" not in here.script
    assert "cuda" not in here.script
    assert "x.cuda()" in there.script
    assert "torch.set_default_device('cuda')" in there.script


def test_without_a_gpu_everything_that_is_to_run_there_is_unsupported() -> None:
    text = "import torch\n\n\ndef f(x: torch.Tensor):\n    x.data.add_(1)  # <- TCL103, written\n    return x\n"
    page = load_pages()["TCL103"]
    with Verifier(device="cuda") as verifier:
        verification = verifier.verify(slice_of(text, forced(text), page, device="cuda"), page)
    assert verification.verdict is Verdict.UNSUPPORTED
    assert verification.evidence[0].text == "needs a CUDA device"


def test_the_path_of_the_file_is_a_string(verifier: Verifier) -> None:
    text = (
        "import os\nimport torch\n\nHERE = os.path.dirname(__file__)\n\n\ndef shown(x: torch.Tensor) -> torch.Tensor:\n"
    )
    text += "    y = x\n    y += 1\n    print(HERE)\n    return x + y\n"
    (finding,) = [f for f in analyse(text, filename="a.py").findings if f.code == "TCL501"]
    page = load_pages()["TCL501"]
    assert verifier.verify(slice_of(text, finding, page), page).verdict is Verdict.CONFIRMED
    assert verifier.counted is not None
    assert not any("__file__" in one and "tensor" in one for one in verifier.counted.assumed)


def test_what_only_goes_wrong_in_blocks_is_not_refuted(verifier: Verifier) -> None:
    text = "import torch\n\n\ndef power(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:\n"
    text += "    torch.matmul(a, b, out=b)\n    return b\n"
    (finding,) = [f for f in analyse(text, filename="a.py").findings if f.code == "TCL208"]
    page = load_pages()["TCL208"]
    answer = verifier.verify(slice_of(text, finding, page), page)
    # Which sizes go wrong is the affair of the library and the processor. Where a small product, which is one block,
    # comes out right, a larger one must have been tried.
    assert verifier.counted is not None
    assert answer.verdict is Verdict.CONFIRMED or "64, 64" in str(verifier.counted.assumed)
    assert answer.verdict is not Verdict.REFUTED


def test_before_scripts_are_forked_that_use_a_gpu_nothing_asks_for_it_and_its_seed_stays() -> None:
    # torch 2.11 with a GPU: after one backward, no fork has autograd or the GPU; without a seed, no two runs are alike.
    program = (
        "import torch\nfrom torchcopylint.verify.child import running\n"
        "seeding, calls = torch.cuda.manual_seed_all, []\n"
        "for kind, name in ((torch.Tensor, 'backward'), (torch.optim.SGD, 'step'), (torch.cuda, 'init')):\n"
        "    setattr(kind, name, lambda *_, name=name, **__: calls.append(name))\n"
        "running.warm({device!r}, forks=True)\n"
        "print(torch.cuda.manual_seed_all is seeding, sorted(set(calls)))\n"
    )
    told = {
        device: subprocess.run(
            [sys.executable, "-c", program.format(device=device)], capture_output=True, text=True, check=True
        ).stdout
        for device in ("cpu", "cuda")
    }
    assert told == {"cpu": "False ['backward', 'step']\n", "cuda": "True []\n"}


def test_a_gpu_is_hidden_from_what_runs_on_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    assert [client._environment("/tmp", device)["CUDA_VISIBLE_DEVICES"] for device in ("cpu", "cuda")] == ["", "3"]
