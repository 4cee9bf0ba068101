"""What several test files share: running the command line, and standing in for the analysis."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from example_findings import ScriptedAnalysis
from options import (  # noqa: F401  (pytest takes hooks from here)
    pytest_addoption,
    pytest_ignore_collect,
    pytest_make_collect_report,
    pytest_report_header,
    pytest_runtest_makereport,
)

from torchcopylint.cli.main import run

UNUSED = "x = 1  # torchcopylint: ignore[TCL104]\n"
"""A file with one warning that needs no rule: TCL002."""

# What would change the output, wherever the tests run.
_STEERING = ("NO_COLOR", "FORCE_COLOR", "GITHUB_WORKSPACE", "TERM")


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _STEERING:
        monkeypatch.delenv(name, raising=False)
    # The user's own cache is none of the tests' business; those of the cache say where theirs is.
    monkeypatch.setenv("TORCHCOPYLINT_NO_CACHE", "1")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory that is the working directory."""
    directory = tmp_path / "project"
    directory.mkdir()
    monkeypatch.chdir(directory)
    return directory


def write(project: Path, **files: str) -> None:
    """Write files: `train_py="..."` is the text of `train.py`."""
    for name, text in files.items():
        (project / name.replace("_", ".")).write_text(text)


Lint = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def lint(project: Path) -> Lint:
    """Run the command line in a process of its own, in `project`."""

    def call(*arguments: str, stdin: str | bytes = "", **environment: str) -> subprocess.CompletedProcess[str]:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        done = subprocess.run(
            [sys.executable, "-m", "torchcopylint", *arguments],
            input=data,
            capture_output=True,
            cwd=project,
            env=os.environ | environment,
            timeout=120,
            check=False,
        )
        return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())

    return call


class Answered:
    """What a run in this process came to."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err


Answer = Callable[..., Answered]


@pytest.fixture
def answer(project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Answer:
    """Run the command line in this process, with given findings in the place of the analysis.

    `answer("train.py", analysis={"train.py": (finding,)})`; a file that is not named has none.
    """

    def call(*arguments: str, analysis: dict[str, object] | None = None) -> Answered:
        monkeypatch.setattr("torchcopylint.project.examined.analyse", ScriptedAnalysis(analysis or {}))
        code = run(arguments)
        streams = capsys.readouterr()
        return Answered(code, streams.out, streams.err)

    return call
