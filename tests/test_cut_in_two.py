"""Programs of the tests, cut into two files that know one another by imports: whatever crosses, nothing may fail."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from test_flow import CASES, Case

from torchcopylint.analysis import DEFAULT_LIMITS
from torchcopylint.pages import load_pages
from torchcopylint.project.examined import Outcome, Projects, Request, examine_file

KINDS = 4


def is_definition(statement: ast.stmt) -> bool:
    constant = isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant)
    return constant or isinstance(statement, ast.FunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom)


def cut(code: str, half: bool) -> tuple[str, str]:
    """What a program defines, or half of it, and the rest, which imports that."""
    body = ast.parse(code).body
    definitions = [statement for statement in body if is_definition(statement)]
    first = definitions[: len(definitions) // 2 + 1] if half else definitions
    imports = [statement for statement in definitions if isinstance(statement, ast.Import | ast.ImportFrom)]
    rest = [statement for statement in body if statement not in first]
    told = [ast.parse("from first import *\nimport first"), *rest]
    return "\n".join(map(ast.unparse, first)), "\n".join(map(ast.unparse, [*imports, *told]))


@pytest.mark.parametrize("part", range(KINDS))
def test_programs_cut_in_two_are_analysed(tmp_path: Path, part: int) -> None:
    programs = [one.code if isinstance(one, Case) else one.values[0].code for one in CASES]
    for code in programs[part::KINDS]:
        for half in (False, True):
            first, second = cut(code, half)
            (tmp_path / "first.py").write_text(first, encoding="utf-8")
            (tmp_path / "second.py").write_text(second, encoding="utf-8")
            projects = Projects()
            for name in ("second.py", "first.py"):
                request = Request(str(tmp_path / name), name, DEFAULT_LIMITS, str(tmp_path), screen=False)
                examined = examine_file(request, load_pages(), projects).examined
                assert examined.outcome is not Outcome.FAILED, f"{examined.failure}\n{first}\n\n{second}"
