"""The formats for programs: JSON, JSON lines and GitHub's workflow commands."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from conftest import Answer
from example_findings import finding, report, snapshot_finding, source, span, step

from torchcopylint.base.finding import Finding, Role, Severity
from torchcopylint.report import render
from torchcopylint.report.github import escape_data, escape_property
from torchcopylint.report.model import FileReport, Look, Report

KEYS = [
    "code",
    "name",
    "message",
    "severity",
    "confidence",
    "filename",
    "location",
    "end_location",
    "cell",
    "url",
    "fix",
    "related",
    "verification",
    "fingerprint",
]


def rendered(output_format: str, *findings: Finding) -> str:
    return render(report(*findings), output_format, Look(color=True, statistics=True))


class TestJson:
    def test_an_entry_has_exactly_these_keys(self) -> None:
        (entry,) = json.loads(rendered("json", snapshot_finding()))
        assert list(entry) == KEYS

    def test_values(self) -> None:
        (entry,) = json.loads(rendered("json", snapshot_finding()))
        related = entry.pop("related")
        assert entry == {
            "code": "TCL701",
            "name": "state-dict-by-reference",
            "message": "`best` still shares memory with `model`, so later training changes it",
            "severity": "error",
            "confidence": "high",
            "filename": "train.py",
            "location": {"row": 7, "column": 16},
            "end_location": {"row": 7, "column": 34},
            "cell": None,
            "url": "https://torchcopylint.github.io/torchcopylint/rules/state-dict-by-reference/",
            "fix": None,
            "verification": None,
            "fingerprint": "0123456789abcdef0123456789abcdef",
        }
        assert [step["role"] for step in related] == ["shared", "written", "read"]
        assert related[1] == {
            "role": "written",
            "message": "written here: moves the parameters of `model`",
            "filename": "train.py",
            "location": {"row": 10, "column": 9},
            "end_location": {"row": 10, "column": 25},
            "cell": None,
        }

    def test_no_findings_are_an_empty_list(self) -> None:
        assert rendered("json") == "[]\n"

    def test_a_cell_is_a_number(self) -> None:
        in_cell = dataclasses.replace(finding(), cell=3)
        assert json.loads(rendered("json", in_cell))[0]["cell"] == 3

    def test_it_is_ascii_whatever_the_message(self) -> None:
        text = rendered("json", finding(message="é \u2028 \ud800"))
        assert text.isascii()
        assert json.loads(text)[0]["message"] == "é \u2028 \ud800"


class TestJsonLines:
    def test_the_same_objects_one_a_line(self) -> None:
        findings = (snapshot_finding(), finding(message="two\nlines"))
        lines = rendered("jsonl", *findings).splitlines()
        assert [json.loads(line) for line in lines] == json.loads(rendered("json", *findings))

    def test_no_findings_are_nothing(self) -> None:
        assert rendered("jsonl") == ""


class TestGithub:
    def test_a_narration_is_one_command_of_several_lines(self) -> None:
        assert rendered("github", snapshot_finding()) == (
            "::error title=TCL701 state-dict-by-reference,file=train.py,line=7,endLine=7,col=16,endColumn=34"
            "::train.py:7:16: TCL701 `best` still shares memory with `model`, so later training changes it"
            "%0A1 train.py:7: shared here"
            "%0A2 train.py:10: written here: moves the parameters of `model`"
            "%0A3 train.py:11: read here"
            "%0Afix: best = copy.deepcopy(model.state_dict())\n"
        )

    @pytest.mark.parametrize(
        ("severity", "command"),
        [(Severity.ERROR, "::error "), (Severity.WARNING, "::warning "), (Severity.INFO, "::notice ")],
    )
    def test_severities_are_commands(self, severity: Severity, command: str) -> None:
        assert rendered("github", finding(severity=severity)).startswith(command)

    def test_several_lines_have_no_columns(self) -> None:
        line = rendered("github", finding(where=span(1, 5, 2, end_row=3)))
        assert ",line=1,endLine=3::" in line

    def test_messages_are_escaped(self) -> None:
        assert escape_data("100%\r\nof a:b,c") == "100%25%0D%0Aof a:b,c"

    def test_properties_are_escaped_further(self) -> None:
        assert escape_property("100%\r\nof a:b,c") == "100%25%0D%0Aof a%3Ab%2Cc"

    def test_what_is_escaped_already_is_escaped_again(self) -> None:
        assert escape_data("%0A") == "%250A"

    def test_a_file_name_cannot_forge_a_command(self) -> None:
        name = "a,line=9::b%\n::error ::.py"
        odd = finding(filename=name)
        line = render(report(odd, texts={name: "x"}), "github", Look())
        assert line.count("\n") == 1
        assert ",file=a%2Cline=9%3A%3Ab%25%0A%3A%3Aerror %3A%3A.py,line=1," in line

    def test_annotations_have_the_path_in_the_checkout(self) -> None:
        place = dataclasses.replace(source("train.py", "x"), annotated="sub/train.py", shown="../train.py")
        one = Report(
            files=(FileReport((finding(),), {"train.py": place}),), pages={}, version="1", source_root="file:///"
        )
        assert ",file=sub/train.py," in render(one, "github", Look())

    def test_steps_in_other_files_name_them(self) -> None:
        steps = (
            step(Role.SHARED, "shared here", span(1, 1, 2)),
            step(Role.WRITTEN, "written here", span(4, 1, 2), filename="other.py"),
        )
        assert "%0A2 other.py:4: written here" in rendered("github", finding(where=span(1, 1, 2), steps=steps))


def test_annotations_are_relative_to_the_workspace_of_the_job(
    project: Path, answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "sub").mkdir()
    (project / "sub" / "train.py").write_text("x\n")
    monkeypatch.chdir(project / "sub")
    analysis = {"train.py": (finding(filename="sub/train.py"),)}
    (project / "pyproject.toml").write_text("")
    assert ",file=train.py," in answer(".", "--output-format", "github", analysis=analysis).out
    monkeypatch.setenv("GITHUB_WORKSPACE", str(project))
    assert ",file=sub/train.py," in answer(".", "--output-format", "github", analysis=analysis).out
