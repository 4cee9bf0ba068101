"""Scripts that are only tried share a process, and loops end early: what that saves must change no verdict."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.test_verify_hostile import SCRIPTS, children, none_left, settled, tree
from torchcopylint.base.finding import Role
from torchcopylint.base.verification import Verdict
from torchcopylint.pages import load_pages
from torchcopylint.verify.child.attention import STATEMENTS_RUN, TURNS_RUN, Attention
from torchcopylint.verify.child.traces import leaves_traces
from torchcopylint.verify.examples import mark_at, slice_with
from torchcopylint.verify.judge import SCOUT, Rule, judge_group, rule_of
from torchcopylint.verify.model import Attempt, Group, Slice
from torchcopylint.verify.observed import Run
from torchcopylint.verify.run import Verifier

HERE = (mark_at(Role.HERE, 1),)


class Open(Verifier):
    """One whose runs can be asked for."""

    def scouted(self, script: str) -> Run:
        return self._run(Attempt(script, HERE, 0), SCOUT, ())

    def altered(self, script: str) -> Run:
        return self._run(Attempt(script, (mark_at(Role.HERE, 2),), 0), "skipped", (0,))

    def alone(self, script: str, *, whole: bool = False) -> Run:
        return self._run(Attempt(script, HERE, 0, whole=whole), "", ())


@pytest.fixture(scope="module")
def verifier() -> Iterator[Open]:
    with Open(timeout=20.0, memory=1 << 28) as started:
        yield started


@pytest.fixture(scope="module")
def hurried() -> Iterator[Open]:
    """For scripts that do not end by themselves."""
    with Open(timeout=3.0, memory=1 << 28) as started:
        yield started


def test_scouts_share_a_process_and_what_is_judged_has_another(verifier: Open) -> None:
    verifier.alone("import torch\n")
    assert verifier.scouted("import torch\ntorch.mark_of_a_script = 1\n").ended == ""
    assert verifier.scouted("import torch\nprint(torch.mark_of_a_script)\n").printed == "1\n"
    shared = settled(verifier.process_id, 1)
    assert verifier.alone("import torch\nprint(torch.mark_of_a_script)\n").ended == "AttributeError"
    assert settled(verifier.process_id, 1) != shared


def test_an_altered_twin_runs_where_its_script_ran_if_that_left_nothing(verifier: Open) -> None:
    plain = "import torch\nx = torch.ones(2)\n"
    verifier.alone(plain)
    shared = settled(verifier.process_id, 1)
    assert verifier.altered(plain).ended == ""
    assert children(verifier.process_id) == shared
    assert verifier.altered("import torch\nprint(1)\n").ended == ""
    assert none_left(verifier.process_id)
    marking = "import torch\nx = 1\nprint(hasattr(torch, 'mark_of_a_script'))\ntorch.mark_of_a_script = 1\n"
    verifier.alone(marking)
    assert none_left(verifier.process_id)
    assert verifier.altered(marking).printed == "False\n"


def test_what_is_judged_for_one_finding_shares_a_process_but_for_what_may_leave_something(verifier: Open) -> None:
    verifier.alone("import torch\nkept = torch.ones(2)\n")
    shared = settled(verifier.process_id, 1)
    assert verifier.alone("print('kept' in eval('globals()'))\n").printed == "False\n"
    assert none_left(verifier.process_id)
    verifier.alone("import torch\nother = torch.ones(3)\n")
    first = settled(verifier.process_id, 1)
    assert verifier.alone("import torch\nprint(torch.ones(3).sum().item())\n").printed == "3.0\n"
    assert children(verifier.process_id) == first
    assert first != shared


def test_a_process_that_was_made_ahead_runs_the_next_script_and_no_finding_leaves_it_behind(verifier: Open) -> None:
    page = load_pages()["TCL501"]
    harmless = slice_with(page, "x = 1\ny = 2\n", (mark_at(Role.SHARED, 1), mark_at(Role.WRITTEN, 2)))
    verifier.verify(harmless, page)
    assert none_left(verifier.process_id)
    verifier.ahead(page, "")
    made = settled(verifier.process_id, 1)
    assert verifier.alone("import torch\nprint(1)\n").printed == "1\n"
    assert children(verifier.process_id) == made
    verifier.verify(harmless, page)
    assert none_left(verifier.process_id)
    verifier.ahead(page, "")
    settled(verifier.process_id, 1)
    assert verifier.alone("import os\n").blocked
    verifier.verify(harmless, page)
    assert none_left(verifier.process_id)


def test_no_process_is_made_ahead_for_a_rule_whose_findings_are_not_run(verifier: Open) -> None:
    page = load_pages()["TCL104"]
    assert not rule_of(page, "").words
    verifier.ahead(page, "")
    assert verifier.scouted("import torch\n").ended == ""
    settled(verifier.process_id, 1)


def test_what_dies_where_others_ran_before_runs_again_by_itself(verifier: Open) -> None:
    verifier.alone("import torch\nx = torch.ones(2)\n")
    for child in children(verifier.process_id):
        os.kill(child, signal.SIGKILL)
    assert verifier.alone("import torch\nprint(1)\n").printed == "1\n"


def test_a_twin_that_dies_where_its_script_ran_gets_a_process_of_its_own(verifier: Open) -> None:
    script = "import torch\nx = torch.ones(2)\n"
    verifier.alone(script)
    for child in children(verifier.process_id):
        os.kill(child, signal.SIGKILL)
    assert verifier.altered(script).ended == ""


@pytest.mark.parametrize(
    ("script", "leaves"),
    [
        ("import torch\nmodel.eval()\nx.data = y\nself.modules = 1\ntorch.manual_seed(0)\n", False),
        ("import torch\nwith torch.no_grad():\n    x[0] = 1\nmodel.requires_grad_(False)\n", False),
        ("import torch\ntorch.Tensor.add_ = None\n", True),
        ("import torch\nfrom torch import nn\nnn.Linear.forward = f\n", True),
        ("import torch\ntorch.set_default_dtype(torch.float64)\n", True),
        ("from torch import set_default_dtype\nset_default_dtype(1)\n", True),
        ("import torch\ntorch.backends.cudnn.benchmark = True\n", True),
        ("import sys\nsys.modules['torch'] = None\n", True),
        ("import torch\nself.__dict__.update(a=1)\nmodules = vars(args)\nglobals()['x'] = 1\n", False),
        ("import torch\ntype(x).__dict__['y'] = 1\n", True),
        ("from sys import modules\nmodules['torch'] = None\n", True),
        ("import torch\nsetattr(torch, 'x', 1)\n", True),
        ("import torch\nvars(torch)['x'] = 1\n", True),
        ("import torch\ntorch.__dict__['x'] = 1\n", True),
        ("import threading\nthreading.Thread(target=print).start()\n", True),
        ("import numpy as np\nnp.seterr(all='raise')\n", True),
        ("import torch\ntorch.autograd.set_detect_anomaly(True)\n", True),
        ("def (:\n", True),
    ],
)
def test_what_a_script_may_leave_behind(script: str, leaves: bool) -> None:
    assert leaves_traces(script) is leaves


def test_modes_of_a_scout_are_not_those_of_the_next(verifier: Open) -> None:
    off = "import torch\ntorch.set_grad_enabled(False)\ntorch.set_default_dtype(torch.float64)\nprint(1)\n"
    assert verifier.scouted(off).printed == "1\n"
    asked = "import torch\nprint(torch.is_grad_enabled(), torch.get_default_dtype())\n"
    assert verifier.scouted(asked).printed == "True torch.float32\n"


def test_a_scout_that_dies_or_hangs_takes_only_its_own_script_along() -> None:
    with Open(timeout=1.5) as hurried:
        assert (
            hurried.scouted("import torch\ntorch.os._exit(3)\n").failed
            == "the process of the script ended with status 3"
        )
        assert "time was up" in hurried.scouted("import torch\nwhile True:\n    pass\n").failed
        assert hurried.scouted("import torch\nprint(2)\n").printed == "2\n"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_hostile_scouts_change_nothing(script: Path, verifier: Open, hurried: Open, tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("kept", encoding="utf-8")
    text = script.read_text(encoding="utf-8").replace("VICTIM", str(tmp_path))
    asked = hurried if "time was up" in text else verifier
    run = asked.scouted(text)
    said = re.match(r"# says: (.*)", text)
    if said is not None and "refused" in said[1]:
        assert run.blocked or run.failed
    assert asked.alone("import torch\nprint(2)\n").printed == "2\n"
    settled(asked.process_id, 1)
    assert tree(tmp_path) == {"kept": "kept"}


class Told:
    """Answers what a test has laid down, and keeps what was asked for: the alteration, and whether to the end."""

    def __init__(self, answers: dict[str, Run]) -> None:
        self.answers = answers
        self.asked: list[tuple[str, str, bool]] = []

    def __call__(self, attempt: Attempt, kind: str, marks: tuple[int, ...]) -> Run:
        self.asked.append((attempt.script, kind, attempt.whole))
        run = self.answers[attempt.script]
        return replace(run, shortened="") if attempt.whole else run


def group_of(*scripts: str) -> Group:
    return Group("", [Attempt(script, HERE, 0) for script in scripts])


RULE = rule_of(load_pages()["TCL501"], "")
THERE = Run(passes=((1,),))
NOT_THERE = Run(passes=((),))


def test_what_is_tried_after_the_first_is_scouted_until_one_gets_there() -> None:
    told = Told({"a": NOT_THERE, "b": NOT_THERE, "c": THERE, "d": THERE})
    judge_group(group_of("a", "b", "c", "d"), RULE, told)
    assert [(script, kind) for script, kind, _ in told.asked[:4]] == [("a", ""), ("b", SCOUT), ("c", SCOUT), ("c", "")]
    assert not any(script == "d" or kind == SCOUT for script, kind, _ in told.asked[4:])


def test_the_furthest_is_judged_by_a_run_of_its_own_though_it_did_not_get_there() -> None:
    both = (*HERE, mark_at(Role.WRITTEN, 2))
    told = Told({"a": Run(passes=((), ())), "b": Run(passes=((1,), ()))})
    outcome = judge_group(Group("", [Attempt(script, both, 0) for script in "ab"]), RULE, told)
    assert outcome.verdict is Verdict.NOT_TRIGGERED
    assert [(script, kind) for script, kind, _ in told.asked[:3]] == [("a", ""), ("b", SCOUT), ("b", "")]


def test_what_is_not_confirmed_in_a_few_turns_runs_to_its_end() -> None:
    told = Told({"a": replace(THERE, shortened="a loop")})
    outcome = judge_group(group_of("a"), RULE, told)
    assert told.asked[0] == ("a", "", False)
    assert ("a", "", True) in told.asked
    assert outcome.attempt is not None
    assert outcome.attempt.whole
    told = Told({"a": replace(NOT_THERE, shortened="a loop"), "b": THERE})
    judge_group(group_of("a", "b"), RULE, told)
    assert told.asked[:3] == [("a", "", False), ("a", "", True), ("b", SCOUT, False)]


def test_a_loop_of_many_statements_ends_after_a_few_turns(verifier: Open) -> None:
    body = "".join(f"    x = x + {number}\n" for number in range(STATEMENTS_RUN // TURNS_RUN))
    script = f"import torch\nx = torch.zeros(1)\nfor turn in range(30):\n{body}print(turn + 1)\n"
    run = verifier.alone(script)
    assert (run.printed, bool(run.shortened)) == (f"{TURNS_RUN}\n", True)
    run = verifier.alone(script, whole=True)
    assert (run.printed, run.shortened) == ("30\n", "")
    layers = "import torch\nx = torch.zeros(1)\nfor turn in range(30):\n    x = x + 1\nprint(turn + 1)\n"
    run = verifier.alone(layers)
    assert (run.printed, run.shortened) == ("30\n", "")


def test_a_loop_in_which_something_is_kept_for_later_runs_to_its_end() -> None:
    attention = Attention([True, False])
    attention.few = True
    assert attention.is_enough(7, TURNS_RUN, STATEMENTS_RUN)
    running = object()
    attention.turn(7, running)
    assert attention.is_enough(7, TURNS_RUN, STATEMENTS_RUN)
    attention.passed(0, first=True)
    assert not attention.is_enough(7, TURNS_RUN, STATEMENTS_RUN)
    attention.over(running)
    assert attention.is_enough(7, TURNS_RUN, STATEMENTS_RUN)


def test_a_verdict_on_a_few_turns_says_so(verifier: Open) -> None:
    many = "".join(f"    z = x * {number}\n" for number in range(STATEMENTS_RUN // TURNS_RUN))
    script = f"import torch\nx = torch.zeros(2)\nfor turn in range(9):\n    y = x\n    y += 1\n    print(x)\n{many}"
    marks = (mark_at(Role.SHARED, 4), mark_at(Role.WRITTEN, 5), mark_at(Role.READ, 6))
    piece: Slice = slice_with(load_pages()["TCL501"], script, marks)
    answer = verifier.verify(piece)
    assert answer.verdict is Verdict.CONFIRMED, answer.evidence
    assert "a loop does in its first turns what it does in all" in [item.text for item in answer.evidence]


WITHOUT_EFFECT = """\
import torch


