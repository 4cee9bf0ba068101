"""What a file says that it means is not confirmed, however surely it happens."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from test_verify_programs import verified

from torchcopylint import Finding, check_source
from torchcopylint.base.verification import Verdict
from torchcopylint.verify.run import Verifier

STACK = """\
from torch import nn


class Stack(nn.Module):
    def __init__(self, size: int):
        super().__init__()
        layer = nn.Linear(size, size)
        {above}
        self.layers = nn.ModuleList([layer for _ in range(3)]){behind}
"""
COPIED = """\
import torch


def test_copies():
    a = torch.tensor([0.0, 1.0, 2.0])
    c = a[[0, 2]]
    c[1] = 10.0
    {after}
"""
MEANT = "a comment says that it is shared"
UNCHANGED = "an assertion after it speaks of what the copy was made of: whoever wrote that knows that it is a copy"


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(timeout=20.0) as started:
        yield started


def _found(text: str, code: str) -> Finding:
    return next(found for found in check_source(text, filename="program.py") if found.code == code)


@pytest.mark.parametrize(
    ("above", "behind", "means"),
    [
        ("pass", "", False),
        ("pass", "  # parameter-sharing", True),
        ("# all layers share their weights", "", True),
        ("pass", "  # the layers must not share weights", False),
        ("pass", "  # a stack of layers", False),
    ],
)
def test_a_comment_that_says_that_layers_are_shared(verifier: Verifier, above: str, behind: str, means: bool) -> None:
    text = STACK.format(above=above, behind=behind)
    answer = verified(text, _found(text, "TCL706"), verifier)
    assert answer.verdict is (Verdict.INCONCLUSIVE if means else Verdict.CONFIRMED), answer.evidence
    assert (MEANT in {item.text for item in answer.evidence}) is means


@pytest.mark.parametrize(
    ("after", "means"),
    [
        ("assert a.tolist() == [0.0, 1.0, 2.0]", True),
        ("torch.testing.assert_close(a, torch.tensor([0.0, 1.0, 2.0]))", True),
        ("assert a.shape == (3,)", False),
        ("assert len(a) == 3", False),
        ("print(a)", False),
    ],
)
def test_an_assertion_about_what_was_copied(verifier: Verifier, after: str, means: bool) -> None:
    text = COPIED.format(after=after)
    answer = verified(text, _found(text, "TCL601"), verifier)
    assert answer.verdict is (Verdict.INCONCLUSIVE if means else Verdict.CONFIRMED), answer.evidence
    assert (UNCHANGED in {item.text for item in answer.evidence}) is means


def test_what_is_shown_is_not_run(verifier: Verifier) -> None:
    text = "import torch\n\nt = torch.ones(2)\nn = t.numpy()\nt.add_(1)\nprint(t, n)\n"
    assert verified(text, _found(text, "TCL402"), verifier).verdict is Verdict.UNSUPPORTED
