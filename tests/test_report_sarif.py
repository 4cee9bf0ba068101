"""SARIF: valid by the schema, and with what code scanning makes use of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from conftest import Answer, Lint
from example_findings import TRAINING, finding, report, snapshot_finding, span, step

from torchcopylint.analysis import OverLimit
from torchcopylint.base.finding import Finding, Role, Severity
from torchcopylint.pages import load_pages
from torchcopylint.report import render
from torchcopylint.report.model import Look

SCHEMA = json.loads((Path(__file__).parent / "sarif-2.1.0.json").read_text(encoding="utf-8"))
PAGES = load_pages()


def validated(text: str) -> dict[str, Any]:
    """The only run of a log that the schema accepts."""
    log = json.loads(text)
    jsonschema.validators.validator_for(SCHEMA)(SCHEMA).validate(log)
    (run,) = log["runs"]
    assert isinstance(run, dict)
    return run


def sarif(*findings: Finding, texts: dict[str, str] | None = None) -> dict[str, Any]:
    return validated(render(report(*findings, texts=texts), "sarif", Look()))


def test_the_schema_refuses_what_is_wrong() -> None:
    with pytest.raises(jsonschema.ValidationError):
        validated('{"version": "2.1.0", "runs": [{"tool": {"driver": {}}}]}')


def test_a_log_without_findings_is_valid() -> None:
    run = sarif()
    assert run["results"] == []
    assert run["invocations"][0]["executionSuccessful"] is True


def test_the_log_names_its_schema_and_version() -> None:
    log = json.loads(render(report(), "sarif", Look()))
    assert log["version"] == "2.1.0"
    assert log["$schema"] == SCHEMA["id"]


def test_columns_count_code_points_and_paths_are_relative_to_the_sources() -> None:
    run = sarif(snapshot_finding())
    assert run["columnKind"] == "unicodeCodePoints"
    assert run["originalUriBaseIds"] == {"%SRCROOT%": {"uri": "file:///project/"}}
    place = run["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "train.py", "uriBaseId": "%SRCROOT%"}
    assert place["region"] == {
        "startLine": 7,
        "startColumn": 16,
        "endLine": 7,
        "endColumn": 34,
        "snippet": {"text": "model.state_dict()"},
    }


def test_a_result_names_its_rule_by_id_and_index() -> None:
    run = sarif(snapshot_finding())
    result = run["results"][0]
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"] == "TCL701"


@pytest.mark.parametrize(
    ("severity", "level"), [(Severity.ERROR, "error"), (Severity.WARNING, "warning"), (Severity.INFO, "note")]
)
def test_severities_are_levels(severity: Severity, level: str) -> None:
    assert sarif(finding(severity=severity))["results"][0]["level"] == level


def test_fingerprints_do_not_depend_on_the_line() -> None:
    assert sarif(snapshot_finding())["results"][0]["partialFingerprints"] == {
        "primaryLocationLineHash": "0123456789abcdef0123456789abcdef:1",
        "torchcopylint/v1": "0123456789abcdef0123456789abcdef",
    }


def test_the_narration_is_a_code_flow_in_execution_order() -> None:
    (flow,) = sarif(snapshot_finding())["results"][0]["codeFlows"]
    steps = flow["threadFlows"][0]["locations"]
    assert [(item["executionOrder"], item["kinds"], item["location"]["message"]["text"]) for item in steps] == [
        (1, ["shared"], "shared here"),
        (2, ["written"], "written here: moves the parameters of `model`"),
        (3, ["read"], "read here"),
    ]


def test_the_other_steps_are_related_locations() -> None:
    related = sarif(snapshot_finding())["results"][0]["relatedLocations"]
    assert [(item["id"], item["message"]["text"]) for item in related] == [
        (2, "2 written here: moves the parameters of `model`"),
        (3, "3 read here"),
    ]


def test_a_finding_of_one_step_has_no_flow() -> None:
    result = sarif(finding())["results"][0]
    assert "codeFlows" not in result
    assert "relatedLocations" not in result


def test_a_step_in_another_file_has_its_own_place() -> None:
    steps = (
        step(Role.SHARED, "shared here", span(1, 1, 2)),
        step(Role.WRITTEN, "written here", span(1, 1, 2), filename="b.py"),
    )
    run = sarif(finding(where=span(1, 1, 2), steps=steps), texts={"train.py": "x", "b.py": "x"})
    (related,) = run["results"][0]["relatedLocations"]
    assert related["physicalLocation"]["artifactLocation"]["uri"] == "b.py"


def test_every_rule_is_described_from_its_page() -> None:
    rules = sarif()["tool"]["driver"]["rules"]
    assert [(rule["id"], rule["name"], rule["helpUri"]) for rule in rules] == [
        (page.code, page.name, page.url) for page in PAGES.values()
    ]
    rule = rules[list(PAGES).index("TCL701")]
    assert rule["help"]["markdown"] == PAGES["TCL701"].body
    assert PAGES["TCL701"].url in rule["help"]["text"]
    assert rule["fullDescription"]["text"] == PAGES["TCL701"].summary
    assert rule["defaultConfiguration"] == {"enabled": True, "level": "error"}
    assert rule["properties"]["precision"] in ("high", "medium", "low")
    assert "pytorch" in rule["properties"]["tags"]


def test_a_rule_that_is_off_by_default_says_so() -> None:
    rules = sarif()["tool"]["driver"]["rules"]
    off = [rule["id"] for rule in rules if not rule["defaultConfiguration"]["enabled"]]
    assert off == [page.code for page in PAGES.values() if not page.enabled()]
    assert off


def test_files_that_were_not_checked_are_notifications(project: Path, answer: Answer) -> None:
    for name in ("a.py", "b.py", "c.py"):
        (project / name).write_text("x\n")
    (project / "a.py").write_bytes(b"\xff")
    analysis = {"b.py": OverLimit("nesting", 9, 3, "--max-nesting", 1), "c.py": KeyError("lost")}
    run = validated(answer(".", "nope.py", "--output-format", "sarif", analysis=analysis).out)
    (invocation,) = run["invocations"]
    assert invocation["executionSuccessful"] is False
    assert invocation["exitCode"] == 2
    notifications = invocation["toolExecutionNotifications"]
    assert [item.get("descriptor", {}).get("id") for item in notifications] == ["TCL000", "TCL004", "TCL005", None]
    described = run["tool"]["driver"]["notifications"]
    assert all(described[item["descriptor"]["index"]]["id"] == item["descriptor"]["id"] for item in notifications[:3])
    assert [item["level"] for item in notifications] == ["error", "warning", "error", "error"]
    assert notifications[3]["message"]["text"] == "the path does not exist: nope.py"
    assert [result["ruleId"] for result in run["results"]] == ["TCL000", "TCL004", "TCL005"]


def test_suppressed_findings_are_left_out(project: Path, answer: Answer) -> None:
    (project / "a.py").write_text("y = x.data  # torchcopylint: ignore[TCL104]\n")
    run = validated(answer("a.py", "--output-format", "sarif", analysis={"a.py": (finding(filename="a.py"),)}).out)
    assert run["results"] == []


def test_paths_are_relative_to_the_checkout_whatever_the_working_directory(
    project: Path, answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / ".git").mkdir()
    (project / "sub dir").mkdir()
    (project / "sub dir" / "pyproject.toml").write_text("[tool.torchcopylint]\n")
    (project / "sub dir" / "train.py").write_text(TRAINING)
    monkeypatch.chdir(project / "sub dir")
    done = answer(".", "--output-format", "sarif", analysis={"train.py": (snapshot_finding(),)})
    run = validated(done.out)
    assert run["originalUriBaseIds"]["%SRCROOT%"]["uri"] == project.as_uri() + "/"
    artifact = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert artifact == {"uri": "sub%20dir/train.py", "uriBaseId": "%SRCROOT%"}


def test_a_file_outside_the_checkout_has_an_absolute_path(project: Path, tmp_path: Path, lint: Lint) -> None:
    (project / ".git").mkdir()
    (project / "a.py").write_text("x = 1\n")
    outside = tmp_path / "zz.py"
    outside.write_text("x = 1  # torchcopylint: ignore\n")
    run = validated(lint("a.py", str(outside), "--output-format", "sarif").stdout)
    artifact = run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]
    assert artifact == {"uri": outside.as_uri()}


def test_standard_input_is_valid_too(lint: Lint) -> None:
    run = validated(lint("-", "--output-format", "sarif", stdin="x = 1  # torchcopylint: ignore\n").stdout)
    assert run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "%3Cstdin%3E"
