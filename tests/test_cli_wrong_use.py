"""Answers to wrong use: exit code 2, naming what is wrong and the nearest right word."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Lint

from torchcopylint.base.suggest import distance, nearest


class TestWrongUse:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("--preset", "strct"), "Invalid value for '--preset': there is no `strct`; did you mean `strict`?"),
            (("--output-format", "jsn"), "'--output-format': there is no `jsn`; did you mean `json`?"),
            (("--fail-on", "errors"), "'--fail-on': there is no `errors`; did you mean `error`?"),
            (("--min-confidence", "hihg"), "'--min-confidence': there is no `hihg`; did you mean `high`?"),
            (("--color", "sometimes"), "'--color': there is no `sometimes`; it is one of auto, always, never"),
            (("--select", "TCL140"), "Invalid value for --select: there is no rule `TCL140`; did you mean `TCL104`?"),
            (("--ignore", "TCL104,data-raed"), "--ignore: there is no rule `data-raed`; did you mean `data-read`?"),
            (("--extend-select", "tlc1"), "--extend-select: there is no rule `tlc1`"),
            (("--per-file-ignores", "a.py:TLC104"), "--per-file-ignores: there is no rule `TLC104`; did you mean"),
            (("--per-file-ignores", "TCL104"), "`TCL104` is not of the form PATTERN:RULES"),
            (("--exclude", "!"), "--exclude: Invalid git pattern: '!'"),
            (("--max-nesting", "0"), "'--max-nesting'"),
            (("--selct", "TCL1"), "--select"),
            (("--config", "nope.toml"), "Error: nope.toml: cannot be read: No such file or directory"),
            (("--output-file", "no/such/x.json"), "cannot write no/such/x.json: there is no directory"),
            (("--output-file", "."), "cannot write .: it is a directory"),
            (("explian",), "no such file or directory: explian; did you mean `explain`?"),
        ],
    )
    def test_a_wrong_value_is_2_and_names_the_nearest_right_one(
        self, lint: Lint, arguments: tuple[str, ...], message: str
    ) -> None:
        done = lint(*arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert message in done.stderr
        assert "Traceback" not in done.stderr

    @pytest.mark.parametrize(
        ("arguments", "named"),
        [
            (("--isolated", "--config", "x.toml"), ("--isolated", "--config")),
            (("--show-settings", "--show-files"), ("--show-settings", "--show-files")),
            (("--select", "TCL1", "--ignore", "tcl1"), ("--select", "--ignore", "TCL1")),
            (("--extend-select", "data-read", "--ignore", "TCL7,data-read"), ("--extend-select", "--ignore")),
            (("-", "a.py"), ("`-`", "`a.py`")),
            (("--stdin-filename", "a.py", "b.py"), ("--stdin-filename", "`b.py`")),
        ],
    )
    def test_options_that_contradict_are_2_and_both_are_named(
        self, lint: Lint, arguments: tuple[str, ...], named: tuple[str, ...]
    ) -> None:
        done = lint(*arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert all(name in done.stderr for name in named)

    def test_a_broken_configuration_file_is_2_with_line_and_column(self, project: Path, lint: Lint) -> None:
        (project / "pyproject.toml").write_text("[tool.torchcopylint]\nselect = [\n")
        done = lint(".")
        assert done.returncode == 2
        assert done.stderr.startswith(f"Error: {project / 'pyproject.toml'}:3:1: not valid TOML: ")

    def test_a_broken_configuration_file_deep_in_the_tree_is_2(self, project: Path, lint: Lint) -> None:
        (project / "sub").mkdir()
        (project / "sub" / "pyproject.toml").write_text("[tool.torchcopylint]\nselct = []\n")
        done = lint(".")
        assert done.returncode == 2
        assert "sub/pyproject.toml: [tool.torchcopylint] has no key `selct`; did you mean `select`?" in done.stderr

    @pytest.mark.parametrize(
        ("word", "expected"),
        [("selct", "select"), ("SELECT", "select"), ("igonre", "ignore"), ("zzz", None), ("", None)],
    )
    def test_the_nearest_name_is_near(self, word: str, expected: str | None) -> None:
        assert nearest(word, ["select", "ignore", "exclude"]) == expected

    @pytest.mark.parametrize(
        ("left", "right", "edits"),
        [("", "ab", 2), ("abc", "abc", 0), ("abc", "acb", 1), ("abc", "bc", 1), ("a", "b", 1)],
    )
    def test_exchanged_neighbours_are_one_edit(self, left: str, right: str, edits: int) -> None:
        assert distance(left, right) == distance(right, left) == edits
