"""The options of the test run: what CI relies on when it says that nothing was skipped."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from options import TESTS, needs_torch

SKIPPING = {
    "mark": "import pytest\n@pytest.mark.skip(reason='too slow')\ndef test_it(): pass\n",
    "condition": "import pytest\n@pytest.mark.skipif(True, reason='too slow')\ndef test_it(): pass\n",
    "call": "import pytest\ndef test_it(): pytest.skip('too slow')\n",
    "fixture": "import pytest\n@pytest.fixture\ndef f(): pytest.skip('too slow')\ndef test_it(f): pass\n",
    "file": "import pytest\npytest.skip('too slow', allow_module_level=True)\n",
    "import": "import pytest\npytest.importorskip('there_is_no_such_module', reason='too slow')\ndef test_it(): pass\n",
}
PASSING = {
    "passing": "def test_it(): pass\n",
    "expected_failure": "import pytest\n@pytest.mark.xfail(reason='a known limit')\ndef test_it(): assert False\n",
}
REFUSED = "skipping is not allowed under --no-skips"


def run_tests(directory: Path, programs: dict[str, str], *arguments: str) -> tuple[int, str]:
    """Run pytest over test files, with the options of this project and nothing else of it: exit code and output."""
    for name, program in programs.items():
        (directory / f"test_{name}.py").write_text(program)
    options = ["-p", "options", "--rootdir", str(directory), "--continue-on-collection-errors", "--color=no"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *arguments, str(directory)],
        cwd=directory,
        env=os.environ | {"PYTHONPATH": str(TESTS), "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The output of a run of all programs under `--no-skips`."""
    return run_tests(tmp_path_factory.mktemp("strict"), SKIPPING | PASSING, "--no-skips")[1]


@pytest.mark.parametrize("name", SKIPPING)
def test_a_skip_is_a_failure_that_says_why(strict: str, name: str) -> None:
    (line,) = [line for line in strict.splitlines() if line.startswith(f"test_{name}.py") and REFUSED in line]
    assert "too slow" in line


def test_nothing_else_fails(strict: str) -> None:
    assert strict.splitlines()[-1].strip("= ").startswith("1 failed, 1 passed, 1 xfailed, 5 errors in ")


def test_the_exit_code_of_a_run_with_a_skip_is_1(tmp_path: Path) -> None:
    assert run_tests(tmp_path, {"it": SKIPPING["call"]}, "--no-skips")[0] == 1


def test_without_the_option_a_skip_is_a_skip(tmp_path: Path) -> None:
    code, out = run_tests(tmp_path, SKIPPING | PASSING)
    assert (code, out.splitlines()[-1].strip("= ").partition(" in ")[0]) == (0, "1 passed, 6 skipped, 1 xfailed")


@pytest.mark.parametrize(
    ("program", "needed"),
    [
        ("import torch\n", True),
        ("from torch import nn\n", True),
        ("def f():\n    import numpy as np\n", True),
        ("from torchcopylint.knowledge.generate import rows\n", True),
        ("from torchcopylint.knowledge import generate\n", True),
        ("from running.runner import Runner\n", True),
        ("import torchcopylint\n", False),
        ("text = 'import torch'\n", False),
        ("from examples_marks import FAULTY\n", False),
    ],
)
def test_what_needs_torch(tmp_path: Path, program: str, needed: bool) -> None:
    path = tmp_path / "test_it.py"
    path.write_text(program)
    assert needs_torch(path) is needed


def test_a_file_needs_torch_if_a_module_of_the_tests_does() -> None:
    assert needs_torch(TESTS / "test_examples_torch.py")
    assert not needs_torch(TESTS / "test_examples.py")


def test_what_needs_torch_is_left_out_without_it_and_named(tmp_path: Path) -> None:
    code, out = run_tests(tmp_path, PASSING | {"torch": "import torch\ndef test_it(): pass\n"}, "--without-torch")
    assert (code, "1 passed, 1 xfailed" in out) == (0, True)
    (header,) = [line for line in out.splitlines() if line.startswith("without torch, left out: ")]
    assert "test_pages_torch.py" in header
