"""What ends for want of a name, or for something of the wrong kind, is not learnt of again and again."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from forced import forced
from test_verify_programs import verified

from torchcopylint.base.verification import Verdict
from torchcopylint.verify.run import Verifier

TEXT = """\
import torch


def show(x, out: torch.Tensor):
    y = x + 1
    {step}  # <- TCL602, discarded
    return y, out
"""


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(timeout=20.0) as started:
        yield started


def _runs(verifier: Verifier, step: str) -> tuple[Verdict, int]:
    text, before = TEXT.format(step=step), verifier.runs
    return verified(text, forced(text), verifier).verdict, verifier.runs - before


def test_a_step_that_asks_for_what_nothing_has_is_given_up(verifier: Verifier) -> None:
    verdict, runs = _runs(verifier, "out.sigmoid() if out.no_such_thing else out.exp()")
    assert verdict is Verdict.INCONCLUSIVE
    assert runs <= 12  # 16 with every kind of inputs that there is


def test_a_step_that_asks_for_other_shapes_is_not(verifier: Verifier) -> None:
    verdict, runs = _runs(verifier, "(torch.ones(3, 4, 5) @ out.reshape(1, 5, 7)).exp()")
    assert verdict is Verdict.INCONCLUSIVE
    assert runs > 12
