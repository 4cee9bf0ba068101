"""What editors call: standard input under a file's name, JSON or one line a finding on standard output."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from conftest import UNUSED, Lint

DOCS = Path(__file__).resolve().parent.parent / "docs" / "editors.md"


def entries(lint: Lint, *arguments: str, stdin: str | bytes = UNUSED) -> list[dict[str, Any]]:
    done = lint(*arguments, "--output-format", "json", stdin=stdin)
    assert done.stderr == ""
    found: list[dict[str, Any]] = json.loads(done.stdout)
    assert done.returncode == (1 if found else 0)
    return found


def test_standard_input_is_checked_under_the_name_of_the_file(project: Path, lint: Lint) -> None:
    (project / "src").mkdir()
    (project / "pyproject.toml").write_text("[tool.torchcopylint]\n")
    (entry,) = entries(lint, "-", "--stdin-filename", "src/a.py")
    assert (entry["code"], entry["filename"], entry["location"]) == ("TCL002", "src/a.py", {"row": 1, "column": 32})


def test_an_absolute_name_is_relative_to_its_project(project: Path, lint: Lint) -> None:
    (project / "src").mkdir()
    (project / "src" / "pyproject.toml").write_text("[tool.torchcopylint]\n")
    (entry,) = entries(lint, "-", "--stdin-filename", str(project / "src" / "a.py"))
    assert entry["filename"] == "a.py"


def test_the_file_need_not_exist_and_is_not_read(project: Path, lint: Lint) -> None:
    assert len(entries(lint, "-", "--stdin-filename", "new/dir/a.py")) == 1
    (project / "a.py").write_text(UNUSED * 3)
    assert len(entries(lint, "-", "--stdin-filename", "a.py")) == 1


def test_the_dash_may_be_left_out_beside_the_name(lint: Lint) -> None:
    assert len(entries(lint, "--stdin-filename", "a.py")) == 1


def test_without_a_name_it_is_stdin(lint: Lint) -> None:
    assert entries(lint, "-")[0]["filename"] == "<stdin>"


def test_the_configuration_is_found_from_the_name(project: Path, lint: Lint) -> None:
    (project / "src").mkdir()
    (project / "src" / "pyproject.toml").write_text('[tool.torchcopylint]\nignore = ["TCL002"]\n')
    assert entries(lint, "-", "--stdin-filename", "src/a.py") == []
    assert len(entries(lint, "-", "--stdin-filename", "a.py")) == 1


def test_per_file_ignores_apply_to_the_name(project: Path, lint: Lint) -> None:
    (project / "pyproject.toml").write_text('[tool.torchcopylint.per-file-ignores]\n"tests/*" = ["TCL002"]\n')
    assert entries(lint, "-", "--stdin-filename", "tests/a.py") == []


def test_an_excluded_name_is_not_checked(project: Path, lint: Lint) -> None:
    (project / "pyproject.toml").write_text('[tool.torchcopylint]\nexclude = ["vendored"]\n')
    assert entries(lint, "-", "--stdin-filename", "vendored/a.py") == []
    assert entries(lint, "-", "--stdin-filename", "build/a.py") == []


def test_the_output_format_may_come_from_the_configuration_of_the_name(project: Path, lint: Lint) -> None:
    (project / "src").mkdir()
    (project / "src" / "pyproject.toml").write_text('[tool.torchcopylint]\noutput-format = "jsonl"\n')
    assert lint("-", "--stdin-filename", "src/a.py", stdin=UNUSED).stdout.startswith('{"code": "TCL002"')


def test_the_declared_encoding_of_the_text_counts(lint: Lint) -> None:
    text = "# coding: latin-1\né = 1  # torchcopylint: ignore[TCL104]\n".encode("latin-1")
    assert entries(lint, "-", stdin=text)[0]["location"] == {"row": 2, "column": 32}


def test_columns_count_code_points(lint: Lint) -> None:
    assert entries(lint, "-", stdin="'😀'  # torchcopylint: ignore[TCL104]\n")[0]["location"]["column"] == 30


@pytest.mark.parametrize("text", [b"\xff", b"x = '\0'\n", b"def f(:\n"])
def test_a_text_that_cannot_be_checked_is_a_finding(lint: Lint, text: bytes) -> None:
    assert [entry["code"] for entry in entries(lint, "-", stdin=text)] == ["TCL000"]


def test_an_empty_text_is_clean(lint: Lint) -> None:
    assert entries(lint, "-", stdin="") == []


def documented_patterns() -> dict[str, str]:
    """The regular expression of VS Code's problem matcher, the error format of Vim, the pattern of Emacs' Flymake."""
    text = DOCS.read_text(encoding="utf-8")
    task = next(block for block in re.findall(r"```json\n(.*?)```", text, re.DOTALL) if "problemMatcher" in block)
    return json.loads(task)["tasks"][0]["problemMatcher"]["pattern"]


def test_the_documented_problem_matcher_reads_the_concise_format(project: Path, lint: Lint) -> None:
    (project / "a.py").write_text(UNUSED)
    line = lint("a.py", "--output-format", "concise", "--quiet").stdout.rstrip("\n")
    pattern = documented_patterns()
    match = re.match(pattern["regexp"], line)
    assert match is not None
    fields = {name: match[group] for name, group in pattern.items() if name != "regexp" and isinstance(group, int)}
    assert fields == {
        "file": "a.py",
        "line": "1",
        "column": "32",
        "severity": "warning",
        "code": "TCL002",
        "message": "the suppression of `TCL104` suppresses nothing",
    }
