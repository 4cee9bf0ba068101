"""The benchmarks run and say what they measure; what they measure is no matter of tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_a_table_has_a_row_for_everything_that_takes_part(tmp_path: Path) -> None:
    files, tools = tmp_path / "src", tmp_path / "tools"
    files.mkdir()
    tools.mkdir()
    (files / "a.py").write_text("import torch\nx = torch.ones(1)\n")
    (tools / "ruff").write_text("#!/bin/sh\n")
    (tools / "ruff").chmod(0o755)
    command = [sys.executable, "-m", "benchmarks", str(files), "--rounds", "1", "--tools", str(tools)]
    out = subprocess.check_output(command, text=True, cwd=ROOT)
    assert "`src`: 1 files, 2 lines" in out
    rows = [line.split("|")[1].strip() for line in out.splitlines() if line.startswith("| ")][1:]
    assert rows == [
        "ast.parse",
        "libcst.parse_module",
        "torchcopylint",
        "torchcopylint --no-screen",
        "torchcopylint, warm cache",
        "ruff",
    ]


def test_what_verification_costs_is_told_beside_the_import_of_torch(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import torch\nx = torch.ones(1)\nx.clamp(0)\nprint(x)\n")
    command = [sys.executable, "-m", "benchmarks", "--verify", str(tmp_path)]
    out = subprocess.check_output(command, text=True, cwd=ROOT)
    assert "1 findings" in out
    rows = [line.split("|")[1].strip() for line in out.splitlines() if line.startswith("| ")][2:]
    assert rows == ["importing torch, once for all findings", "a finding, median"]
