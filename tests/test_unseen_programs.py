"""Whole programs in the manner of real training code, each with one mistake, or with none.

`unseen/NAME_bad.py` and `unseen/NAME_good.py` are twins. `# <- TCL701` marks the line of a finding, `# <- raises` the
line on which torch raises. Both are executed, and assert what happens.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from running.runner import Runner

from torchcopylint import check_source

PROGRAMS = sorted((Path(__file__).parent / "unseen").glob("*.py"))
every_program = pytest.mark.parametrize("path", PROGRAMS, ids=[path.stem for path in PROGRAMS])
_MARK = re.compile(r"# <- (\w+(?:, \w+)*)$")


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    with Runner() as started:
        yield started


def marked(path: Path) -> set[tuple[int, str]]:
    lines = path.read_text(encoding="utf-8").splitlines()
    found = ((row, mark[1]) for row, line in enumerate(lines, start=1) if (mark := _MARK.search(line)))
    return {(row, what) for row, marks in found for what in marks.split(", ")}


@every_program
def test_the_findings_are_the_marked_ones(path: Path) -> None:
    found = check_source(path.read_text(encoding="utf-8"), path.name)
    assert {(f.span.start.row, f.code) for f in found} == {mark for mark in marked(path) if mark[1] != "raises"}


@every_program
def test_torch_does_what_the_program_asserts(path: Path, runner: Runner) -> None:
    raised = runner.run(path.read_text(encoding="utf-8")).raised
    assert ({raised.line} if raised else set()) == {row for row, what in marked(path) if what == "raises"}, raised


def test_every_mistake_has_a_twin_without_it() -> None:
    names = {path.stem for path in PROGRAMS}
    pairs = {name.rpartition("_")[0] for name in names}
    assert names == {f"{pair}_{kind}" for pair in pairs for kind in ("bad", "good")}
    assert all(marked(path) for path in PROGRAMS if path.stem.endswith("bad"))
    assert not any(marked(path) for path in PROGRAMS if path.stem.endswith("good"))
