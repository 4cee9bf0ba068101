"""What happens and does no harm, or happens only as somebody hands over what nobody has to, each with a twin of which
the opposite holds."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from test_verify_programs import the, verified

from torchcopylint.base.verification import Verdict
from torchcopylint.verify.child import compiled
from torchcopylint.verify.run import Verifier
from torchcopylint.verify.slicing.cutting import without_jumps
from torchcopylint.verify.slicing.dtypes import index_types_asked
from torchcopylint.verify.slicing.helpers import HELPERS

DROPPED = """\
import torch


def scaled(given: torch.Tensor):
    x = given.sigmoid()
    kept = x{copied}
    x.clone()
    x.mul_(3)
    return kept, x
"""

TWICE = """\
import torch
from elsewhere import Policy, Value


class Agent:
    def __init__(self, shared: bool):
        self.shared = shared
        self.policy = Policy(4)
        self.value = Value(4)

    def update(self, state: torch.Tensor):
        acted = torch.exp(self.policy(state))
        if self.shared:
            valued = {shared}
        else:
            valued = {own}
        loss = acted.pow(2).mean()
        value_loss = valued.pow(2).mean()
        if self.shared:
            loss = loss + value_loss
        loss.backward()
        if not self.shared:
            value_loss.backward()
"""

REPLACED = """\
import torch
from torch import nn


def replaced(conv: nn.Conv2d):
    new = nn.Conv2d(conv.in_channels, conv.out_channels, 3)
    new.weight.copy_(torch.zeros(1))
    return new


{training}
"""

SURROGATE = """\
import copy

import torch
from torch import nn


class Target:
    def __init__(self, net: nn.Module):
        self.net = net
        self.target = copy.deepcopy(net)
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def follow(self):
        for ours, kept in zip(self.net.parameters(), self.target.parameters()):
            kept.data = ours.data

    def loss(self, x):
        {before}
        return (self.net(x) - self.target(x)).pow(2).mean()
"""

LESSON = """\
import numpy as np
import torch
from elsewhere import measured


def test_sharing():
    n = np.ones(3)
    t = torch.from_numpy(n)
    np.add(n, 1, out=n)
    {shown}
    print(t.sum())
    assert measured(t) == 40
"""

PICKED = """\
import torch


def write(tensor: torch.Tensor, index, values: torch.Tensor):
    if all({asked} for axis in index):
        tensor[index].copy_(values)
    return tensor
"""


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(timeout=20) as one:
        yield one


def _is_confirmed(text: str, code: str, verifier: Verifier) -> bool:
    return verified(text, the(text, code), verifier).verdict is Verdict.CONFIRMED


@pytest.mark.parametrize(("copied", "is_confirmed"), [(".clone()", False), ("[:]", True)])
def test_a_copy_that_is_dropped(copied: str, is_confirmed: bool, verifier: Verifier) -> None:
    # Had the copy been kept, nothing would be different, unless what is written then is held by somebody else as well.
    assert _is_confirmed(DROPPED.format(copied=copied), "TCL602", verifier) == is_confirmed


@pytest.mark.parametrize(("own", "is_confirmed"), [("torch.exp(self.value(state))", False), ("acted * 2", True)])
def test_a_graph_that_two_losses_share(own: str, is_confirmed: bool, verifier: Verifier) -> None:
    # That a batch has a graph of its own, which both losses run over, is nobody's.
    assert _is_confirmed(TWICE.format(shared="acted * 3", own=own), "TCL312", verifier) == is_confirmed


@pytest.mark.parametrize(("training", "is_confirmed"), [("LARGEST = 3", False), ("replaced(nn.Conv2d(4, 4, 3))", True)])
def test_a_write_that_is_refused_unless_nothing_is_recorded(
    training: str, is_confirmed: bool, verifier: Verifier
) -> None:
    # Nothing here trains: who replaces layers may have switched recording off.
    assert _is_confirmed(REPLACED.format(training=training), "TCL201", verifier) == is_confirmed


@pytest.mark.parametrize(("before", "is_confirmed"), [("self.follow()", False), ("pass", True)])
def test_what_is_shared_anew_before_each_use(before: str, is_confirmed: bool, verifier: Verifier) -> None:
    assert _is_confirmed(SURROGATE.format(before=before), "TCL102", verifier) == is_confirmed


@pytest.mark.parametrize(("shown", "is_confirmed"), [("assert (t == 2).all()", False), ("assert (t > 0).all()", True)])
def test_an_assertion_that_holds_before_another_fails(shown: str, is_confirmed: bool, verifier: Verifier) -> None:
    # What stands in is no 40, and that says nothing of what is asserted before.
    assert _is_confirmed(LESSON.format(shown=shown), "TCL401", verifier) == is_confirmed


def test_what_each_turn_makes_is_another_one() -> None:
    names: dict[str, Any] = {"np": np, "torch": torch}
    exec(HELPERS["renewed"], names)
    renewed = names["renewed"]
    array, leaf = np.zeros(2), torch.zeros(2, requires_grad=True)
    assert not np.shares_memory(renewed(array), array)
    assert renewed(leaf).is_leaf
    assert renewed(leaf).requires_grad
    assert not renewed(leaf * 1.0).is_leaf
    assert not renewed(leaf.detach()).requires_grad


def test_what_stands_in_a_loop_no_more_does_not_leave_it() -> None:
    (loop,) = ast.parse("for x in y:\n    if x:\n        break\n    for z in x:\n        continue").body
    assert isinstance(loop, ast.For)
    assert [ast.unparse(without_jumps(part)) for part in loop.body] == [
        "if x:\n    pass",
        "for z in x:\n    continue",
    ]


def _codes(script: str, kind: str = "", row: int = 0) -> list[Any]:
    head, numbered = compiled.parsed(script, 2)
    marks = [{"row": row, "end_row": row, "column": 0, "end_column": 0}] if kind else []
    return compiled.code_of(head, numbered, script, kind, marks, {})


def test_what_two_scripts_have_in_common_is_compiled_once() -> None:
    before = _codes("import torch\ntorch.zeros(1)\nx = 1\ny = x + 1\n")
    after = _codes("import torch\ntorch.zeros(1)\nx = 2\ny = x + 1\n")
    assert [one is two for one, two in zip(before, after, strict=True)] == [True, False, True]
    # What was altered is nobody else's, and another row is another code.
    assert _codes("import torch\ntorch.zeros(1)\nx = 1\ny = x + 1\n", "copies", 4)[2] is not before[2]
    assert _codes("import torch\ntorch.zeros(1)\nx = 1\n\ny = x + 1\n")[2] is not before[2]


@pytest.mark.parametrize(
    ("asked", "asks"), [("isinstance(axis, slice)", {5}), ("axis > 0", set()), ("isinstance(index, slice)", {5})]
)
def test_of_which_class_an_index_is(asked: str, asks: set[int]) -> None:
    scope = ast.parse(PICKED.format(asked=asked)).body[-1]
    assert index_types_asked([scope], [6]) == asks
    assert index_types_asked([scope], [7]) == set()
