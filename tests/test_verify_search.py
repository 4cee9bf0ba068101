"""How a verdict is found where the first run does not settle it: other conditions, less code, nothing guessed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

import pytest
from forced import forced
from test_verify_programs import the, verified

from torchcopylint.base.verification import Verdict
from torchcopylint.verify.observed import Raised, Run
from torchcopylint.verify.predicates.outcomes import difference
from torchcopylint.verify.run import Verifier
from torchcopylint.verify.slicing.conditions import Wanted, wanted_for
from torchcopylint.verify.slicing.searching import Search
from torchcopylint.verify.slicing.sizes import Setting
from torchcopylint.verify.slicing.source import parse
from torchcopylint.verify.slicing.standins import helpers
from torchcopylint.verify.slicing.things import Thing
from torchcopylint.verify.slicing.tries import Heard

FLAGS = """\
from torch import nn


class Stack(nn.Module):
    def __init__(self, size, deep=False, kind="plain", layers=1):
        super().__init__()
        if layers < 1:
            raise ValueError(layers)
        if deep:
            if kind == "wide":
                self.layers = nn.ModuleList([nn.Linear(size, size)] * layers)
"""
OPTIONS = """\
import argparse
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--keep", action="store_true")
parser.add_argument("--times", type=int, default=0)
args = parser.parse_args()
values = torch.zeros(4)
for turn in range(args.times):
    if args.keep:
        kept = values  # <- shared
        values.add_(1)  # <- TCL501, written
        print(kept)  # <- read
"""
FAILS_BEFORE = """\
import torch
from torch import nn


def train(model, batches, optimizer, total=0.0):
    for x, y in batches:
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.data[0]
    return total


def fit(model: nn.Module, batches, optimizer):
    best = model.state_dict()
    for epoch in range(2):
        total = train(model, batches, optimizer)
    model.load_state_dict(best)
"""
HIDDEN_IMPORT = """\
import torch
import data


def evaluate(batches):
    total = 0
    for data, target in batches:
        data.unsqueeze(-1)
        total += data.sum() + target.sum()
    return total
"""
CRITERION = """\
import torch
from losses import Weighted


def train(model, batches, optimizer):
    criterion = Weighted()
    for x, y in batches:
        count = x.size(0)
        loss = criterion(model(x), y) / count
        loss.backward()
        optimizer.step()
        print(loss.data[0])
"""
GENERATOR = """\
import torch
from torch import nn
from missing import Optimizer, wrap


def fit(model: nn.Module, decay):
    named = model.named_parameters()
    groups = [
        {"params": [p for n, p in named if "bias" not in n], "weight_decay": decay},
        {"params": [p for n, p in named if "bias" in n], "weight_decay": 0.0},
    ]
    optimizer = Optimizer(groups)
    model = torch.nn.parallel.DistributedDataParallel(model)
    return wrap(model), optimizer
"""
GRADIENTS = """\
import torch
from torch import nn
from missing import loss_of


