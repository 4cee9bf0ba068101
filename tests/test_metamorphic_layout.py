"""The examples of the pages in another layout: the same syntax tree, so the same findings in the same statements."""

from __future__ import annotations

import pytest
from metamorphic.known import Difference, accepted
from metamorphic.layout import LAYOUTS, SAME_FINGERPRINTS, laid_out, original
from metamorphic.programs import Program, programs

PROGRAMS = [pytest.param(program, id=program.name) for program in programs()]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_layout_changes_no_finding(program: Program, layout: str) -> None:
    before, after = original(program), laid_out(program, layout)
    assert after.tree == before.tree, "this layout is not the same program"
    missing = [told for told in before.told if told not in after.told]
    extra = [told for told in after.told if told not in before.told]
    assert Difference(tuple(map(str, missing)), tuple(map(str, extra))) == accepted(program.name, layout)


@pytest.mark.parametrize("layout", SAME_FINGERPRINTS)
@pytest.mark.parametrize("program", [case for case in PROGRAMS if original(case.values[0]).fingerprints])
def test_blank_lines_comments_and_indentation_change_no_fingerprint(program: Program, layout: str) -> None:
    assert laid_out(program, layout).fingerprints == original(program).fingerprints


def test_every_layout_changes_programs() -> None:
    for layout in LAYOUTS:
        assert any(laid_out(program, layout).code != program.code for program in programs()[:20])
