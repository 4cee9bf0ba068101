"""What the engine knows, as programs: every heading in `flow/*.md` is a statement, and the fence under it shows it.

Marks on a line say what stands on it: `# <- TCL501`, with a variant in brackets and a confidence in parentheses where
they are the point, and the roles of the steps (`shared`, `written`, ...) where the heading is about the story. No mark
means silence. Headings that start with `FN` or `FP` are known limits: a fault that is missed, a report that is wrong.
They assert what the linter says today. `raises` marks a line on which torch raises and the linter is silent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from running.runner import Runner

from torchcopylint import check_source
from torchcopylint.base.finding import Effect, Finding, Role
from torchcopylint.pages import load_pages

MARK = re.compile(r"(?P<what>\w+)(?:\[(?P<variant>[\w-]+)\])?(?: \((?P<confidence>\w+)\))?")
ROLES = {role.value for role in Role}


class Mark(NamedTuple):
    row: int
    what: str
    variant: str
    confidence: str


class Case(NamedTuple):
    heading: str
    code: str
    marks: tuple[Mark, ...]

    def rows(self, *what: str) -> set[tuple[int, str]]:
        return {(mark.row, mark.what) for mark in self.marks if mark.what in what}


def _cases() -> Iterator[object]:
    for path in sorted((Path(__file__).parent / "flow").glob("*.md")):
        for section in path.read_text(encoding="utf-8").split("\n## ")[1:]:
            heading, _, rest = section.partition("\n")
            fences = re.findall(r"^```python\n(.*?)^```$", rest, re.MULTILINE | re.DOTALL)
            assert len(fences) == 1, f"{path.name}: not one program under: {heading}"
            case = Case(heading, fences[0], tuple(_marks(fences[0])))
            yield pytest.param(case, id=f"{path.stem}: {heading}")


def _marks(code: str) -> Iterator[Mark]:
    for row, line in enumerate(code.splitlines(), start=1):
        for item in line.partition("# <- ")[2].split(", ") if "# <- " in line else []:
            match = MARK.fullmatch(item)
            assert match, f"no mark: {line}"
            assert match["what"] in {"raises", *ROLES, *load_pages()}, f"no such mark: {line}"
            yield Mark(row, match["what"], match["variant"] or "", match["confidence"] or "")


CASES = list(_cases())


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    with Runner() as started:
        yield started


@pytest.mark.parametrize("case", CASES)
def test_the_engine_knows(case: Case, runner: Runner) -> None:
    findings = check_source(case.code, filename="example.py", preset="strict")
    assert {(f.span.start.row, f.code) for f in findings} == case.rows(*load_pages())
    for mark in case.marks:
        said = [f for f in findings if (f.span.start.row, f.code) == (mark.row, mark.what)]
        assert {f.variant for f in said} <= {mark.variant}
        assert not mark.confidence or {f.confidence.value for f in said} == {mark.confidence}
    if case.rows(*ROLES):
        assert _steps(findings) == case.rows(*ROLES)
    _agrees_with_torch(case, runner)


def _steps(findings: list[Finding]) -> set[tuple[int, str]]:
    steps = {(step.span.start.row, step.role.value) for finding in findings for step in finding.steps}
    return {(row, role) for row, role in steps if role != Role.HERE}


def _agrees_with_torch(case: Case, runner: Runner) -> None:
    """The program's own assertions hold, and it raises where a finding says so, or a mark, and nowhere else."""
    raising = {row for row, _ in case.rows("raises")}
    if not case.heading.startswith("FP"):
        pages = load_pages()
        raising |= {m.row for m in case.marks if m.what in pages and pages[m.what].effect(m.variant) is Effect.RAISES}
    raised = runner.run(case.code).raised
    assert (raised.line in raising) if raised else not raising, raised
