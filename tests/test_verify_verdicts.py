"""What makes a verdict: that a confirmed is no echo, what counts as what, and what the child may answer."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from torchcopylint.base.finding import Role
from torchcopylint.base.verification import Verdict
from torchcopylint.pages import Page, load_pages
from torchcopylint.verify.examples import mark_at, slice_with, slices_of
from torchcopylint.verify.judge import rule_of
from torchcopylint.verify.model import Attempt, Group, Mark, Slice
from torchcopylint.verify.observed import Malformed, read_run
from torchcopylint.verify.run import Verifier

SHARED = """\
import torch
x = torch.zeros(2)
y = x
y += 1
print(x)
"""
COPIED = SHARED.replace("y = x\n", "y = x.clone()\n")
STEPS = (mark_at(Role.SHARED, 3), mark_at(Role.WRITTEN, 4), mark_at(Role.READ, 5))
BAD = [
    pytest.param(page, piece, id=f"{page.name}-{number}")
    for page in load_pages().values()
    for number, example in enumerate(page.examples, start=1)
    if example.kind == "bad" and not page.keys.get("needs")
    for piece in slices_of(page, example)
    # There, to be lost is that the altered run is no other.
    if set(rule_of(page, piece.variant).words) - {"write-lost"}
]
LOST = [
    pytest.param(page, piece, id=f"{page.name}-{number}")
    for page in load_pages().values()
    for number, example in enumerate(page.examples, start=1)
    if example.kind == "bad"
    for piece in slices_of(page, example)
    if set(rule_of(page, piece.variant).words) == {"write-lost"}
]


class Unaltered(Verifier):
    """Answers every request for an altered run with the code as it is."""

    def _run(self, attempt: Attempt, kind: str, marks: tuple[int, ...]) -> Any:
        return super()._run(attempt, "", ())


class Other(Verifier):
    """Answers every request for an altered run with one that prints something else."""

    def _run(self, attempt: Attempt, kind: str, marks: tuple[int, ...]) -> Any:
        run = super()._run(attempt, kind, marks)
        return replace(run, printed=f"{run.printed}something else") if kind else run


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(timeout=20.0) as started:
        yield started


@pytest.fixture(scope="module")
def unaltered() -> Iterator[Unaltered]:
    with Unaltered(timeout=20.0) as started:
        yield started


def views() -> Page:
    return load_pages()["TCL501"]


def of(*groups: Group) -> Slice:
    return Slice("TCL501", "", ("two-names-change",), groups)


def told(verifier: Verifier, piece: Slice) -> tuple[Verdict, dict[str, str]]:
    verification = verifier.verify(piece)
    return verification.verdict, {item.kind: item.text for item in verification.evidence}


@pytest.mark.parametrize(("page", "piece"), BAD)
def test_what_the_altered_run_shows_as_well_confirms_nothing(page: Page, piece: Slice, unaltered: Unaltered) -> None:
    assert unaltered.verify(piece, page).verdict is not Verdict.CONFIRMED


@pytest.mark.parametrize(("page", "piece"), LOST)
def test_a_write_that_makes_a_difference_is_not_lost(page: Page, piece: Slice) -> None:
    with Other(timeout=20.0) as other:
        assert other.verify(piece, page).verdict is not Verdict.CONFIRMED


def test_every_rule_with_an_observation_must_lose_it() -> None:
    covered = {case.values[0].code for case in (*BAD, *LOST)}
    for page in load_pages().values():
        if any(rule_of(page, variant).words for variant in ("", *page.variants)) and not page.keys.get("needs"):
            assert page.code in covered, page.code


def test_two_names_on_one_storage_are_told_with_their_values(verifier: Verifier) -> None:
    verdict, evidence = told(verifier, slice_with(views(), SHARED, STEPS))
    assert verdict is Verdict.CONFIRMED
    assert evidence["two-names-change"] == "line 4 changed `x` and `y`: same storage: 0 -> 1"


def test_a_long_loop_before_it_hides_nothing(verifier: Verifier) -> None:
    code = SHARED.replace("y += 1\n", "for step in range(4000): total = step\ny += 1\n")
    verdict, _ = told(
        verifier, slice_with(views(), code, (*STEPS[:1], mark_at(Role.WRITTEN, 5), mark_at(Role.READ, 6)))
    )
    assert verdict is Verdict.CONFIRMED


def test_what_is_kept_in_a_late_turn_is_seen(verifier: Verifier) -> None:
    code = """\
import torch
x = torch.zeros(2)
for step in range(9):
    for batch in range(9):
        x += 1
    if step == 5:
        y = x
print(y)
"""
    marks = (mark_at(Role.SHARED, 7), mark_at(Role.WRITTEN, 5), mark_at(Role.READ, 8))
    verdict, _ = told(verifier, slice_with(views(), code, marks))
    assert verdict is Verdict.CONFIRMED


def test_what_is_not_confirmed_in_the_first_turns_is_looked_at_in_all(verifier: Verifier) -> None:
    code = COPIED + "for step in range(9): total = step\n"
    assert told(verifier, slice_with(views(), code, STEPS))[0] is Verdict.REFUTED
    late = """\
