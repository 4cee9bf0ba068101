"""The command line: commands, exit codes, streams, colours, and answers to wrong use."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import yaml
from conftest import Answer, Lint
from example_findings import TRAINING, finding, snapshot_finding, span

from torchcopylint import __version__
from torchcopylint.analysis import Analysis, OverLimit, Unreadable
from torchcopylint.base.finding import Confidence, Position, Severity
from torchcopylint.base.gap import Gap
from torchcopylint.base.suggest import distance, nearest
from torchcopylint.cli.check import check
from torchcopylint.cli.progress import Progress
from torchcopylint.cli.streams import wants_color
from torchcopylint.pages import load_pages
from torchcopylint.project.config import KEYS
from torchcopylint.project.patterns import DEFAULT_EXCLUDES

UNUSED = "x = 1  # torchcopylint: ignore[TCL104]\n"
"""A file with one warning that needs no rule: TCL002."""


def write(project: Path, **files: str) -> None:
    """`train_py="..."` writes `train.py`."""
    for name, text in files.items():
        (project / name.replace("_", ".")).write_text(text)


class TestCommands:
    def test_check_is_the_default_command(self, project: Path, lint: Lint) -> None:
        write(project, a_py=UNUSED)
        assert lint("a.py").stdout == lint("check", "a.py").stdout != ""

    def test_no_paths_means_the_current_directory(self, project: Path, lint: Lint) -> None:
        write(project, a_py=UNUSED)
        assert lint().stdout == lint(".").stdout != ""

    def test_options_may_come_first(self, project: Path, lint: Lint) -> None:
        write(project, a_py=UNUSED)
        assert lint("--quiet", "a.py").returncode == 1

    @pytest.mark.parametrize("flag", ["--version", "-V"])
    def test_the_version(self, lint: Lint, flag: str) -> None:
        assert lint(flag).stdout == f"torchcopylint {__version__}\n"

    @pytest.mark.parametrize("arguments", [("--help",), ("-h",), ("check", "--help"), ("rules", "-h")])
    def test_help_says_how_to_call_it(self, lint: Lint, arguments: tuple[str, ...]) -> None:
        done = lint(*arguments)
        assert done.returncode == 0
        assert done.stdout.startswith("Usage: torchcopylint ")

    def test_a_word_that_is_a_command_and_a_path_is_the_command_and_it_says_so(self, project: Path, lint: Lint) -> None:
        (project / "rules").mkdir()
        (project / "rules" / "a.py").write_text(UNUSED)
        done = lint("rules")
        assert done.stdout.startswith("TCL000")
        assert done.stderr == "note: `rules` is the command; the path of this name is `./rules`\n"
        for arguments in (("./rules",), ("check", "rules")):
            assert "TCL002" in lint(*arguments).stdout
        assert lint("./rules").stderr == ""

    def test_the_console_script_is_installed(self) -> None:
        script = Path(sys.executable).with_name("torchcopylint")
        assert subprocess.check_output([script, "--version"], text=True) == f"torchcopylint {__version__}\n"


class TestExitCodes:
    def test_0_without_findings(self, project: Path, lint: Lint) -> None:
        write(project, a_py="x = 1\n")
        done = lint("a.py")
        assert (done.returncode, done.stdout, done.stderr) == (0, "No findings in 1 file.\n", "")

    def test_1_with_findings(self, project: Path, lint: Lint) -> None:
        write(project, a_py=UNUSED)
        assert lint("a.py").returncode == 1

    def test_1_for_a_file_that_cannot_be_decoded(self, project: Path, lint: Lint) -> None:
        (project / "a.py").write_bytes(b"\xff")
        assert lint("a.py").returncode == 1

    @pytest.mark.parametrize(
        ("severity", "fail_on", "code"),
        [
            (Severity.ERROR, "error", 1),
            (Severity.WARNING, "error", 0),
            (Severity.WARNING, "warning", 1),
            (Severity.INFO, "warning", 0),
            (Severity.INFO, "info", 1),
            (Severity.ERROR, "never", 0),
        ],
    )
    def test_fail_on_decides(self, project: Path, answer: Answer, severity: Severity, fail_on: str, code: int) -> None:
        write(project, a_py="x\n")
        found = finding(filename="a.py", severity=severity)
        done = answer("a.py", "--fail-on", fail_on, "--select", "TCL104", analysis={"a.py": (found,)})
        assert (done.code, "TCL104" in done.out) == (code, True)

    def test_exit_zero_turns_1_into_0(self, project: Path, lint: Lint) -> None:
        write(project, a_py=UNUSED)
        done = lint("a.py", "--exit-zero")
        assert (done.returncode, "TCL002" in done.stdout) == (0, True)

    def test_a_missing_path_is_2_and_the_others_are_checked_and_reported(self, project: Path, lint: Lint) -> None:
        write(project, a_py=UNUSED)
        done = lint("nope.py", "a.py", "--exit-zero", "--output-format", "json")
        assert done.returncode == 2
        assert done.stderr == "Error: no such file or directory: nope.py\n"
        assert [entry["code"] for entry in json.loads(done.stdout)] == ["TCL002"]

    def test_a_directory_without_python_is_0_with_a_warning(self, project: Path, lint: Lint) -> None:
        done = lint(".")
        assert (done.returncode, done.stdout) == (0, "")
        assert done.stderr == "warning: no Python files found under the given paths\n"

    def test_a_fault_of_the_analysis_is_2_and_the_rest_is_checked(self, project: Path, answer: Answer) -> None:
        write(project, a_py="x\n", b_py=UNUSED)
        done = answer(".", "--exit-zero", analysis={"a.py": KeyError("lost")})
        assert done.code == 2
        assert done.out.startswith("a.py:1:1: error[TCL005]: torchcopylint failed on this file: KeyError: 'lost' (")
        assert "| x" not in done.out.partition("\n\n")[0]
        assert "b.py:1:32: warning[TCL002]" in done.out
        assert f"internal error in {project / 'a.py'}:" in done.err
        assert "Traceback (most recent call last):" in done.err

    def test_running_out_of_stack_is_a_fault_like_any_other(self, project: Path, answer: Answer) -> None:
        write(project, a_py="x\n")
        assert answer(".", analysis={"a.py": RecursionError("maximum recursion depth exceeded")}).code == 2

    def test_a_text_that_does_not_parse_is_reported_where_the_parser_stopped(
        self, project: Path, answer: Answer
    ) -> None:
        write(project, a_py="def f(:\n")
        done = answer("a.py", analysis={"a.py": Unreadable("expected a parameter", Position(1, 7))})
        assert done.code == 1
        assert done.out.startswith(
            "a.py:1:7: error[TCL000]: the file cannot be read or parsed: expected a parameter\n"
            "   1 | def f(:\n"
            "     |       ^\n"
        )

    def test_a_file_over_a_limit_names_it_and_the_option_that_raises_it(self, project: Path, answer: Answer) -> None:
        write(project, a_py="x\n")
        done = answer("a.py", analysis={"a.py": OverLimit("nesting", 900, 200, "--max-nesting", 1)})
        assert done.code == 1
        assert "warning[TCL004]: the file was skipped: its nesting of 900 is over the limit of 200" in done.out
        assert "fix: raise the limit with `--max-nesting`" in done.out

    def test_a_file_that_is_too_large_is_not_read(self, project: Path, answer: Answer) -> None:
        write(project, a_py="x = 1\n")
        done = answer("a.py", "--max-file-size", "5", analysis={"a.py": KeyError()})
        assert "its size of 6 bytes is over the limit of 5 bytes" in done.out
        assert "--max-file-size" in done.out

    def test_hooks_pass_no_files(self, project: Path, lint: Lint) -> None:
        write(project, a_py=UNUSED)
        done = lint("--allow-no-paths")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
        assert lint("--allow-no-paths", "--output-format", "json").stdout == "[]\n"

    def test_ctrl_c_is_130_without_a_traceback(self, project: Path) -> None:
        program = """
            import os, signal, sys, time
            from torchcopylint.__main__ import main
            from torchcopylint.cli import check

            def read_stdin():
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(60)

            check.read_stdin = read_stdin
            sys.argv[1:] = ["-"]
            sys.exit(main())
        """
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stdout, done.stderr.strip()) == (130, "", "torchcopylint: interrupted")


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


class TestSettings:
    def test_the_configuration_file_is_used(self, project: Path, lint: Lint) -> None:
        write(project, a_py=UNUSED)
        (project / "pyproject.toml").write_text(
            '[tool.torchcopylint]\noutput-format = "concise"\nignore = ["TCL002"]\n'
        )
        assert lint(".").stdout == "No findings in 1 file.\n"
        assert lint(".", "--isolated").returncode == 1

    def test_selection_from_the_command_line(self, project: Path, answer: Answer) -> None:
        write(project, a_py="x\n")
        findings = (
            finding("TCL104", filename="a.py"),
            finding("TCL105", filename="a.py", severity=Severity.INFO),
            finding("TCL701", filename="a.py", severity=Severity.ERROR, confidence=Confidence.LOW),
        )

        def shown(*arguments: str) -> set[str]:
            entries = json.loads(answer("a.py", "--output-format=json", *arguments, analysis={"a.py": findings}).out)
            return {entry["code"] for entry in entries}

        assert shown() == {"TCL104"}
        assert shown("--preset", "strict") == {"TCL104", "TCL105", "TCL701"}
        assert shown("--min-confidence", "low") == {"TCL104", "TCL701"}
        assert shown("--select", "TCL105,TCL7") == {"TCL105"}
        assert shown("--extend-select", "grad-data") == {"TCL104", "TCL105"}
        assert shown("--ignore", "TCL1") == set()
        assert shown("--per-file-ignores", "a.py:TCL104") == set()
        assert shown("--per-file-ignores", "b.py:TCL104") == {"TCL104"}

    def test_excludes_from_the_command_line_are_added(self, project: Path, lint: Lint) -> None:
        (project / "pyproject.toml").write_text('[tool.torchcopylint]\nexclude = ["b.py"]\n')
        write(project, a_py=UNUSED, b_py=UNUSED, c_py=UNUSED)
        assert lint("--show-files", "--exclude", "a.py").stdout == "c.py\n"

    def test_show_files(self, project: Path, lint: Lint) -> None:
        write(project, a_py="", b_pyi="", c_txt="")
        assert lint("--show-files").stdout == "a.py\nb.pyi\n"
        done = lint("--show-files", "a.py", "nope")
        assert (done.returncode, done.stdout) == (2, "a.py\n")

    def test_show_settings(self, project: Path, lint: Lint) -> None:
        (project / "pyproject.toml").write_text('[tool.torchcopylint]\nfail-on = "error"\nselect = ["TCL104"]\n')
        shown = lint("--show-settings", "--exclude", 'a"b').stdout
        assert f"# configuration file: {project / 'pyproject.toml'}\n" in shown
        assert 'fail-on = "error"\n' in shown
        assert "#   TCL104 data-read (all variants)\n" in shown
        assert "TCL701" not in shown
        assert '    "a\\"b",\n' in shown

    def test_a_suppressed_finding_is_counted_but_not_shown(self, project: Path, answer: Answer) -> None:
        write(project, a_py="y = x.data  # torchcopylint: ignore[TCL104]\n")
        done = answer("a.py", analysis={"a.py": (finding(filename="a.py"),)})
        assert (done.code, done.out) == (0, "No findings in 1 file (1 suppressed).\n")

    def test_a_suppression_of_what_is_not_shown_is_not_unused(self, project: Path, answer: Answer) -> None:
        write(project, a_py="y = x.data  # torchcopylint: ignore[TCL701]\n")
        hidden = finding("TCL701", filename="a.py", confidence=Confidence.LOW)
        assert answer("a.py", analysis={"a.py": (hidden,)}).code == 0

    @pytest.mark.parametrize("option", ["--no-cache", "-n"])
    def test_no_cache_is_accepted(self, project: Path, lint: Lint, option: str) -> None:
        write(project, a_py="")
        assert lint(option, "a.py").returncode == 0

    def test_names_are_relative_to_the_project_and_paths_to_the_working_directory(
        self, project: Path, monkeypatch: pytest.MonkeyPatch, lint: Lint, answer: Answer
    ) -> None:
        (project / "pyproject.toml").write_text("[tool.torchcopylint]\n")
        (project / "src").mkdir()
        (project / "src" / "a.py").write_text(UNUSED)
        monkeypatch.chdir(project / "src")
        assert json.loads(answer("--output-format", "json").out)[0]["filename"] == "src/a.py"
        assert answer("--output-format", "concise").out.startswith("a.py:1:32: ")
        assert lint("--output-format", "concise").stdout.startswith("src/a.py:1:32: ")


class TestStreams:
    @pytest.mark.parametrize("output_format", ["json", "jsonl", "github", "sarif"])
    def test_machine_formats_have_stdout_to_themselves(self, project: Path, lint: Lint, output_format: str) -> None:
        write(project, a_py=UNUSED)
        done = lint(".", "nope", "--output-format", output_format, "--statistics", "--color", "always")
        assert "\x1b" not in done.stdout
        assert "Findings by rule:" not in done.stdout
        assert "Findings by rule:" in done.stderr
        assert "Found" not in done.stdout

    def test_statistics_count_rules_gaps_and_suppressions(self, project: Path, answer: Answer) -> None:
        write(project, a_py="x  # torchcopylint: ignore[TCL701]\ny\n")
        made = Analysis(
            (
                finding(filename="a.py", where=span(2, 1, 2)),
                finding(filename="a.py", where=span(2, 2, 3)),
                finding("TCL701", filename="a.py"),
            ),
            (Gap("loop did not settle", "a.py", 1), Gap("unknown call", "a.py", 2), Gap("unknown call", "a.py", 3)),
        )
        out = answer("a.py", "--statistics", "--output-format", "concise", analysis={"a.py": made}).out
        assert out.partition("Findings by rule:\n")[2] == (
            "     2  TCL104 data-read\n"
            "Gaps of the analysis by reason:\n"
            "     2  unknown call\n"
            "     1  loop did not settle\n"
            "Files checked: 1; with findings: 1.\n"
            "Findings suppressed by comments: 1.\n"
        )

    def test_quiet_prints_findings_only(self, project: Path, lint: Lint) -> None:
        write(project, a_py="")
        assert lint("a.py", "--quiet").stdout == ""
        (project / "empty").mkdir()
        assert lint("empty", "--quiet").stderr == ""

    def test_the_result_can_go_to_a_file(self, project: Path, lint: Lint) -> None:
        write(project, a_py=UNUSED)
        done = lint("a.py", "--output-format", "json", "-o", "out.json")
        assert (done.returncode, done.stdout) == (1, "")
        assert json.loads((project / "out.json").read_text())[0]["code"] == "TCL002"

    def test_a_reader_that_leaves_is_no_error(self, project: Path) -> None:
        command = f"{sys.executable} -m torchcopylint rules | head -n 1"
        done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
        assert done.stdout.startswith("TCL000")
        assert done.stderr == ""

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
    def test_a_full_disk_is_2_without_a_traceback(self, project: Path) -> None:
        with open("/dev/full", "w") as full:
            done = subprocess.run(
                [sys.executable, "-m", "torchcopylint", "rules"],
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
        assert (done.returncode, done.stderr) == (2, "Error: cannot write standard output: No space left on device\n")

    def test_characters_that_the_console_lacks_are_written_as_escapes(self, project: Path, lint: Lint) -> None:
        write(project, a_py="é = '😀'  # torchcopylint: ignore[TCL104]\n")
        done = lint("a.py", PYTHONIOENCODING="ascii")
        assert "\\xe9 = '\\U0001f600'" in done.stdout

    def test_a_file_name_that_is_not_unicode_does_no_harm(self, project: Path, lint: Lint) -> None:
        with open(os.fsencode(project) + b"/\xff.py", "w") as file:
            file.write(UNUSED)
        assert "\\udcff.py:1:32: " in lint(".").stdout
        assert "%FF.py" in lint(".", "--output-format", "sarif").stdout
        assert json.loads(lint(".", "--output-format", "json").stdout)[0]["filename"] == "\udcff.py"

    def test_a_line_break_in_a_file_name_forges_no_line(self, project: Path, lint: Lint) -> None:
        (project / "a\nb.py:1:1: error.py").write_text(UNUSED)
        assert lint(".", "--output-format", "concise").stdout.startswith("a\\nb.py:1:1: error.py:1:32: ")

    def test_the_progress_bar_waits_draws_and_goes(self) -> None:
        now = iter([0.0, 0.1, 0.6, 0.6, 0.65, 0.9, 0.9])
        stream = io.StringIO()
        bar = Progress(stream, 4, lambda: next(now))
        for name in ("a.py", "b.py", "c.py", "d.py"):
            bar(f"/project/{name}")
        bar.clear()
        assert stream.getvalue() == (
            f"\r\x1b[K[{'#' * 6}{'-' * 18}] 1/4 b.py\r\x1b[K[{'#' * 18}{'-' * 6}] 3/4 d.py\r\x1b[K"
        )

    def test_a_short_run_draws_no_bar(self) -> None:
        stream = io.StringIO()
        bar = Progress(stream, 1, lambda: 0.0)
        bar("a.py")
        bar.clear()
        assert stream.getvalue() == ""


class TestColours:
    @pytest.mark.parametrize(
        ("choice", "terminal", "environment", "coloured"),
        [
            ("auto", True, {}, True),
            ("auto", False, {}, False),
            ("auto", True, {"NO_COLOR": "1"}, False),
            ("auto", True, {"NO_COLOR": ""}, True),
            ("auto", False, {"FORCE_COLOR": "1"}, True),
            ("auto", True, {"FORCE_COLOR": "0"}, False),
            ("auto", False, {"FORCE_COLOR": ""}, False),
            ("auto", False, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
            ("auto", True, {"TERM": "dumb"}, False),
            ("always", False, {"NO_COLOR": "1"}, True),
            ("never", True, {"FORCE_COLOR": "1"}, False),
        ],
    )
    def test_who_decides(self, choice: str, terminal: bool, environment: dict[str, str], coloured: bool) -> None:
        class Stream(io.StringIO):
            def isatty(self) -> bool:
                return terminal

        assert wants_color(choice, Stream(), environment) is coloured

    def test_a_pipe_has_no_colours_unless_asked_for(self, project: Path, lint: Lint) -> None:
        write(project, a_py=UNUSED)
        assert "\x1b" not in lint("a.py").stdout
        assert "\x1b[1;33mwarning[TCL002]\x1b[0m" in lint("a.py", "--color", "always").stdout
        assert "\x1b[1;33mwarning[TCL002]\x1b[0m" in lint("a.py", FORCE_COLOR="1").stdout

    def test_a_file_has_no_colours_though_the_output_is_a_terminal(self, project: Path, lint: Lint) -> None:
        write(project, a_py=UNUSED)
        lint("a.py", "-o", "out.txt", FORCE_COLOR="1")
        assert "\x1b" not in (project / "out.txt").read_text()

    def test_a_terminal_has_colours(self, project: Path) -> None:
        write(project, a_py=UNUSED)
        leader, follower = pty.openpty()
        with subprocess.Popen(
            [sys.executable, "-m", "torchcopylint", "a.py"], stdout=follower, env=os.environ | {"TERM": "xterm"}
        ) as process:
            process.wait(timeout=60)
        os.close(follower)
        assert b"\x1b[1;33mwarning[TCL002]\x1b[0m" in os.read(leader, 4096)
        os.close(leader)


class TestExplain:
    @pytest.mark.parametrize("rule", ["TCL104", "tcl104", "data-read"])
    def test_a_page_by_code_or_name_is_markdown_when_piped(self, lint: Lint, rule: str) -> None:
        done = lint("explain", rule)
        assert done.stdout.startswith("# data-read\n\nTCL104 · warning · on by default · confidence ")
        assert "\n```python bad\n" in done.stdout
        assert "\n## Why it matters\n" in done.stdout

    def test_several_pages(self, lint: Lint) -> None:
        headings = [line for line in lint("explain", "TCL000", "TCL001").stdout.splitlines() if line.startswith("# ")]
        assert headings == ["# unreadable-file", "# blanket-suppression"]

    def test_on_a_terminal_it_is_readable(self, lint: Lint) -> None:
        out = lint("explain", "TCL104", "--color", "always").stdout
        assert "```" not in out
        assert "## " not in out
        assert "\x1b[1mWhy it matters\x1b[0m" in out

    def test_variants_are_named(self, lint: Lint) -> None:
        assert "variant idiom: info" in lint("explain", "TCL103").stdout

    @pytest.mark.parametrize(
        ("rule", "message"),
        [
            ("TCL140", "there is no rule `TCL140`; did you mean `TCL104`?"),
            ("data-raed", "there is no rule `data-raed`; did you mean `data-read`?"),
            (
                "TCL00",
                "`TCL00` stands for several rules: TCL000, TCL001, TCL002, TCL003, TCL004, TCL005; name one of them",
            ),
        ],
    )
    def test_an_unknown_rule_is_2_and_names_the_nearest(self, lint: Lint, rule: str, message: str) -> None:
        done = lint("explain", rule)
        assert (done.returncode, done.stdout, done.stderr) == (2, "", f"Error: {message}\n")


class TestRules:
    def test_every_rule_is_a_line(self, lint: Lint) -> None:
        lines = lint("rules").stdout.splitlines()
        assert [line.split()[:2] for line in lines] == [[page.code, page.name] for page in load_pages().values()]

    def test_as_json(self, lint: Lint) -> None:
        entries = {entry["code"]: entry for entry in json.loads(lint("rules", "--output-format", "json").stdout)}
        assert list(entries) == list(load_pages())
        entry = entries["TCL103"]
        assert (entry["name"], entry["severity"], entry["default"]) == ("data-write", "warning", "on")
        assert entry["variants"]["idiom"] == {"severity": "info", "default": "off"}
        assert entry["summary"]


class TestDocumentation:
    DOCS = Path(__file__).resolve().parent.parent / "docs"

    def test_every_option_is_documented_and_every_documented_option_exists(self) -> None:
        text = (self.DOCS / "usage.md").read_text(encoding="utf-8")
        table = text.partition("## Options of `check`\n")[2].partition("\n## ")[0]
        documented = {
            name for row in re.findall(r"^\| (.*?) \| ", table, re.M) for name in re.findall(r"--?[a-z][\w-]*", row)
        }
        declared = {name for parameter in check.params for name in (*parameter.opts, *parameter.secondary_opts)}
        assert documented == {name for name in declared if name.startswith("-")}

    def test_every_key_is_documented_and_every_documented_key_exists(self) -> None:
        text = (self.DOCS / "configuration.md").read_text(encoding="utf-8")
        table = text.partition("## Keys\n")[2].partition("\n## ")[0]
        assert set(re.findall(r"^\| `([a-z-]+)` \|", table, re.M)) == set(KEYS)

    def test_every_default_exclude_is_documented(self) -> None:
        text = (self.DOCS / "configuration.md").read_text(encoding="utf-8")
        listed = text.partition("which are always left out: ")[2].partition(".\n\n")[0]
        assert tuple(re.findall(r"`([^`]+)`", listed)) == DEFAULT_EXCLUDES

    def test_the_documented_configuration_is_accepted(self, project: Path, lint: Lint) -> None:
        text = (self.DOCS / "configuration.md").read_text(encoding="utf-8")
        (project / "pyproject.toml").write_text(text.partition("```toml\n")[2].partition("```")[0])
        assert lint("--show-settings").returncode == 0

    @pytest.mark.parametrize("page", ["ci.md", "pre-commit.md"])
    def test_documented_calls_are_accepted(self, project: Path, lint: Lint, page: str) -> None:
        write(project, a_py="x = 1\n")
        text = (self.DOCS / page).read_text(encoding="utf-8")
        calls = re.findall(r"(?:- run: |`)torchcopylint ((?:check )?--[^`\n]+)", text)
        assert calls
        for call in calls:
            assert lint(*call.split()).returncode == 0

    def test_documented_workflows_are_yaml_with_a_job(self) -> None:
        blocks = re.findall(r"```yaml\n(.*?)```", (self.DOCS / "ci.md").read_text(encoding="utf-8"), re.S)
        workflows = [yaml.safe_load(block) for block in blocks]
        assert [list(workflow["jobs"]) for workflow in workflows] == [["torchcopylint"], ["torchcopylint"]]


class TestStartUp:
    def imported(self, *arguments: str) -> set[str]:
        done = subprocess.run(
            [sys.executable, "-X", "importtime", "-m", "torchcopylint", *arguments],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0
        return {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if "|" in line}

    def test_the_version_needs_nothing(self) -> None:
        modules = self.imported("--version")
        assert "torchcopylint" in modules
        assert modules.isdisjoint({"torch", "numpy", "libcst", "click", "pathspec", "dataclasses", "typing", "json"})

    def test_help_needs_neither_torch_nor_libcst(self) -> None:
        modules = self.imported("check", "--help")
        assert "click" in modules
        assert modules.isdisjoint({"torch", "numpy", "libcst", "pathspec"})

    def test_a_run_never_imports_torch(self, project: Path) -> None:
        write(project, a_py="import torch\nx = torch.ones(1).data\n")
        assert self.imported("a.py", "--exit-zero").isdisjoint({"torch", "numpy"})

    def test_a_run_over_a_named_file_without_patterns_needs_no_pathspec(self, project: Path) -> None:
        write(project, a_py="x = 1\n")
        assert "pathspec" not in self.imported("a.py")


def test_a_narration_is_shown_with_its_code(project: Path, answer: Answer) -> None:
    write(project, train_py=TRAINING)
    done = answer("train.py", analysis={"train.py": (snapshot_finding(),)})
    assert done.code == 1
    assert done.out == (
        "train.py:7:16: error[TCL701]: `best` still shares memory with `model`, so later training changes it\n"
        "    7 |         best = model.state_dict()\n"
        "      |                ^^^^^^^^^^^^^^^^^^ 1 shared here\n"
        "   10 |         optimizer.step()\n"
        "      |         ---------------- 2 written here: moves the parameters of `model`\n"
        "   11 |     model.load_state_dict(best)\n"
        "      |                           ---- 3 read here\n"
        "  fix: best = copy.deepcopy(model.state_dict())\n"
        "\n"
        "Found 1 error in 1 of 1 file.\n"
    )
