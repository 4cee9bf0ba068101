"""Verification on a GPU: `python -m pytest tests/on_cuda.py`.

Not collected with the others: CI has no GPU, and there a test that is skipped is a failure.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from forced import forced
from test_verify_pages import BAD, GOOD, MEANT, confirmed_by_force
from test_verify_slicing import EITHER_WAY, PAGES, TEMPTING, WITHOUT_EFFECT, embedded, findings

from torchcopylint.base.verification import Verdict
from torchcopylint.pages import Example, Page, load_pages
from torchcopylint.verify.model import Slice
from torchcopylint.verify.run import Verifier
from torchcopylint.verify.slicing.slicer import slice_of

MOVED = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4)).to("cuda")
        self.layer = nn.Linear(4, 2)

    def forward(self, x: torch.Tensor):
        return self.layer(x * self.scale)


def scores(batch: torch.Tensor, model: nn.Module):
    batch.cuda()
    return model(batch)


def largest(values: torch.Tensor):
    host = values.to("cpu", non_blocking=True)
    return host.numpy().max()
"""
"""What does harm on another device alone."""


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(timeout=30.0, device="cuda") as started:
        yield started


def needs_processes(page: Page) -> bool:
    return page.keys.get("needs", "") == "processes"


def takes_the_gpu(code: str) -> bool:
    """Whether a program takes a GPU if there is one: with it, `cpu()` copies, and nothing is shared."""
    return "cuda.is_available()" in code


@pytest.mark.parametrize(("page", "piece"), BAD)
def test_a_bad_example_is_confirmed(page: Page, piece: Slice, verifier: Verifier) -> None:
    verification = verifier.verify(piece, page)
    told = [item.text for item in verification.evidence]
    if takes_the_gpu(next(iter(piece.groups[0].attempts)).script):
        assert verification.verdict is not Verdict.CONFIRMED, told
    else:
        expected = Verdict.UNSUPPORTED if needs_processes(page) else Verdict.CONFIRMED
        assert verification.verdict is expected, told
    assert verification.device == "cuda" or needs_processes(page)


@pytest.mark.parametrize(("page", "example"), GOOD)
def test_a_good_example_is_not_confirmed(
    page: Page, example: Example, verifier: Verifier, request: pytest.FixtureRequest
) -> None:
    confirmed = confirmed_by_force(page, example, verifier)
    assert bool(confirmed) == (request.node.callspec.id in MEANT), confirmed


@pytest.mark.parametrize("where", ["function", "class"])
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_bad_examples_are_confirmed_through_the_slicer(page: Page, where: str, verifier: Verifier) -> None:
    for number, example in enumerate(example for example in page.examples if example.kind == "bad"):
        text = embedded(example.code, where)
        for finding in findings(text, page.code):
            verification = verifier.verify(slice_of(text, finding, page, device="cuda"), page)
            told = text.split("\n")[finding.span.start.row - 1]
            listed = {(code, start) for code, start in (*EITHER_WAY, *WITHOUT_EFFECT) if start in told}
            if needs_processes(page) or page.get("confirm", finding.variant).startswith(("equivalent", "none")):
                assert verification.verdict is Verdict.UNSUPPORTED
            elif takes_the_gpu(text):
                assert verification.verdict is not Verdict.CONFIRMED
            elif page.code not in {code for code, _ in listed}:
                reached = verification.verdict
                assert reached is Verdict.CONFIRMED, f"example {number}: {reached}: {verification.evidence}"


@pytest.mark.parametrize("path", TEMPTING, ids=lambda path: path.stem)
def test_tempting_code_is_not_confirmed(path: Path, verifier: Verifier) -> None:
    text = path.read_text(encoding="utf-8")
    finding = forced(text)
    page = load_pages()[finding.code]
    verification = verifier.verify(slice_of(text, finding, page, device="cuda"), page)
    assert verification.verdict is not Verdict.CONFIRMED, verification.evidence


def test_what_does_harm_on_another_device_alone_is_confirmed_by_the_command(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(MOVED, encoding="utf-8")
    command = [sys.executable, "-m", "torchcopylint", "verify", "--device", "cuda", "--no-cache", "--isolated"]
    command += ["--output-format", "json", "--repro-dir", str(tmp_path / "repro"), str(tmp_path / "program.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    told = json.loads(done.stdout)
    reached = {finding["code"]: finding["verification"]["verdict"] for finding in told}
    assert {"TCL406", "TCL602"} <= reached.keys(), done.stdout + done.stderr
    assert set(reached.values()) == {"confirmed"}, done.stdout
    for script in (tmp_path / "repro").glob("*.py"):
        shown = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
        assert shown.returncode == 0, (script.name, shown.stderr)
