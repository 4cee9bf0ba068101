"""What is seen and says nothing of harm: inputs of a dtype that the code has asked for and that they are not of, with a
twin of which the opposite holds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from test_verify_programs import the, verified

from torchcopylint.base.verification import Verdict
from torchcopylint.verify.run import Verifier

ARMS = """\
import torch
from elsewhere import measured


def rounded(largest: torch.Tensor, steps: int):
    if largest.dtype {equal} torch.float32:
        found = largest.clone()
    else:
        found = largest.to(torch.float32)
    bits = found.view(torch.int32)
    bits.add_(steps)
    measured(bits)[3].unknown += "text"
    return bits.view(torch.float32).max()
"""


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(timeout=20) as one:
        yield one


@pytest.mark.parametrize(("equal", "is_confirmed"), [("==", False), ("!=", True)])
def test_the_arm_for_other_dtypes(equal: str, is_confirmed: bool, verifier: Verifier) -> None:
    # What is converted is a copy where it is of another dtype; inputs that are of that one are converted nowhere.
    text = ARMS.format(equal=equal)
    assert (verified(text, the(text, "TCL502"), verifier).verdict is Verdict.CONFIRMED) == is_confirmed