import torch
x, y = torch.ones(2), torch.zeros(2)
for step in range(9):
    if step == 7:
        y = x
    x += 1
print(y)
"""
    marks = (mark_at(Role.SHARED, 5), mark_at(Role.WRITTEN, 6), mark_at(Role.READ, 7))
    assert told(verifier, slice_with(views(), late, marks))[0] is Verdict.CONFIRMED


def test_what_does_not_happen_is_refuted(verifier: Verifier) -> None:
    assert told(verifier, slice_with(views(), COPIED, STEPS))[0] is Verdict.REFUTED


def test_a_line_that_does_not_run_is_not_triggered(verifier: Verifier) -> None:
    code = SHARED.replace("y += 1\n", "if x.sum() > 5: y += 1\n")
    marks = (STEPS[0], Mark(Role.WRITTEN, 4, 4, 17, 23, 4))
    verdict, evidence = told(verifier, slice_with(views(), code, marks))
    assert (verdict, evidence["reason"]) == (Verdict.NOT_TRIGGERED, "line 4 did not run")


def test_two_statements_on_one_line_are_two(verifier: Verifier) -> None:
    code = "import torch\nx = torch.zeros(2)\ny = x; z = torch.ones(2)\nz += 1; y += 1\nprint(x)\n"
    other = (STEPS[0], Mark(Role.WRITTEN, 4, 4, 1, 7, 4))
    its_own = (STEPS[0], Mark(Role.WRITTEN, 4, 4, 9, 15, 4))
    assert told(verifier, slice_with(views(), code, other))[0] is Verdict.REFUTED
    assert told(verifier, slice_with(views(), code, its_own))[0] is Verdict.CONFIRMED


def test_a_run_that_ends_early_refutes_nothing(verifier: Verifier) -> None:
    code = COPIED.replace("print(x)\n", "print(x.undefined)\n")
    verdict, evidence = told(verifier, slice_with(views(), code, STEPS))
    assert verdict is Verdict.INCONCLUSIVE
    assert evidence["reason"].startswith("the run ended with AttributeError")


def test_what_the_sandbox_raises_is_no_exception_of_a_rule(verifier: Verifier) -> None:
    page = load_pages()["TCL201"]
    code = "import torch\nraise PermissionError('a leaf Variable that requires grad')\n"
    blocked = "import torch\nopen('/a leaf Variable that requires grad')\n"
    for script in (code, blocked):
        verification = verifier.verify(slice_with(page, script, (mark_at(Role.WRITTEN, 2),)), page)
        assert verification.verdict is Verdict.INCONCLUSIVE


def test_the_right_message_of_the_wrong_type_is_no_exception_of_a_rule(verifier: Verifier) -> None:
    page = load_pages()["TCL201"]
    code = "import torch\nraise ValueError('a leaf Variable that requires grad')\n"
    verification = verifier.verify(slice_with(page, code, (mark_at(Role.WRITTEN, 2),)), page)
    assert verification.verdict is Verdict.INCONCLUSIVE


def test_the_first_attempt_that_reaches_everything_counts(verifier: Verifier) -> None:
    failing = Attempt("import torch\nx = torch.zeros(2, 3) @ torch.zeros(2)\n" + SHARED[13:], STEPS, 0, "2 by 3")
    attempts = (failing, Attempt(SHARED, STEPS, 7, "of 2", ("`x` is a tensor",), ("`f`",)))
    verification = verifier.verify(of(Group("", attempts)))
    assert verification.verdict is Verdict.CONFIRMED
    assert verification.seeds == (7,)
    assert {"of 2", "`x` is a tensor", "`f`"} <= {item.text for item in verification.evidence}


def test_an_error_that_happens_in_one_setting_only_is_inconclusive(verifier: Verifier) -> None:
    groups = (Group("equal dtypes", (Attempt(SHARED, STEPS, 0),)), Group("others", (Attempt(COPIED, STEPS, 0),)))
    verdict, evidence = told(verifier, of(*groups))
    assert verdict is Verdict.INCONCLUSIVE
    assert evidence["differs"] == "it differs between inputs: equal dtypes: confirmed; others: refuted"


def test_a_warning_is_confirmed_by_one_setting_and_says_which(verifier: Verifier) -> None:
    groups = (Group("equal dtypes", (Attempt(SHARED, STEPS, 0),)), Group("others", (Attempt(COPIED, STEPS, 0),)))
    verdict, evidence = told(verifier, Slice("TCL502", "", ("two-names-change",), groups))
    assert verdict is Verdict.CONFIRMED
    assert evidence["depends"] == "it depends on the input: equal dtypes: confirmed; others: refuted"


def test_large_inputs_are_run_if_small_ones_refute_and_count_if_they_confirm(verifier: Verifier) -> None:
    asked: list[str] = []

    def attempts(name: str, script: str) -> Iterator[Attempt]:
        asked.append(name)
        yield Attempt(script, STEPS, 0)

    def groups(small: str, large: str) -> tuple[Group, ...]:
        return (Group("small", attempts("small", small)), Group("large", attempts("large", large), doubts=True))

    verdict, evidence = told(verifier, of(*groups(COPIED, SHARED)))
    assert verdict is Verdict.INCONCLUSIVE
    assert evidence["differs"] == "it differs between inputs: large: confirmed; small: refuted"
    assert verifier.counted is not None
    assert verifier.counted.script == SHARED
    assert told(verifier, of(*groups(COPIED, COPIED)))[0] is Verdict.REFUTED
    failing = COPIED.replace("print(x)\n", "print(x.undefined)\n")
    assert told(verifier, of(*groups(COPIED, failing)))[0] is Verdict.REFUTED
    assert asked == ["small", "large"] * 3
    asked.clear()
    assert told(verifier, of(*groups(SHARED, COPIED)))[0] is Verdict.CONFIRMED
    assert asked == ["small"]


def test_a_guess_confirms_nothing(verifier: Verifier) -> None:
    verdict, evidence = told(verifier, of(Group("", (Attempt(SHARED, STEPS, 0, guessed=True),))))
    assert verdict is Verdict.INCONCLUSIVE
    assert "guessed" in evidence


def test_what_nothing_can_show_is_unsupported(verifier: Verifier) -> None:
    page = load_pages()["TCL901"]
    assert verifier.verify(slice_with(page, SHARED, STEPS), page).verdict is Verdict.UNSUPPORTED


def test_without_torch_it_is_unavailable(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n', encoding="utf-8")
    python.chmod(0o755)
    with Verifier(python=str(python)) as without:
        verdict, evidence = told(without, slice_with(views(), SHARED, STEPS))
    assert verdict is Verdict.UNAVAILABLE
    assert "torch cannot be imported" in evidence["unavailable"]


def test_where_there_is_no_fork_every_script_has_a_process() -> None:
    with Verifier(fork=False) as verifier:
        for code, verdict in ((SHARED, Verdict.CONFIRMED), (COPIED, Verdict.REFUTED)):
            assert told(verifier, slice_with(views(), code, STEPS))[0] is verdict


def test_being_watched_changes_nothing(verifier: Verifier) -> None:
    """A view that may not be asked for its graph, and a storage that NumPy has not seen, stay as they are."""
    code = textwrap.dedent(
        """\
        import torch
        base = torch.ones(4, requires_grad=True) * 1
        with torch.no_grad():
            view = base[:2]
            view.zero_()
        grown = torch.ones(2)
        grown.resize_(1000)
        base.sum().backward()
        print(torch.is_grad_enabled(), grown.numel())
        """
    )
    attempt = Attempt(code, (mark_at(Role.SHARED, 4), mark_at(Role.WRITTEN, 9)), 0)
    run = verifier._run(attempt, "", ())
    assert (run.failed, run.ended, run.printed, run.raised, run.cut_short) == ("", "", "True 1000\n", (), "")


@pytest.mark.parametrize(
    "text",
    ["", "no JSON", "[]", "{}", '{"passes": 1}', '{"failed": 1}', '{"passes": [], "changes": [{}]}', "[" * 5000],
)
def test_an_answer_of_another_form_is_malformed(text: str) -> None:
    with pytest.raises(Malformed):
        read_run(text)


def test_an_interrupt_leaves_no_process(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import time\n"
        "from torchcopylint.verify.run import Verifier\n"
        "verifier = Verifier(timeout=60)\n"
        "verifier.available()\n"
        "print(verifier.process_id, flush=True)\n"
        "time.sleep(60)\n",
        encoding="utf-8",
    )
    process = subprocess.Popen([sys.executable, str(program)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    child = int(process.stdout.readline())
    process.send_signal(signal.SIGINT)
    process.wait(timeout=30)
    for _ in range(200):
        if not Path(f"/proc/{child}").exists() or "Z" in Path(f"/proc/{child}/stat").read_text().split()[2]:
            break
        signal.sigtimedwait([], 0.05)
    else:
        pytest.fail("the child is still there")


def test_explain_runs_the_examples_of_a_page() -> None:
    command = [sys.executable, "-m", "torchcopylint", "explain", "TCL201", "--run"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    page = load_pages()["TCL201"]
    verdicts = [line.rpartition(": ")[2] for line in done.stdout.splitlines() if line.startswith(page.path.name)]
    assert (done.returncode, verdicts) == (0, ["confirmed"] * sum(e.kind == "bad" for e in page.examples))
    assert "raised RuntimeError: a leaf Variable that requires grad" in done.stdout
    assert "Protections in force: " in done.stdout