class Trainer:
    def __init__(self, model: nn.Module, optimizer, batches):
        self.model, self.optimizer, self.batches = model, optimizer, batches

    def run(self):
        best = self.model.state_dict()
        for x, y in self.batches:
            loss = loss_of(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        self.model.load_state_dict(best)
"""
EXCEPTION = """\
import torch
from errors import SparseError


def double(x: torch.Tensor):
    if x.is_sparse:
        raise SparseError(str(x))
    mask = x > 0
    x[mask].mul_(2)
    return x
"""
LAYER = """\
import torch
from missing import ResNet


class Net(ResNet):
    def forward(self, x):
        y = self.conv1(x)
        kept = y  # <- shared
        y.add_(1)  # <- TCL501, written
        return kept + self.conv1(x)  # <- read
"""


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(timeout=20.0) as started:
        yield started


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (FLAGS, "TCL706"),
        (OPTIONS, ""),
        (FAILS_BEFORE, "TCL701"),
        (HIDDEN_IMPORT, "TCL602"),
        (GENERATOR, "TCL608"),
        (GRADIENTS, "TCL701"),
        (EXCEPTION, "TCL601"),
    ],
    ids=["flags", "options", "fails", "import", "generator", "gradients", "exception"],
)
def test_the_search_finds_what_confirms(text: str, code: str, verifier: Verifier) -> None:
    answer = verified(text, the(text, code) if code else forced(text), verifier)
    assert answer.verdict is Verdict.CONFIRMED, answer.evidence


def test_a_loss_of_which_a_backward_pass_is_asked_has_no_dimension(verifier: Verifier) -> None:
    text = CRITERION.replace("print(loss.data[0])", "print(loss.data[0])  # <- TCL106, here")
    answer = verified(text, forced(text), verifier)
    assert answer.verdict is Verdict.CONFIRMED, answer.evidence
    without = text.replace("        loss.backward()\n", "").replace("/ count", "* x")
    assert verified(without, forced(without), verifier).verdict is not Verdict.CONFIRMED


def test_what_leads_to_the_steps_is_said_and_the_right_twin_is_not_confirmed(verifier: Verifier) -> None:
    answer = verified(FLAGS, the(FLAGS, "TCL706"), verifier)
    told = {item.text for item in answer.evidence if item.kind == "assumed"}
    assert {f"`{name}` is {value}, which leads to the steps" for name, value in LEADING.items()} <= told
    line = "self.layers = nn.ModuleList([nn.Linear(size, size)] * layers)"
    right = FLAGS.replace(line, "self.layers = nn.ModuleList([nn.Linear(size, size) for _ in range(layers)])")
    right = right.replace("range(layers)])", "range(layers)])  # <- TCL706, shared")
    assert verified(right, forced(right), verifier).verdict is not Verdict.CONFIRMED


LEADING = {"deep": "True", "kind": "'wide'", "layers": "2"}


def test_a_layer_that_only_has_the_name_of_one_is_a_guess(verifier: Verifier) -> None:
    answer = verified(LAYER, forced(LAYER), verifier)
    assert answer.verdict is Verdict.INCONCLUSIVE
    assert "guessed" in [item.kind for item in answer.evidence]
    assert "`self.conv1`: a layer, which its name alone suggests" in [item.text for item in answer.evidence]
    known = LAYER.replace("from missing import ResNet", "from torch import nn").replace("(ResNet)", "(nn.Module)")
    init = (
        "    def __init__(self):\n        super().__init__()\n        self.conv1 = nn.Linear(4, 4)\n\n    def forward"
    )
    known = known.replace("    def forward", init)
    assert verified(known, forced(known), verifier).verdict is Verdict.CONFIRMED


def test_a_step_that_fails_is_not_left_out(verifier: Verifier) -> None:
    text = "import torch\n\nx = torch.ones(2)\ny = x.missing()  # <- shared\nx.add_(1)  # <- TCL501, written\nprint(y)"
    answer = verified(text, forced(text), verifier)
    assert answer.verdict not in (Verdict.CONFIRMED, Verdict.REFUTED), answer.evidence


def test_one_exception_instead_of_another_is_no_difference() -> None:
    assert difference(Run(ended="IndexError"), Run(ended="TypeError"), gradients=True) == ""
    assert difference(Run(ended="IndexError"), Run(), gradients=True)


def test_conditions_ask_only_what_leads_there() -> None:
    text = (
        "def f(a, b=1, c=None, d=0, e='x', g=True):\n"
        "    if c is None:\n        return\n"
        "    if b < 1 or d > 3:\n        raise ValueError\n"
        "    if not g:\n        if e in ('y', 'z'):\n            for i in range(d):\n                print(a)\n"
    )
    wanted = wanted_for(ast.parse(text), {9})
    function = ast.parse(text).body[0]
    assert isinstance(function, ast.FunctionDef)
    defaults = dict(zip("bcdeg", function.args.defaults, strict=True))
    changed = {name: wanted.instead_of(name, default) for name, default in defaults.items()}
    assert {name: value for name, value in changed.items() if not isinstance(value, ast.expr)} == {
        "d": 2,
        "e": "y",
        "g": False,
    }
    assert wanted.made == {"c"}


@pytest.mark.parametrize(("kind", "times"), [("AttributeError", 1), ("TypeError", 2), ("RuntimeError", 3)])
def test_what_ends_in_the_same_way_is_not_tried_with_all_inputs(kind: str, times: int) -> None:
    heard = Heard()
    for turn in range(times):
        assert not heard.spent
        error = Raised((kind,), f"size {turn} does not fit {turn + 1.5}", 3, frozenset(), 1, in_backward=False)
        heard.add("a call", Run(ended=kind, raised=(error,), passes=((),)), 1)
    assert heard.spent == {"a call"}


@pytest.mark.parametrize(
    ("layers", "verdict"),
    [("[nn.Linear(2, 2)] * size", Verdict.INCONCLUSIVE), ("[nn.Linear(2, 2), nn.Linear(2, 2)]", Verdict.REFUTED)],
    ids=["one", "two"],
)
def test_of_a_container_of_one_nothing_is_said(layers: str, verdict: Verdict, verifier: Verifier) -> None:
    text = f"from torch import nn\n\nsize = len('a')\nlayers = nn.ModuleList({layers})  # <- TCL706, shared\n"
    answer = verified(text, forced(text), verifier)
    assert answer.verdict is verdict, answer.evidence


def test_names_and_texts_of_the_user_are_not_taken_for_places_of_a_helper() -> None:
    options = Wanted(values={"BATCH_SIZE": 2, "mode": "LEAST"}, least={"SIZE": 3})
    text = helpers({"ArgumentParser"}, Setting(4, 2, 0), options)
    constants = {node.value for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Constant)}
    assert {"BATCH_SIZE", "LEAST", "SIZE"} <= constants


MAKES = """\
import torch
from nets import Loss, Net


def train(batches):
    total = 0.0
    for x, y in batches:
        loss = criterion(Net(x), y)
        loss.backward()
        total += loss.data[0]  # <- TCL106, here
    return total


if __name__ == "__main__":
    criterion = Loss()
"""
PARTS = """\
import torch


def gated(gates: torch.Tensor):
    enter, leave, new = gates.chunk(3, 1)  # <- shared
    leave += 1  # <- TCL205, written
    return enter * new + leave
"""


def searched(text: str) -> Search:
    finding = forced(text)
    return Search(parse(text), finding, ("raises",), "cpu", "cpu", conditional=False)


def test_what_functions_do_with_a_name_says_more_than_what_binds_it() -> None:
    search = searched(MAKES)
    search.world.locals[0] = {"criterion": Thing("criterion")}
    plan = next(plan for plan in search.plans.plans() if plan.label == "a call")
    # The main program is left out: it could not be run.
    attempt = search.written(
        replace(plan, kept=tuple(n for n in plan.kept if not isinstance(n, ast.If))), Setting(4, 2, 0)
    )
    assert attempt is not None
    assert "criterion = lambda *given, **named: (blend(*given)).mean()" in attempt.script


def test_what_is_left_of_a_file_gets_the_inputs_that_are_asked_for_and_a_graph() -> None:
    search = searched(PARTS)
    given = search._skipping(4, 0, set())
    first = next(given)
    step = first.marks[0].row
    unpacked = Raised(
        kinds=("ValueError",),
        message="not enough values to unpack (expected 3, got 2)",
        row=step,
        marks=frozenset({0}),
        time=0,
        in_backward=False,
        rows=(step,),
    )
    search._hear(Run(raised=(unpacked,), ended="ValueError", passes=((0,), ())))
    second = next(given)
    assert "torch.randn(12, 12)" in second.script
    refused = replace(unpacked, kinds=("RuntimeError",), message="A view was created in no_grad mode")
    search._hear(Run(raised=(refused,), ended="RuntimeError", passes=((0,), (1,))))
    third = next(given)
    assert "torch.randn(12, 12, requires_grad=True)" in third.script
    search._hear(Run(raised=(refused,), ended="RuntimeError", passes=((0,), (1,))))
    assert next(given, None) is None
