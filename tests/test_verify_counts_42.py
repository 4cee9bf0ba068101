"""What a count that is computed of a number asks of that number: of one thing alone nothing is shared."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from forced import forced
from test_verify_programs import verified

from torchcopylint.base.verification import Verdict
from torchcopylint.verify.run import Verifier

BRANCH = """\
from torch import nn


class Block(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.layer = nn.Linear(size, size)


class Branch(nn.Module):
    def __init__(self, size: int, skips: int = {default}):
        super().__init__()
        self.blocks = nn.ModuleList({blocks})  # <- TCL706, shared
"""


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(timeout=20.0) as started:
        yield started


@pytest.mark.parametrize(
    ("count", "default", "becomes"), [("(skips + 1)", 0, 1), ("(skips - 1)", 2, 3), ("(skips // 2)", 2, 4)]
)
def test_a_list_is_repeated_so_often_that_it_holds_two(
    verifier: Verifier, count: str, default: int, becomes: int
) -> None:
    text = BRANCH.format(default=default, blocks=f"[Block(size)] * {count}")
    answer = verified(text, forced(text), verifier)
    assert answer.verdict is Verdict.CONFIRMED, answer.evidence
    assert f"`skips` is {becomes}, which leads to the steps" in {item.text for item in answer.evidence}


def test_a_layer_for_each_turn_is_shared_by_none(verifier: Verifier) -> None:
    text = BRANCH.format(default=0, blocks="[Block(size) for _ in range(skips + 1)]")
    answer = verified(text, forced(text), verifier)
    assert answer.verdict is Verdict.REFUTED, answer.evidence
