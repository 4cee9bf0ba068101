"""The benchmarks run and say what they measure; what they measure is no matter of tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks import growth
from benchmarks.measure import Cost

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


def test_each_nth_file_is_taken(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"m{number}.py").write_text("x = 1\n")
    command = [sys.executable, "-m", "benchmarks", str(tmp_path), "--rounds", "1", "--every", "2"]
    assert "1 of 2 files, 3 files, 3 lines" in subprocess.check_output(command, text=True, cwd=ROOT)


def test_growth_is_a_table_and_a_plot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock is replaced: what is drawn follows from what was measured."""
    monkeypatch.setattr(growth, "cost", lambda command: Cost(1 + Path(command[-1]).read_text().count("\n"), 0, 50))
    plot = tmp_path / "growth.svg"
    growth.growth(str(plot))
    root = ElementTree.fromstring(plot.read_text())
    texts = {element.text for element in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"1000", "100000", "80", "seconds of processor time, by lines"} <= texts
    assert len(list(root.iter("{http://www.w3.org/2000/svg}polyline"))) == 4
