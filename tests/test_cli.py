"""The command line: commands, exit codes, and settings."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from conftest import UNUSED, Answer, Lint, write
from example_findings import TRAINING, finding, snapshot_finding, span, step

from torchcopylint import __version__
from torchcopylint.analysis import OverLimit, Unreadable
from torchcopylint.base.finding import Confidence, Position, Role, Severity


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

    def test_standard_input_has_the_same_limit(self, lint: Lint) -> None:
        done = lint("-", "--max-file-size", "5", stdin="x = 1\n")
        assert "its size of 6 bytes is over the limit of 5 bytes" in done.stdout

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


def test_real_findings_are_hidden_by_real_comments(project: Path, lint: Lint) -> None:
    write(
        project,
        a_py=textwrap.dedent(
            """\
            import torch

            x = torch.ones(3)
            y = (
                x.data  # torchcopylint: ignore[TCL104]
            )
            # torchcopylint: ignore[data-read]
            z = x.data
            w = x.data  # noqa: TCL104
            v = x.data
            """
        ),
    )
    done = lint("a.py", "--output-format", "concise")
    assert done.returncode == 1
    first, last = done.stdout.splitlines()
    assert first.startswith("a.py:10:5: warning[TCL104]: ")
    assert last == "Found 1 warning in 1 of 1 file (3 suppressed)."


def test_steps_in_other_files_are_shown_with_the_code_there(project: Path, answer: Answer) -> None:
    (project / "lib").mkdir()
    (project / "lib" / "helper.py").write_text("def fill(t):\n    t[:] = 0\n")
    write(project, train_py="y = x\n")
    steps = (
        step(Role.SHARED, "shared here", span(1, 5, 6)),
        step(Role.WRITTEN, "written here, in the call to `fill`", span(2, 5, 13), filename="lib/helper.py"),
        step(Role.READ, "read here", span(7, 1, 2), filename="gone.py"),
    )
    found = finding(where=span(1, 5, 6), steps=steps)
    out = answer("train.py", "--quiet", analysis={"train.py": (found,)}).out
    assert out.splitlines()[1:] == [
        "   1 | y = x",
        "     |     ^ 1 shared here",
        f"  --> {os.path.join('lib', 'helper.py')}:2:5",
        "   2 |     t[:] = 0",
        "     |     -------- 2 written here, in the call to `fill`",
        "  --> gone.py:7:1",
        "   7 | 3 read here",
        "",
    ]


def test_a_directory_that_cannot_be_listed_is_a_finding(
    project: Path, answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str) -> object:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "scandir", refuse)
    done = answer(".")
    assert done.code == 1
    assert done.out.startswith(".:1:1: error[TCL000]: the file cannot be read or parsed: permission denied\n")


def test_a_working_directory_that_is_gone_is_wrong_use(
    project: Path, answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "gone").mkdir()
    monkeypatch.chdir(project / "gone")
    (project / "gone").rmdir()
    done = answer("a.py")
    assert (done.code, done.err) == (2, "Error: the current directory does not exist any more\n")


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
