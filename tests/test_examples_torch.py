"""The scripts in `examples/`, executed: right ones to the end, faulty ones up to a line that is marked to raise."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from examples_marks import FAULTY, RIGHT, planted
from running.runner import Runner

from torchcopylint.base.finding import Effect
from torchcopylint.pages import load_pages


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    with Runner() as started:
        yield started


def raising_rows(path: Path) -> list[int]:
    """The rows of planted faults whose rule says that the line raises."""
    pages = load_pages()
    return sorted(row for _, row, code in planted(path) if pages[code].effect() is Effect.RAISES)


@pytest.mark.parametrize("path", RIGHT, ids=lambda path: path.stem)
def test_right_script_runs_to_the_end(path: Path, runner: Runner) -> None:
    outcome = runner.run(path.read_text())
    assert outcome.raised is None
    assert outcome.printed
    assert outcome.warnings == ()


@pytest.mark.parametrize("path", FAULTY, ids=lambda path: path.stem)
def test_faulty_script_runs_or_raises_where_that_is_marked(path: Path, runner: Runner) -> None:
    outcome = runner.run(path.read_text())
    rows = raising_rows(path)
    assert [outcome.raised.line if outcome.raised else 0] == (rows[:1] or [0])


@pytest.mark.parametrize("path", FAULTY, ids=lambda path: path.stem)
def test_the_faults_change_what_a_script_prints(path: Path, runner: Runner) -> None:
    """All scripts are seeded: if the faults did nothing, the twins would print the same."""
    right = next(twin for twin in RIGHT if twin.name == path.name)
    assert runner.run(path.read_text()).printed != runner.run(right.read_text()).printed
