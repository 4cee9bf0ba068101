"""Methods whose object has no name of its own: Python takes them, so that no file may make the linter fail by them."""

from __future__ import annotations

import re

import pytest
from test_flow import CASES, Case

from torchcopylint import check_source

METHOD = re.compile(r"def (\w+)\((?:self|ctx)[^)]*\)")


def programs() -> list[str]:
    """The programs of `flow/*.md` that define methods."""
    cases = [one if isinstance(one, Case) else one.values[0] for one in CASES]
    return [case.code for case in cases if METHOD.search(case.code)]


@pytest.mark.parametrize("parameters", ["", "*, a=None", "*args", "*args, **named"])
def test_a_method_may_have_any_parameters(parameters: str) -> None:
    found = programs()
    assert len(found) > 300
    for code in found:
        changed = METHOD.sub(rf"def \1({parameters})", code)
        assert "TCL005" not in {finding.code for finding in check_source(changed, filename="example.py")}, changed
