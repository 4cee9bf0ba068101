"""The scripts in `examples/` under the real command line: exactly the planted faults, each with its story."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from examples_marks import EXAMPLES, FAULTY, RIGHT, ROOT, Planted, all_planted, planted

from torchcopylint.base.finding import Role
from torchcopylint.pages import load_pages

MISSED: dict[tuple[str, str], str] = {
    ("augmentation.py", "TCL505"): "the parameter `image` is an array only by its callers, through a field of a class",
}
"""Planted faults that the linter does not find, and why not. The test fails for an entry that is found."""


@pytest.fixture(scope="module")
def found() -> list[dict[str, Any]]:
    """What the command line reports on `examples/` with default settings, as JSON."""
    done = subprocess.run(
        [sys.executable, "-m", "torchcopylint", "check", "--isolated", "--output-format", "json", str(EXAMPLES)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    findings: list[dict[str, Any]] = json.loads(done.stdout)
    return findings


def reported(findings: list[dict[str, Any]], folder: str) -> Counter[Planted]:
    return Counter(
        (Path(f["filename"]).name, f["location"]["row"], f["code"])
        for f in findings
        if f["filename"].startswith(f"examples/{folder}/")
    )


def test_there_is_a_right_twin_for_each_faulty_script() -> None:
    assert [path.name for path in FAULTY] == [path.name for path in RIGHT]
    assert 6 <= len(FAULTY) <= 8


@pytest.mark.parametrize("path", FAULTY, ids=lambda path: path.stem)
def test_scripts_have_the_length_of_scripts(path: Path) -> None:
    assert 60 <= len(path.read_text().splitlines()) <= 150


@pytest.mark.parametrize("path", FAULTY, ids=lambda path: path.stem)
def test_each_faulty_script_has_planted_faults(path: Path) -> None:
    codes = {code for _, _, code in planted(path)}
    assert len(codes) >= 3
    assert codes <= load_pages().keys()


def test_exactly_the_planted_faults_are_reported(found: list[dict[str, Any]]) -> None:
    expected = Counter({fault: count for fault, count in all_planted().items() if (fault[0], fault[2]) not in MISSED})
    assert reported(found, "faulty") == expected


def test_every_known_miss_is_planted() -> None:
    assert MISSED.keys() <= {(name, code) for name, _, code in all_planted()}


def test_nothing_is_reported_in_the_right_twins(found: list[dict[str, Any]]) -> None:
    assert reported(found, "right") == Counter()


@pytest.mark.parametrize("path", RIGHT, ids=lambda path: path.stem)
def test_right_twins_mark_nothing(path: Path) -> None:
    assert planted(path) == Counter()


def test_every_finding_tells_the_story_of_its_page(found: list[dict[str, Any]]) -> None:
    """Its steps have the roles that a bad example of its page has, and one of them is the blamed place."""
    for finding in found:
        page = load_pages()[finding["code"]]
        stories = [
            {mark.what for mark in example.marks if mark.what in set(Role)}
            | {page.blame(mark.variant).value for mark in example.marks if mark.what == "finding"}
            for example in page.examples
            if example.kind == "bad"
        ]
        steps = finding["related"]
        assert {step["role"] for step in steps} in stories, finding
        assert (finding["location"], finding["end_location"]) in [(s["location"], s["end_location"]) for s in steps]
        assert all(step["message"] for step in steps)
