"""What is likely to come next is begun in a second process: it saves time, and changes no answer."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from tests.test_verify_hostile import children, none_left, settled
from torchcopylint import check_source
from torchcopylint.base.finding import Role
from torchcopylint.pages import load_pages
from torchcopylint.verify.examples import mark_at
from torchcopylint.verify.judge import SCOUT
from torchcopylint.verify.model import Attempt
from torchcopylint.verify.run import Verifier
from torchcopylint.verify.slicing.slicer import slice_of

HERE = (mark_at(Role.HERE, 2),)


def program(number: int) -> str:
    return f"import torch\nx = torch.full((2,), {number}.0)\nprint(x.sum().item())\n"


class Open(Verifier):
    """One whose runs can be asked for, with what comes next."""

    def __init__(self) -> None:
        super().__init__(timeout=20.0, memory=1 << 28)
        self._parallel = True

    def asked(self, script: str, seed: int = 0, kind: str = "", following: str = "", *, likely: bool = True) -> str:
        after = Attempt(following, HERE, 1)
        attempt = Attempt(script, HERE, seed, next=(lambda: after) if following else None, likely=likely)
        run = self._run(attempt, kind, (0,) if kind and kind != SCOUT else ())
        return run.failed or run.printed


@pytest.fixture
def verifier() -> Iterator[Open]:
    with Open() as started:
        yield started


def test_what_was_begun_is_answered_by_the_process_that_began_it(verifier: Open) -> None:
    assert verifier.asked(program(1), following=program(2)) == "2.0\n"
    both = settled(verifier.process_id, 2)
    assert verifier.asked(program(1), kind="copies", following=program(2)) == "2.0\n"
    assert verifier.asked(program(2), seed=1) == "4.0\n"
    (left,) = settled(verifier.process_id, 1)
    assert left in both
    assert verifier.asked(program(2), seed=1, kind="copies") == "4.0\n"
    assert "NameError" not in verifier.asked(program(2), seed=1, kind="named")
    assert children(verifier.process_id) <= {left}


def test_what_is_not_likely_is_begun_with_the_first_twin(verifier: Open) -> None:
    assert verifier.asked(program(1), following=program(2), likely=False) == "2.0\n"
    settled(verifier.process_id, 1)
    assert verifier.asked(program(1), kind="copies", following=program(2), likely=False) == "2.0\n"
    settled(verifier.process_id, 2)
    assert verifier.asked(program(2), seed=1) == "4.0\n"
    assert verifier.asked(program(2), seed=1, kind="copies") == "4.0\n"


def test_what_was_begun_in_vain_is_given_up(verifier: Open) -> None:
    assert verifier.asked(program(1), following=program(2)) == "2.0\n"
    assert verifier.asked(program(3), seed=1) == "6.0\n"
    settled(verifier.process_id, 1)
    assert verifier.asked(program(4), following=program(5)) == "8.0\n"
    assert verifier.asked(program(6), following=program(7)) == "12.0\n"
    assert verifier.asked(program(7), seed=1) == "14.0\n"
    assert verifier.asked(program(8), following=program(9)) == "16.0\n"
    verifier._rest()
    assert none_left(verifier.process_id)


def test_what_was_begun_behind_another_is_not_taken_for_the_answer_to_something_else(verifier: Open) -> None:
    assert verifier.asked(program(1), following=program(2)) == "2.0\n"
    assert verifier.asked(program(1), kind="copies", following=program(2)) == "2.0\n"
    assert verifier.asked(program(2), seed=1) == "4.0\n"
    assert verifier.asked(program(3)) == "6.0\n"
    assert verifier.asked(program(4), seed=1) == "8.0\n"


def test_scouts_and_what_may_leave_something_begin_nothing(verifier: Open) -> None:
    assert verifier.asked(program(1), kind=SCOUT, following=program(2)) == "2.0\n"
    settled(verifier.process_id, 1)
    leaving = "import torch\ntorch.mark_of_a_script = 1\nprint(1)\n"
    assert verifier.asked(program(1), following=leaving) == "2.0\n"
    settled(verifier.process_id, 1)


def test_what_dies_after_it_was_begun_runs_again(verifier: Open) -> None:
    assert verifier.asked(program(1), following=program(2)) == "2.0\n"
    for child in settled(verifier.process_id, 2):
        os.kill(child, signal.SIGKILL)
    assert verifier.asked(program(2), seed=1) == "4.0\n"


def test_what_hangs_after_it_was_begun_is_stopped() -> None:
    with Open() as hurried:
        hurried._timeout = 2.0
        hanging = "import torch\nx = 1\nwhile True:\n    pass\n"
        assert hurried.asked(program(1), following=hanging) == "2.0\n"
        assert "time was up" in hurried.asked(hanging, seed=1)
        assert hurried.asked(program(3), seed=1) == "6.0\n"


@pytest.mark.parametrize("code", ["TCL501", "TCL701", "TCL602", "TCL301"])
def test_no_verdict_depends_on_it(code: str) -> None:
    page = load_pages()[code]
    text = next(example.code for example in page.examples if example.kind == "bad")
    told: list[Any] = []
    for parallel in (False, True):
        with Verifier(timeout=20.0) as started:
            started._parallel = parallel
            findings = [finding for finding in check_source(text, "program.py") if finding.code == code]
            told.append([started.verify(slice_of(text, finding, page), page) for finding in findings])
    assert told[0]
    assert told[0] == told[1]