def touch(x):
    y = x.clone()
    y = y + 1
    y = y + 1
    y = y + 1
    y = y + 1
    y = y + 1
    y += 1


total = torch.zeros(1)
for turn in range(30):
    total = total + 1
    total = total + 0
    total = total + 0
    total = total + 0
    touch(total)
print(total)
"""


def test_loops_that_end_elsewhere_in_the_altered_run_are_no_difference(verifier: Open) -> None:
    (row,) = [n for n, line in enumerate(WITHOUT_EFFECT.splitlines(), 1) if line == "    touch(total)"]
    attempt = Attempt(WITHOUT_EFFECT, (mark_at(Role.WRITTEN, row),), 0)
    rule = Rule(("values-differ",), ("skipped",), (), Role.WRITTEN, conditional=False)
    asked: list[tuple[Attempt, str, str]] = []

    def ask(attempt: Attempt, kind: str, marks: tuple[int, ...]) -> Run:
        run = verifier._run(attempt, kind, marks)
        asked.append((attempt, kind, run.shortened))
        return run

    outcome = judge_group(Group("", [attempt]), rule, ask)
    # Were the two shortened runs compared, the one of four turns would not print what the other prints after eight.
    assert outcome.verdict is not Verdict.CONFIRMED, outcome.evidence
    early = {kind: shortened for attempt, kind, shortened in asked if not attempt.whole}
    assert early[""]
    assert early["skipped"] not in ("", early[""])
    assert {kind for attempt, kind, _ in asked if attempt.whole} == {"", "skipped"}


def test_what_warms_the_process_runs_to_its_end(verifier: Open) -> None:
    from torchcopylint.verify.child.running import WARMING

    run = verifier.alone(WARMING)
    assert (run.failed, run.ended, run.blocked) == ("", "", ())
    # What needs a package besides torch would leave forks cold where that is not installed.
    assert "numpy" not in WARMING
