"""Standard output and standard error: who may write what where, colours, and the progress bar."""

from __future__ import annotations

import errno
import io
import itertools
import json
import os
import pty
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import UNUSED, Answer, Lint, write
from example_findings import finding, span

from torchcopylint.analysis import Analysis
from torchcopylint.base.gap import Gap
from torchcopylint.cli.progress import Progress, progress
from torchcopylint.cli.streams import wants_color


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

    def test_a_reader_that_is_gone_from_the_start_is_no_error(self, project: Path) -> None:
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run(
            [sys.executable, "-m", "torchcopylint", "rules"],
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        os.close(writer)
        assert (done.returncode, done.stderr) == (1, "")

    @pytest.mark.parametrize(
        ("arguments", "code", "error"),
        [("a.py >&-", 1, ""), ("a.py 2>&-", 1, ""), ("- <&-", 2, "Error: standard input is closed\n")],
    )
    def test_streams_that_are_closed_do_no_harm(self, project: Path, arguments: str, code: int, error: str) -> None:
        write(project, a_py=UNUSED)
        command = f"{shlex.quote(sys.executable)} -m torchcopylint {arguments}"
        done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (code, error)

    def test_a_full_disk_is_2_without_a_traceback(
        self, project: Path, monkeypatch: pytest.MonkeyPatch, answer: Answer
    ) -> None:
        class Full(io.StringIO):
            def write(self, text: str) -> int:
                raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(sys, "stdout", Full())
        done = answer("rules")
        assert (done.code, done.err) == (2, "Error: cannot write standard output: No space left on device\n")

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

    def test_a_run_counts_its_files_on_the_bar(
        self, project: Path, answer: Answer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write(project, a_py="", b_py="")
        stream = io.StringIO()
        seconds = itertools.count()

        def bar(total: int, quiet: bool, environment: object) -> Progress:
            return Progress(stream, total, lambda: next(seconds))

        monkeypatch.setattr("torchcopylint.cli.check.progress", bar)
        assert answer(".").out == "No findings in 2 files.\n"
        assert "1/2 b.py" in stream.getvalue()
        assert stream.getvalue().endswith("\r\x1b[K")

    @pytest.mark.parametrize(
        ("terminal", "quiet", "environment", "drawn"),
        [
            (True, False, {}, True),
            (False, False, {}, False),
            (True, True, {}, False),
            (True, False, {"TERM": "dumb"}, False),
        ],
    )
    def test_a_bar_is_for_somebody_who_looks(
        self, monkeypatch: pytest.MonkeyPatch, terminal: bool, quiet: bool, environment: dict[str, str], drawn: bool
    ) -> None:
        class Stream(io.StringIO):
            def isatty(self) -> bool:
                return terminal

        monkeypatch.setattr(sys, "stderr", Stream())
        assert (progress(3, quiet, environment) is not None) is drawn

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
