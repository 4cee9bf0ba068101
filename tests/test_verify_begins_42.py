"""A shallow copy requires grad and has no graph, where what it is of has one: also where nothing runs backward."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from forced import forced
from test_verify_programs import verified

from torchcopylint.base.verification import Verdict
from torchcopylint.verify.run import Verifier

ACTIVATIONS = """\
import copy

from torch import nn


class Net(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.layer = nn.Linear(size, size)

    def total(self, x):
        kept = []
        out = self.layer(x){begin}
        kept.append({copied})  # <- {told}
        return sum(kept)
"""


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(timeout=20.0) as started:
        yield started


def verdict(verifier: Verifier, copied: str, begin: str = "", told: str = "TCL310, shared") -> Verdict:
    text = ACTIVATIONS.format(copied=copied, begin=begin, told=told)
    return verified(text, replace(forced(text), variant="unreached" if "TCL307" in told else "graph"), verifier).verdict


def test_a_shallow_copy_is_where_another_graph_begins(verifier: Verifier) -> None:
    assert verdict(verifier, "copy.copy(out)") is Verdict.CONFIRMED


@pytest.mark.parametrize(("copied", "begin"), [("out.clone()", ""), ("copy.copy(out)", ".detach()")])
def test_what_keeps_its_graph_or_has_none_is_not_cut(verifier: Verifier, copied: str, begin: str) -> None:
    assert verdict(verifier, copied, begin) is not Verdict.CONFIRMED


def test_what_is_cut_and_made_to_require_grad_begins_a_graph_on_purpose(verifier: Verifier) -> None:
    assert verdict(verifier, "out.detach().requires_grad_()", told="TCL307, cut") is not Verdict.CONFIRMED
