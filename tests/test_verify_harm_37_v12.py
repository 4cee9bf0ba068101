"""What is seen and says nothing of harm: memory that is shared to be shown, and inputs of a dtype that the code has
asked for and that they are not of. Each with a twin of which the opposite holds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from test_verify_programs import the, verified

from torchcopylint.base.verification import Verdict
from torchcopylint.verify.run import Verifier

BEFORE = """\
import torch

values = torch.ones(3)
shared = values.numpy()
{before}
values.add_(1)
print(f"and now {{shared}}")
{after}
"""
BOTH = """\
import numpy as np
import torch

made = np.ones(3)
shared = torch.from_numpy(made)
made += 1
{first}
print("tensor:", shared)
if torch.cuda.is_available():
    made = np.zeros(2)
    print(made.sum())
"""
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


def _verdict(text: str, code: str, verifier: Verifier) -> tuple[Verdict, set[str]]:
    answer = verified(text, the(text, code), verifier)
    return answer.verdict, {item.kind for item in answer.evidence}


@pytest.mark.parametrize(
    ("before", "after", "is_lesson"),
    [
        ("print(shared)", "", True),
        ("print(shared)", "values = torch.zeros(3)\nprint(values.sum() + 1)", True),
        # Nobody has shown what it was before.
        ("print('so far')", "", False),
        # Somebody goes on with it.
        ("print(shared)", "total = shared.sum()\nprint(total)", False),
        ("print(shared)", "if len(shared) > 2:\n    print(shared.sum())", False),
        # What was printed is bound again since.
        ("print(shared)\nshared = values.numpy()", "", False),
    ],
)
def test_what_is_only_shown_around_a_write(before: str, after: str, is_lesson: bool, verifier: Verifier) -> None:
    verdict, kinds = _verdict(BEFORE.format(before=before, after=after), "TCL402", verifier)
    assert (verdict is Verdict.INCONCLUSIVE and "lesson" in kinds) == is_lesson
    assert (verdict is Verdict.CONFIRMED) != is_lesson


@pytest.mark.parametrize(("first", "is_lesson"), [("print(made)", True), ("print('now:')", False)])
def test_both_sides_are_shown_after_the_write(first: str, is_lesson: bool, verifier: Verifier) -> None:
    verdict, kinds = _verdict(BOTH.format(first=first), "TCL401", verifier)
    assert (verdict is Verdict.INCONCLUSIVE and "lesson" in kinds) == is_lesson
    assert (verdict is Verdict.CONFIRMED) != is_lesson


@pytest.mark.parametrize(("equal", "is_confirmed"), [("==", False), ("!=", True)])
def test_the_arm_for_other_dtypes(equal: str, is_confirmed: bool, verifier: Verifier) -> None:
    # What is converted is a copy where it is of another dtype; inputs that are of that one are converted nowhere.
    verdict, _ = _verdict(ARMS.format(equal=equal), "TCL502", verifier)
    assert (verdict is Verdict.CONFIRMED) == is_confirmed
