"""Every example of every page under the linter: bad ones give exactly the marked findings and steps, good ones none.

All rules run together, with everything selected. A line's marks say what stands on it: `finding`, the role of a step,
or the code of another rule that reports there.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from torchcopylint import check_source
from torchcopylint.base.finding import Finding, Role
from torchcopylint.pages import Example, Page, load_pages

ROLES = {role.value for role in Role}


def _examples() -> Iterator[tuple[Page, Example, str]]:
    for page in load_pages().values():
        for number, example in enumerate(page.examples, start=1):
            yield page, example, f"{page.code}-{example.kind}-{number}"


CASES = [pytest.param(page, example, id=name) for page, example, name in _examples()]


def _expected(page: Page, example: Example) -> set[tuple[int, str, str]]:
    """The marked findings: row, code, variant."""
    found = set()
    for mark in example.marks:
        if mark.what == "finding":
            found.add((mark.row, page.code, mark.variant))
        elif mark.what not in ROLES:
            found.add((mark.row, mark.what, mark.variant))
    return found


def _findings(example: Example) -> list[Finding]:
    return check_source(example.code, filename="example.py", preset="strict")


@pytest.mark.parametrize(("page", "example"), CASES)
def test_findings_are_exactly_the_marked_ones(page: Page, example: Example) -> None:
    found = {(f.span.start.row, f.code, f.variant) for f in _findings(example)}
    assert found == _expected(page, example)


@pytest.mark.parametrize(("page", "example"), [case for case in CASES if case.values[1].kind == "bad"])
def test_steps_stand_on_the_marked_lines(page: Page, example: Example) -> None:
    steps = {
        (step.span.start.row, step.role.value)
        for finding in _findings(example)
        if finding.code == page.code
        for step in finding.steps
    }
    marked = {(mark.row, mark.what) for mark in example.marks if mark.what in ROLES}
    assert steps - {(row, Role.HERE.value) for row, _ in steps} == marked
