"""The hook, run by the real pre-commit in temporary repositories.

pre-commit installs the hook from a repository of this checkout into an environment of its own, as it does for users.
The packages that it needs are those of the environment that runs the tests, so no package index is asked.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

CHECKOUT = Path(__file__).resolve().parent.parent
PACKAGED = ("torchcopylint", "rules", "pyproject.toml", "README.md", "LICENSE", ".pre-commit-hooks.yaml")
BLANKET = "x = 1  # torchcopylint: ignore\n"

Commit = Callable[..., subprocess.CompletedProcess[str]]


def git(directory: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    return subprocess.check_output(["git", *identity, *arguments], cwd=directory, text=True)


@pytest.fixture(scope="module")
def hook_repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A git repository with what a release of this project contains."""
    directory = tmp_path_factory.mktemp("hook")
    for name in PACKAGED:
        here = CHECKOUT / name
        if here.is_dir():
            shutil.copytree(here, directory / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(here, directory / name)
    git(directory, "init", "--quiet")
    git(directory, "add", "--all")
    git(directory, "commit", "--quiet", "--message", "all")
    return directory


@pytest.fixture(scope="module")
def pre_commit_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pre-commit keeps the environment of the hook, made once for all tests here."""
    return tmp_path_factory.mktemp("pre-commit")


@pytest.fixture
def commit(tmp_path: Path, hook_repository: Path, pre_commit_home: Path) -> Commit:
    """Run the hook over files of a new repository: `commit({"a.py": "..."})`, with arguments for the hook."""

    def run(files: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
        directory = tmp_path / "user"
        directory.mkdir()
        hook = {"id": "torchcopylint"} | ({"args": list(arguments)} if arguments else {})
        revision = git(hook_repository, "rev-parse", "HEAD").strip()
        config = {"repos": [{"repo": str(hook_repository), "rev": revision, "hooks": [hook]}]}
        for name, text in files.items() | {".pre-commit-config.yaml": yaml.safe_dump(config)}.items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        git(directory, "init", "--quiet")
        git(directory, "add", "--all")
        environment = {
            "PRE_COMMIT_HOME": str(pre_commit_home),
            "PYTHONPATH": sysconfig.get_path("purelib"),
            "PIP_NO_INDEX": "1",
            "PIP_NO_BUILD_ISOLATION": "0",  # pip reads this as "no isolation"
        }
        return subprocess.run(
            [sys.executable, "-m", "pre_commit", "run", "--color", "never", "--verbose"],
            cwd=directory,
            env=os.environ | environment,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_no_python_file_is_nothing_to_do(commit: Commit) -> None:
    done = commit({"README.md": "text"})
    assert done.returncode == 0
    assert "(no files to check)Skipped" in done.stdout


def test_one_clean_file_passes(commit: Commit) -> None:
    done = commit({"a.py": "x = 1\n"})
    assert done.returncode == 0, done.stdout
    assert "Passed" in done.stdout
    assert "No findings in 1 file." in done.stdout


def test_many_files_are_checked_in_one_run(commit: Commit) -> None:
    done = commit({f"package/module_{number:03}.py": "x = 1\n" for number in range(300)} | {"package/stub.pyi": ""})
    assert done.returncode == 0, done.stdout
    assert "No findings in 301 files." in done.stdout


def test_a_faulty_file_fails(commit: Commit) -> None:
    done = commit({"a.py": BLANKET, "b.py": "x = 1\n"})
    assert done.returncode == 1
    assert "- exit code: 1" in done.stdout
    assert "a.py:1:8: warning[TCL001]: " in done.stdout


def test_a_file_with_a_syntax_error_fails_and_the_others_are_checked(commit: Commit) -> None:
    done = commit({"a.py": "def f(:\n", "b.py": BLANKET})
    assert done.returncode == 1
    assert "error[TCL000]: the file cannot be read or parsed: " in done.stdout
    assert "b.py:1:8: warning[TCL001]: " in done.stdout
    assert "Traceback" not in done.stdout


def test_excludes_are_honoured_for_the_files_that_git_names(commit: Commit) -> None:
    config = '[tool.torchcopylint]\nexclude = ["vendored"]\n'
    done = commit({"vendored/a.py": BLANKET, "pyproject.toml": config})
    assert done.returncode == 0, done.stdout


def test_arguments_reach_the_tool(commit: Commit) -> None:
    done = commit({"a.py": BLANKET}, "--ignore", "TCL001,TCL002")
    assert done.returncode == 0, done.stdout


def test_wrong_configuration_fails_with_its_message(commit: Commit) -> None:
    done = commit({"a.py": "x = 1\n", "pyproject.toml": "[tool.torchcopylint]\nselct = []\n"})
    assert done.returncode == 1
    assert "- exit code: 2" in done.stdout
    assert "has no key `selct`; did you mean `select`?" in done.stdout
