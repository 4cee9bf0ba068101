"""`torchcopylint explain FILE:LINE`: every finding there with what became of it, or what the engine knows."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Lint, write

TRAIN = """\
import torch


def train(model, data, helper):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    best = model.state_dict()
    for x in data:
        loss = model(helper(x)).sum()
        loss.backward()
        optimizer.step()
    model.load_state_dict(best)
"""
DATA = "import torch\nx = torch.ones(2)\ny = x.data{comment}\nprint(y)\n"
RECURSIVE = "def f(x):\n    return f(x)\n"


def explained(lint: Lint, place: str) -> str:
    done = lint("explain", place)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


class TestWithAFinding:
    def test_it_is_told_with_its_story_and_advice(self, lint: Lint, project: Path) -> None:
        write(project, train_py=TRAIN)
        out = explained(lint, "train.py:6")
        assert out.startswith("train.py:6 in `train`: best = model.state_dict()\n\ntrain.py:6:12: error[TCL701]: ")
        for words in (
            "1 shared here",
            "2 written here",
            "3 read here",
            "fix: best = copy.deepcopy(model.state_dict())",
        ):
            assert words in out
        assert "What is known" not in out

    @pytest.mark.parametrize("row", [10, 11])
    def test_a_line_that_is_a_step_of_another_finding_names_it(self, lint: Lint, project: Path, row: int) -> None:
        write(project, train_py=TRAIN)
        out = explained(lint, f"train.py:{row}")
        assert "A step of findings on other lines:\n  train.py:6:12: error[TCL701]: " in out

    def test_a_report_about_a_suppression_is_a_finding_too(self, lint: Lint, project: Path) -> None:
        write(project, a_py="x = 1  # torchcopylint: ignore[TCL104]\n")
        assert "a.py:1:32: warning[TCL002]" in explained(lint, "a.py:1")


class TestWithAHiddenFinding:
    def hidden(self, lint: Lint, place: str) -> str:
        out = explained(lint, place)
        assert "No finding is shown here." in out
        return out.partition("Findings that are not shown:\n")[2]

    @pytest.mark.parametrize(
        ("comment", "why"),
        [
            ("  # torchcopylint: ignore[TCL104]", "a comment on line 3 hides it: TCL104"),
            ("  # noqa: TCL104", "a comment on line 3 hides it: # noqa: TCL104"),
            ("\n# torchcopylint: ignore-file[TCL1]", "a comment on line 4 hides it: TCL1"),
        ],
    )
    def test_by_a_comment(self, lint: Lint, project: Path, comment: str, why: str) -> None:
        write(project, a_py=DATA.format(comment=comment))
        assert "warning[TCL104]: `x.data` shares memory" in self.hidden(lint, "a.py:3")
        assert f"    hidden: {why}\n" in self.hidden(lint, "a.py:3")

    @pytest.mark.parametrize(
        ("settings", "why"),
        [
            ('ignore = ["TCL104"]', "TCL104 is ignored"),
            ('select = ["TCL7"]', "TCL104 is not selected"),
            ('preset = "bugs"', "the preset bugs leaves it out; `--select TCL104` or `--preset strict` shows it"),
            ('per-file-ignores = {"*.py" = ["TCL1"]}', "TCL104 is ignored in this file, by per-file-ignores"),
        ],
    )
    def test_by_the_selection(self, lint: Lint, project: Path, settings: str, why: str) -> None:
        (project / "pyproject.toml").write_text(f"[tool.torchcopylint]\n{settings}\n")
        write(project, a_py=DATA.format(comment=""))
        assert f"    hidden: {why}\n" in self.hidden(lint, "a.py:3")

    def test_by_its_confidence(self, lint: Lint, project: Path) -> None:
        write(project, a_py="import torch\ndef f(loss):\n    total = loss.data\n    return total\n")
        (project / "pyproject.toml").write_text('[tool.torchcopylint]\nmin-confidence = "high"\n')
        out = self.hidden(lint, "a.py:3")
        assert "    hidden: its confidence is " in out
        assert ", and min-confidence is high\n" in out

    def test_by_another_finding_that_says_more(self, lint: Lint, project: Path) -> None:
        text = "from torch import nn\na, b = nn.Linear(2, 2), nn.Linear(2, 2)\na.weight.data = b.weight.data\n"
        text += "b.weight.data.zero_()\n"
        write(project, a_py=text)
        shown, _, hidden = explained(lint, "a.py:3").partition("Findings that are not shown:\n")
        assert "warning[TCL102]" in shown
        assert "warning[TCL103]" in hidden
        assert "hidden: TCL102 says more about the same statement: " in hidden


class TestWithoutAFinding:
    def test_it_says_which_values_are_known_and_which_are_not(self, lint: Lint, project: Path) -> None:
        write(project, train_py=TRAIN)
        out = explained(lint, "train.py:8")
        assert "No finding is shown here.\n\nNothing is known of:\n" in out
        unknown, _, known = out.partition("Nothing is known of:\n")[2].partition("\nWhat is known:\n")
        assert {"  `helper`", "  `x`", "  `helper(x)`"} <= set(unknown.splitlines())
        assert "  `model` is a module (likely, by its use)" in known

    def test_it_says_which_facts_were_stated(self, lint: Lint, project: Path) -> None:
        write(project, train_py=TRAIN)
        out = explained(lint, "train.py:10")
        assert "Facts stated here:\n  Write: name `optimizer`, op `step()`, form `step`" in out
        assert "Facts stated here:\n  none, so no rule has anything to report here\n" in explained(lint, "train.py:5")

    def test_it_says_what_was_given_up_in_the_function(self, lint: Lint, project: Path) -> None:
        write(project, a_py=RECURSIVE)
        assert "Given up in `f`:\n  " in explained(lint, "a.py:2")

    def test_a_line_without_code_is_no_error(self, lint: Lint, project: Path) -> None:
        write(project, train_py=TRAIN)
        assert explained(lint, "train.py:2").startswith("train.py:2 at module level: (empty)\n")


class TestWhatIsAsked:
    def test_rules_and_lines_may_stand_together_and_a_column_is_left_aside(self, lint: Lint, project: Path) -> None:
        write(project, train_py=TRAIN)
        out = lint("explain", "TCL000", "train.py:6:12").stdout
        assert "# unreadable-file" in out
        assert "train.py:6 in `train`: " in out

    @pytest.mark.parametrize(
        ("place", "message"),
        [
            ("gone.py:1", "gone.py: it cannot be read or parsed: no such file or directory"),
            ("a.py:9", "a.py: it has 2 lines, and no line 9"),
            ("a.py:0", "a.py: it has 2 lines, and no line 0"),
            ("broken.py:1", "broken.py: it cannot be read or parsed: "),
        ],
    )
    def test_what_cannot_be_explained_is_2(self, lint: Lint, project: Path, place: str, message: str) -> None:
        write(project, a_py="x = 1\n", broken_py="def f(:\n")
        done = lint("explain", place)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr.startswith(f"Error: {message}")
