"""Notebooks on the command line: findings in their cells, in every format, and what becomes of broken ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Lint
from test_notebook import notebook

import torchcopylint

CELLS = (
    ("markdown", "# Training"),
    "%matplotlib inline\nimport torch\nfrom torch import nn\n!pip install \\\n  torch",
    "model = nn.Linear(2, 2)\noptimizer = torch.optim.SGD(model.parameters(), lr=0.1)\ndata = torch.ones(3, 1, 2)",
    "%%bash\nnvidia-smi",
    "if True:\n    %time best = model.state_dict()",
    "for x in data:\n    model(x).sum().backward()\n    optimizer.step()",
    "model.load_state_dict(best)",
)
PLACE = "train.ipynb:cell 5:2:18"


def prepared(project: Path, *cells: object, name: str = "train.ipynb", **rest: Any) -> None:
    (project / name).write_text(notebook(*cells, **rest), encoding="utf-8")


def concise(lint: Lint, *arguments: str, **given: Any) -> list[str]:
    """The places and codes of the findings."""
    out = lint("--output-format", "concise", "--quiet", *arguments, **given).stdout
    return [f"{line.partition(']: ')[0]}]" for line in out.splitlines()]


class TestFormats:
    def test_full_has_the_lines_of_the_cells(self, lint: Lint, project: Path) -> None:
        prepared(project, *CELLS)
        out = lint("--quiet").stdout
        assert out.startswith(f"{PLACE}: error[TCL701]: ")
        for part in (
            "   2 |     pass; best = model.state_dict()",
            "  --> train.ipynb:cell 6:3:5\n   3 |     optimizer.step()\n",
            "  --> train.ipynb:cell 7:1:1\n   1 | model.load_state_dict(best)\n",
        ):
            assert part in out

    def test_concise(self, lint: Lint, project: Path) -> None:
        prepared(project, *CELLS)
        assert concise(lint) == [f"{PLACE}: error[TCL701]"]

    @pytest.mark.parametrize("output_format", ["json", "jsonl"])
    def test_json_says_the_cell_of_every_step(self, lint: Lint, project: Path, output_format: str) -> None:
        prepared(project, *CELLS)
        found = json.loads(lint("--output-format", output_format).stdout)
        entry = found[0] if isinstance(found, list) else found
        assert (entry["cell"], entry["location"]) == (5, {"row": 2, "column": 18})
        assert [(step["cell"], step["location"]["row"]) for step in entry["related"]] == [(5, 2), (6, 3), (7, 1)]

    def test_github_says_in_the_message_what_no_line_of_the_file_can(self, lint: Lint, project: Path) -> None:
        prepared(project, *CELLS)
        out = lint("--output-format", "github").stdout
        assert "file=train.ipynb,line=1,endLine=1::" in out
        assert f"::{PLACE}: TCL701 " in out
        assert "2 train.ipynb:cell 6:3: written here" in out

    def test_sarif_has_the_cell_as_a_logical_location(self, lint: Lint, project: Path) -> None:
        prepared(project, *CELLS)
        (result,) = json.loads(lint("--output-format", "sarif").stdout)["runs"][0]["results"]
        (location,) = result["locations"]
        assert location["physicalLocation"]["region"]["startLine"] == 1
        assert location["logicalLocations"][0]["fullyQualifiedName"] == "cell 5:2:18"
        flow = [step["location"]["message"]["text"] for step in result["codeFlows"][0]["threadFlows"][0]["locations"]]
        assert [text.partition(": ")[0] for text in flow] == ["cell 5:2:18", "cell 6:3:5", "cell 7:1:1"]
        assert len(result["relatedLocations"]) == 2


class TestWhichFiles:
    def test_directories_are_searched_but_not_for_checkpoints(self, lint: Lint, project: Path) -> None:
        (project / "deep" / ".ipynb_checkpoints").mkdir(parents=True)
        prepared(project, *CELLS, name="deep/.ipynb_checkpoints/train-checkpoint.ipynb")
        prepared(project, *CELLS, name="deep/train.ipynb")
        assert lint("--show-files").stdout == "deep/train.ipynb\n"

    def test_standard_input_is_one_if_its_name_is(self, lint: Lint, project: Path) -> None:
        text = notebook(*CELLS)
        assert concise(lint, "-", "--stdin-filename", "train.ipynb", stdin=text) == [f"{PLACE}: error[TCL701]"]

    def test_per_file_ignores_and_the_api(self, lint: Lint, project: Path) -> None:
        prepared(project, *CELLS)
        assert concise(lint, "--per-file-ignores", "*.ipynb:TCL7") == []
        (found,) = torchcopylint.check_source(notebook(*CELLS), "train.ipynb")
        assert (found.cell, found.statement.start.row, found.steps[-1].cell) == (5, 2, 7)

    def test_a_byte_order_mark_is_none_of_the_json(self, lint: Lint, project: Path) -> None:
        (project / "train.ipynb").write_bytes(b"\xef\xbb\xbf" + notebook(*CELLS).encode())
        assert concise(lint) == [f"{PLACE}: error[TCL701]"]


class TestComments:
    READ = "import torch\nx = torch.ones(2)\ny = x.data{}\nprint(y)"

    @pytest.mark.parametrize(
        "cells",
        [
            (READ.format("  # torchcopylint: ignore[TCL104]"),),
            (READ.format("  # noqa: TCL104"),),
            (READ.replace("y = ", "# torchcopylint: ignore[TCL104]\ny = ").format(""),),
            (READ.format(""), "# torchcopylint: ignore-file[TCL104]"),
        ],
    )
    def test_they_suppress(self, lint: Lint, project: Path, cells: tuple[str, ...]) -> None:
        prepared(project, *cells)
        assert concise(lint) == []

    def test_one_at_the_end_of_a_cell_does_not_reach_into_the_next(self, lint: Lint, project: Path) -> None:
        prepared(project, "import torch\nx = torch.ones(2)\n# torchcopylint: ignore[TCL104]", "y = x.data\nprint(y)")
        assert concise(lint) == [
            "train.ipynb:cell 1:3:25: warning[TCL002]",
            "train.ipynb:cell 2:1:5: warning[TCL104]",
        ]

    def test_questions_are_answered(self, lint: Lint, project: Path) -> None:
        prepared(project, "import torch\nx = torch.ones(2)", "x\n# torchcopylint: reveal[x]")
        assert concise(lint) == ["train.ipynb:cell 2:2:25: info[TCL006]"]


def test_a_result_that_a_cell_shows_is_not_dropped(lint: Lint, project: Path) -> None:
    prepared(project, "import torch\nx = torch.ones(2)", "x.abs()", "x.exp()\nx.sin()", "x.cos();")
    assert concise(lint) == ["train.ipynb:cell 3:1:1: error[TCL602]", "train.ipynb:cell 4:1:1: error[TCL602]"]


def test_fingerprints_do_not_depend_on_cells_before() -> None:
    text = "import torch\nx = torch.ones(2)\ny = x.data\nprint(y)"
    (one,) = torchcopylint.check_source(notebook(text), "a.ipynb")
    (two,) = torchcopylint.check_source(notebook("z = 1", ("markdown", "x"), text), "a.ipynb")
    assert (one.fingerprint, one.cell, two.cell) == (two.fingerprint, 1, 3)


class TestBroken:
    def test_a_cell_that_is_no_python_does_not_keep_the_others_from_being_checked(
        self, lint: Lint, project: Path
    ) -> None:
        prepared(project, *CELLS[:5], "x = = 3", *CELLS[5:])
        assert concise(lint) == ["train.ipynb:cell 5:2:18: error[TCL701]", "train.ipynb:cell 6:1:5: error[TCL000]"]
        done = lint("--select", "TCL000")
        assert done.returncode == 1
        assert "in `x = = 3`; only this cell is left out, the others are checked" in done.stdout

    @pytest.mark.parametrize("text", ["", "x = 1\n", "[]", '{"cells": [}', "\ufeff"])
    def test_what_is_no_notebook_is_an_error(self, lint: Lint, project: Path, text: str) -> None:
        (project / "train.ipynb").write_text(text, encoding="utf-8")
        done = lint("--output-format", "json")
        (found,) = json.loads(done.stdout)
        assert (done.returncode, done.stderr, found["code"], found["cell"]) == (1, "", "TCL000", None)
        assert "it is no notebook" in found["message"]

    def test_another_language_has_no_findings(self, lint: Lint, project: Path) -> None:
        prepared(project, "x <- 1", metadata={"language_info": {"name": "R"}})
        assert lint().stdout == "No findings in 1 file.\n"


class TestExplain:
    @pytest.mark.parametrize("place", ["train.ipynb:5:2", "train.ipynb:cell 5:2", PLACE])
    def test_a_line_of_a_cell(self, lint: Lint, project: Path, place: str) -> None:
        prepared(project, *CELLS)
        out = lint("explain", place).stdout
        assert out.startswith("train.ipynb:cell 5:2 at module level: ")
        assert f"\n{PLACE}: error[TCL701]: " in out

    def test_a_step(self, lint: Lint, project: Path) -> None:
        prepared(project, *CELLS)
        out = lint("explain", "train.ipynb:7:1").stdout
        assert out.startswith("train.ipynb:cell 7:1 at module level: model.load_state_dict(best)\n")
        assert f"A step of findings on other lines:\n  {PLACE}: " in out

    def test_a_comment_that_hides_is_named_by_its_cell(self, lint: Lint, project: Path) -> None:
        prepared(project, "import torch\nx = torch.ones(2)", TestComments.READ.format("  # noqa: TCL104"))
        assert "hidden: a comment on line 3 of cell 2 hides it" in lint("explain", "train.ipynb:2:3").stdout

    @pytest.mark.parametrize(
        ("place", "words"),
        [
            ("train.ipynb:3", "name the cell as well"),
            ("train.ipynb:3:4", "cell 3 has 3 lines, and no line 4"),
            ("train.ipynb:1:1", "cell 1 is not there, or has no Python"),
            ("train.ipynb:99:1", "cell 99 is not there, or has no Python"),
        ],
    )
    def test_a_place_that_is_none(self, lint: Lint, project: Path, place: str, words: str) -> None:
        prepared(project, *CELLS)
        done = lint("explain", place)
        assert done.returncode == 2
        assert words in done.stderr
